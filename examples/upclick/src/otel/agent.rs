//! Agents. Each sends what one program reports, over gRPC or over HTTP, and sends it again for as long as the
//! gateway asks for that.

use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use opentelemetry_proto::tonic::collector::logs::v1::logs_service_client::LogsServiceClient;
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::metrics_service_client::MetricsServiceClient;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_client::TraceServiceClient;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use prost::Message;
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior};
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::{Channel, Endpoint as Address};
use tonic::{Code, Status};
use windrow_clickhouse::{Client, ClientOptions, Endpoint};

use super::telemetry::{Program, Told};
use super::OtelOptions;
use crate::errors::DemoError;
use crate::percentiles::Histogram;
use crate::probe::stopped;

const TIMEOUT: Duration = Duration::from_secs(30);
/// Pause before the first repeat, where the gateway doesn't say how long. Each pause is twice as long as the
/// one before.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// The most connections of an agent, which sends its three signals at the same time.
const CONNECTIONS: usize = 3;

/// The outcome of one signal for all agents together, counted in rows.
#[derive(Default)]
pub(super) struct Tally {
    pub(super) sent: AtomicU64,
    pub(super) acknowledged: AtomicU64,
    pub(super) refused: AtomicU64,
    /// Requests that were acknowledged.
    pub(super) requests: AtomicU64,
    /// Count of repeated requests.
    pub(super) repeats: AtomicU64,
    waits: Mutex<Histogram>,
    last_error: Mutex<Option<String>>,
}

impl Tally {
    pub(super) fn quantile_ms(&self, share: f64) -> Option<f64> {
        self.waits.lock().unwrap_or_else(PoisonError::into_inner).quantile_ms(share)
    }

    pub(super) fn last_error(&self) -> Option<String> {
        self.last_error.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn fail(&self, reason: String) {
        *self.last_error.lock().unwrap_or_else(PoisonError::into_inner) = Some(reason);
    }
}

/// The tallies of all signals, in the order of [`super::SIGNALS`].
pub(super) type Tallies = [Tally; super::SIGNALS.len()];

pub(super) struct Agent {
    program: Program,
    protocol: Protocol,
    name: String,
    every: Duration,
    first_turn: Duration,
    tallies: Arc<Tallies>,
}

/// The protocol of an agent. Agents with an even number speak gRPC, the others HTTP.
enum Protocol {
    Grpc { channel: Channel, user: MetadataValue<Ascii>, password: MetadataValue<Ascii> },
    Http { client: Client, head: String },
}

/// The reason why a request was refused.
enum Refusal {
    /// The request is to be sent again, after this time if one is given.
    ForNow(Option<Duration>, String),
    ForGood(String),
}

impl Agent {
    pub(super) fn new(
        options: &OtelOptions,
        run: &str,
        index: usize,
        tallies: Arc<Tallies>,
    ) -> Result<Agent, DemoError> {
        let protocol = if index.is_multiple_of(2) { Protocol::grpc(options)? } else { Protocol::http(options)? };
        Ok(Agent {
            program: Program::new(index, run),
            protocol,
            name: format!("{run} {index}"),
            every: options.every,
            first_turn: options.every.mul_f64(index as f64 / options.agents.max(1) as f64),
            tallies,
        })
    }

    /// Sends until it is told to stop. A turn that has begun is finished first.
    pub(super) async fn live(mut self, began: Instant, mut stop: watch::Receiver<bool>) {
        let mut turns = tokio::time::interval_at(began + self.first_turn, self.every);
        turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
        for turn in 0_u64.. {
            tokio::select! {
                biased;
                () = stopped(&mut stop) => return,
                _ = turns.tick() => self.turn(turn).await,
            }
        }
    }

    pub(super) async fn turn(&mut self, turn: u64) {
        let Told { logs, traces, metrics } = self.program.tell();
        // Under one name a request is stored once, however often it is sent.
        let name = format!("{} {turn}", self.name);
        let (protocol, name, [of_logs, of_traces, of_metrics]) = (&self.protocol, name.as_str(), &*self.tallies);
        tokio::join!(
            until_taken(of_logs, logs.0, || protocol.logs(name, &logs.1)),
            until_taken(of_traces, traces.0, || protocol.traces(name, &traces.1)),
            until_taken(of_metrics, metrics.0, || protocol.metrics(name, &metrics.1)),
        );
    }
}

async fn until_taken<F>(tally: &Tally, rows: u64, send: impl Fn() -> F)
where
    F: Future<Output = Result<(), Refusal>>,
{
    let sent = Instant::now();
    tally.sent.fetch_add(rows, Ordering::Relaxed);
    let mut pause = FIRST_PAUSE;
    loop {
        match send().await {
            Ok(()) => {
                tally.acknowledged.fetch_add(rows, Ordering::Relaxed);
                tally.requests.fetch_add(1, Ordering::Relaxed);
                return tally.waits.lock().unwrap_or_else(PoisonError::into_inner).add(sent.elapsed());
            }
            Err(Refusal::ForGood(reason)) => {
                tally.refused.fetch_add(rows, Ordering::Relaxed);
                return tally.fail(reason);
            }
            Err(Refusal::ForNow(after, reason)) => {
                tally.repeats.fetch_add(1, Ordering::Relaxed);
                tally.fail(reason);
                tokio::time::sleep(after.unwrap_or(pause)).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        }
    }
}

impl Protocol {
    fn grpc(options: &OtelOptions) -> Result<Protocol, DemoError> {
        let address = Address::from_shared(format!("http://{}", options.grpc));
        let address = address.map_err(|error| DemoError::Options(format!("{}: {error}", options.grpc)))?;
        let field = |text: &str| {
            text.parse::<MetadataValue<Ascii>>()
                .map_err(|_| DemoError::Options("the user can't be named over gRPC in other than ASCII".to_owned()))
        };
        let (user, password) = (field(&options.destination.user)?, field(&options.destination.password)?);
        Ok(Protocol::Grpc { channel: address.timeout(TIMEOUT).connect_lazy(), user, password })
    }

    fn http(options: &OtelOptions) -> Result<Protocol, DemoError> {
        let unusable = |error: String| DemoError::Options(format!("{}: {error}", options.http));
        let endpoint =
            Endpoint::parse(&format!("http://{}", options.http)).map_err(|error| unusable(error.to_string()))?;
        let client = ClientOptions { max_connections: CONNECTIONS, is_own_port: true, ..ClientOptions::default() };
        let client = Client::new(endpoint.clone(), client).map_err(|error| unusable(error.to_string()))?;
        let (user, password) = (&options.destination.user, &options.destination.password);
        if [user, password].iter().any(|text| text.contains(char::is_control)) {
            return Err(unusable("the user's name or password has a control character".to_owned()));
        }
        let head = format!(
            "Host: {}\r\nContent-Type: application/x-protobuf\r\nX-ClickHouse-User: {user}\r\nX-ClickHouse-Key: {password}\r\n",
            endpoint.authority()
        );
        Ok(Protocol::Http { client, head })
    }

    async fn logs(&self, name: &str, logs: &ExportLogsServiceRequest) -> Result<(), Refusal> {
        match self {
            Protocol::Grpc { channel, .. } => {
                let request = self.call(name, logs.clone());
                LogsServiceClient::new(channel.clone()).export(request).await.map(drop).map_err(refused)
            }
            Protocol::Http { client, head } => post(client, "/v1/logs", head, name, logs).await,
        }
    }

    async fn traces(&self, name: &str, traces: &ExportTraceServiceRequest) -> Result<(), Refusal> {
        match self {
            Protocol::Grpc { channel, .. } => {
                let request = self.call(name, traces.clone());
                TraceServiceClient::new(channel.clone()).export(request).await.map(drop).map_err(refused)
            }
            Protocol::Http { client, head } => post(client, "/v1/traces", head, name, traces).await,
        }
    }

    async fn metrics(&self, name: &str, metrics: &ExportMetricsServiceRequest) -> Result<(), Refusal> {
        match self {
            Protocol::Grpc { channel, .. } => {
                let request = self.call(name, metrics.clone());
                MetricsServiceClient::new(channel.clone()).export(request).await.map(drop).map_err(refused)
            }
            Protocol::Http { client, head } => post(client, "/v1/metrics", head, name, metrics).await,
        }
    }

    /// Makes a gRPC request of a message, with the fields for user, password and request id.
    fn call<M>(&self, name: &str, message: M) -> tonic::Request<M> {
        let mut request = tonic::Request::new(message);
        if let Protocol::Grpc { user, password, .. } = self {
            let fields = request.metadata_mut();
            fields.insert("x-clickhouse-user", user.clone());
            fields.insert("x-clickhouse-key", password.clone());
            if let Ok(name) = name.parse::<MetadataValue<Ascii>>() {
                fields.insert("x-windrow-request-id", name);
            }
        }
        request
    }
}

/// Decides by OTLP's rules which status codes mean that a request is to be sent again.
fn refused(status: Status) -> Refusal {
    let reason = format!("{}: {}", status.code(), status.message());
    match status.code() {
        Code::Unavailable
        | Code::ResourceExhausted
        | Code::Cancelled
        | Code::DeadlineExceeded
        | Code::Aborted
        | Code::OutOfRange
        | Code::DataLoss => Refusal::ForNow(None, reason),
        _ => Refusal::ForGood(reason),
    }
}

/// Sends a request over HTTP. If the connection breaks, the request may have arrived, and is sent again.
async fn post(client: &Client, path: &str, head: &str, name: &str, message: &impl Message) -> Result<(), Refusal> {
    let again = |error: String| Refusal::ForNow(None, error);
    let body = message.encode_to_vec();
    let length = body.len();
    let mut request =
        format!("POST {path} HTTP/1.1\r\n{head}X-Windrow-Request-Id: {name}\r\nContent-Length: {length}\r\n\r\n")
            .into_bytes();
    request.extend_from_slice(&body);
    let mut lease = client.connection().await.map_err(|error| again(error.to_string()))?;
    let connection = lease.connection();
    connection.send(&request, TIMEOUT).await.map_err(|error| again(error.to_string()))?;
    let head = connection.read_head(false, TIMEOUT).await.map_err(|error| again(error.to_string()))?;
    let mut answer = Vec::new();
    let mut body = connection.body(&head);
    while let Some(bytes) = body.next(TIMEOUT).await.map_err(|error| again(error.to_string()))? {
        answer.extend_from_slice(&bytes);
    }
    let status = head.status();
    let after = head.field_str("retry-after").and_then(|seconds| seconds.parse().ok()).map(Duration::from_secs);
    lease.give_back(&head);
    let reason = || format!("status {status}: {}", String::from_utf8_lossy(&answer));
    match status {
        200 => Ok(()),
        429 | 502 | 503 | 504 => Err(Refusal::ForNow(after, reason())),
        _ => Err(Refusal::ForGood(reason())),
    }
}
