use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use windrow_clickhouse::Strangers;
use windrow_columns::ReadPlans;
use windrow_engine::trace::{Parent, RequestTrace};
use windrow_engine::{Gatherer, GathererOptions, ShutDown, Stores};
use windrow_http::{Connection, ConnectionLimit, NextRequest, RequestHead, Stream};
use windrow_settings::{GatherSettings, Settings};

use super::answer::{self, After};
use super::body::BodyRoom;
use super::exchange::exchange;
use super::known_heads::{KnownHeads, LatestInsert};
use super::sessions::Sessions;
use super::strangers::Peer;
use crate::admission::{Admission, Windows};
use crate::backend::{Backend, BackendSink};
use crate::dead_letter_retention::discard_old;
use crate::insert::{go_on_keeping, keep, InflightAdmissions, Origin, PreparedInserts, Questions};
use crate::live::Live;
use crate::metrics::Metrics;
use crate::native;
use crate::options::{GatewayOptions, GatewayStores};
use crate::pipelines::ShownPipelines;
use crate::protocol::{GatewayHandle, NewConnection};
use crate::state::State;
use crate::statement::QueryIds;

/// The data port: ClickHouse's HTTP interface.
pub struct DataServer {
    state: Arc<State>,
    /// TLS for new connections, if the port speaks TLS.
    tls: Live<Option<TlsAcceptor>>,
    /// TLS for new connections of the native port that speaks TLS.
    native_tls: Live<Option<TlsAcceptor>>,
    /// TLS for new connections of OTLP over HTTP, with the data port's certificate.
    otlp_tls: Live<Option<TlsAcceptor>>,
    grpc_tls: Live<Option<TlsAcceptor>>,
    stop: watch::Sender<bool>,
    connection_limit: Arc<ConnectionLimit>,
}

/// The protocol of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Port {
    /// ClickHouse's HTTP interface, over TLS if there is a certificate for it.
    Http,
    Native,
    NativeTls,
    /// OpenTelemetry's protocol, over TLS if the data port speaks it.
    OtlpHttp,
    OtlpGrpc,
}

/// The certificates of the ports that speak TLS.
#[derive(Default)]
pub struct Certificates {
    pub http: Option<Arc<rustls::ServerConfig>>,
    pub otlp: Option<Arc<rustls::ServerConfig>>,
    pub native: Option<Arc<rustls::ServerConfig>>,
}

/// Interval at which results for inserts are forgotten, if they were not used for once to twice this time.
const FORGET_UNUSED_AFTER: Duration = Duration::from_secs(600);
/// Time for a flush of a few last inserts, however late it is.
const LAST_FLUSH: Duration = Duration::from_secs(1);
/// Time for the last answers, however late it is.
const LAST_ANSWERS: Duration = Duration::from_secs(1);
/// The largest share of the journal's bound for the inserts of a table: the rest is for records that free room.
const MOST_OF_JOURNAL: f64 = 0.75;
/// Time that a TLS handshake may take.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

impl DataServer {
    pub fn new(
        backend: Backend,
        kept: GatewayStores,
        options: GatewayOptions,
        certificates: Certificates,
        registry: &mut Registry,
    ) -> DataServer {
        let settings = options.settings.get();
        let (gather, journal) = (&settings.gather, &settings.journal);
        let (admission_ttl, schema_ttl) =
            (Duration::from_millis(gather.admission_ttl_ms), Duration::from_millis(gather.schema_ttl_ms));
        let windows = Windows::new(settings.manage_deduplication_window);
        let mut admission = Admission::new(backend.clone(), admission_ttl, schema_ttl, windows);
        // The embedded one is away when the gateway is.
        if matches!(settings.backend, windrow_settings::Backend::ClickHouse(_)) {
            admission = admission.with_kept(settings.data_dir.join("admissions"));
        }
        let admission = Arc::new(admission);
        let overload_wait = Duration::from_millis(gather.overload_wait_ms);
        let gatherer_options = GathererOptions {
            max_buffer_bytes: gather.max_buffer_bytes,
            max_table_bytes: max_table_bytes(gather),
            overload_wait,
            too_many_parts_wait: Duration::from_millis(gather.too_many_parts_wait_ms),
            retry_for: gather.retry_for_ms.map(Duration::from_millis),
            max_table_journal_bytes: (journal.max_bytes as f64 * journal.max_table_share.min(MOST_OF_JOURNAL)) as u64,
            longest_hold: Duration::from_millis(gather.longest_hold_ms),
            max_tables_in_metrics: settings.admin.max_tables_in_metrics,
            log_entries: gather.insert_log_entries,
        };
        let on_stale_schema = {
            let admission = admission.clone();
            move |table: &windrow_engine::TableKey| {
                tracing::info!(
                    database = table.database,
                    table = table.table,
                    "a flush was refused for the table itself or a right on it: it is asked about anew"
                );
                admission.forget_table(table);
            }
        };
        backend.when_tables_change({
            let admission = Arc::downgrade(&admission);
            move || {
                admission.upgrade().inspect(|admission| admission.doubt());
            }
        });
        let sink = backend.sink();
        let GatewayStores { journal, deduplication, dead_letters } = kept;
        let stores = Stores {
            journal: Some(journal),
            deduplication: Some(deduplication),
            dead_letters: Some(Arc::new(dead_letters.clone())),
            tracer: options.tracer.clone(),
            ..Stores::none()
        };
        register_bounds(&settings, registry);
        let gatherer = Gatherer::open(sink, gatherer_options, stores, registry, on_stale_schema);
        let connection_limit = ConnectionLimit::new(settings.http.max_connections);
        let state = State {
            body_room: BodyRoom::new(gather.max_buffer_bytes, overload_wait),
            max_table_bytes: max_table_bytes(gather),
            backend,
            admission,
            prepared: PreparedInserts::new(),
            asking: InflightAdmissions::default(),
            // They go over the connections of forwarded requests, which are to find some free.
            questions: Questions::new(settings.backend_pool.max_connections.div_ceil(4)),
            read_plans: ReadPlans::default(),
            gatherer,
            dead_letters,
            sessions: Sessions::default(),
            query_ids: QueryIds::default(),
            strangers: Strangers::default(),
            known_heads: KnownHeads::new(),
            metrics: Metrics::register(registry),
            appends: OnceLock::new(),
            pipelines: ShownPipelines::default(),
            known_databases: native::KnownDatabases::default(),
            http_port: OnceLock::new(),
            closing: AtomicBool::new(false),
            cluster: options.cluster.clone(),
            options,
        };
        if let Some(cluster) = &state.cluster {
            let gatherer = state.gatherer.clone();
            cluster.watch(move |gateways| gatherer.set_gateways(gateways));
        }
        DataServer {
            state: Arc::new(state),
            grpc_tls: Live::new(certificates.otlp.as_ref().map(for_grpc)),
            otlp_tls: Live::new(certificates.otlp.map(TlsAcceptor::from)),
            tls: Live::new(certificates.http.map(TlsAcceptor::from)),
            native_tls: Live::new(certificates.native.map(TlsAcceptor::from)),
            stop: watch::Sender::new(false),
            connection_limit,
        }
    }

    pub fn gatherer(&self) -> &Gatherer<BackendSink> {
        &self.state.gatherer
    }

    /// Serves ordered appends from now on.
    #[cfg(feature = "append")]
    pub fn serve_appends(&self, appends: super::appends::Appends) {
        // Who comes second has nothing else to say.
        let _ = self.state.appends.set(appends);
    }

    /// Serves requests by these settings from now on, and new connections with these certificates, where
    /// there are any. Results for inserts are worked out anew if the settings concern inserts.
    pub fn reload(&self, settings: Arc<Settings>, certificates: Certificates, concerns_inserts: bool) {
        self.state.options.settings.set(settings);
        if concerns_inserts {
            self.state.admission.settings_changed();
        }
        let Certificates { http, otlp, native } = certificates;
        otlp.iter().for_each(|tls| self.grpc_tls.set(Some(for_grpc(tls))));
        otlp.into_iter().for_each(|tls| self.otlp_tls.set(Some(TlsAcceptor::from(tls))));
        http.into_iter().for_each(|tls| self.tls.set(Some(TlsAcceptor::from(tls))));
        native.into_iter().for_each(|tls| self.native_tls.set(Some(TlsAcceptor::from(tls))));
    }

    /// Returns the tables that pipelines ask about.
    #[cfg(feature = "kafka")]
    pub fn tables(&self) -> crate::pipelines::BackendTables {
        crate::pipelines::BackendTables::new(self.state.admission.clone())
    }

    /// Shows pipelines from now on: in `system.windrow_kafka`, and on the admin port.
    #[cfg(feature = "kafka")]
    pub fn show_pipelines(&self, source: crate::pipelines::PipelineSource) {
        self.state.pipelines.set(source);
    }

    /// Says whether inserts can be taken although the backend has not answered since the start.
    pub fn goes_by_what_was_kept(&self) -> bool {
        self.state.admission.goes_by_what_was_kept(self.state.kept_ttl())
    }

    pub(crate) fn state(&self) -> &Arc<State> {
        &self.state
    }

    /// Serves connections until [`shut_down`](Self::shut_down). The task is begun here and not by the caller: then all
    /// that a connection does is compiled with this crate, and not anew with each change of the program.
    pub fn start(self: &Arc<Self>, listener: TcpListener, port: Port) {
        if let (Port::Http, Ok(address)) = (port, listener.local_addr()) {
            // A second port would be one too many to name.
            let _ = self.state.http_port.set(address.port());
            tokio::spawn(go_on_keeping(Arc::downgrade(&self.state)));
            tokio::spawn(discard_old(Arc::downgrade(&self.state)));
        }
        let server = self.clone();
        tokio::spawn(async move { server.accept(listener, port).await });
    }

    async fn accept(&self, listener: TcpListener, port: Port) {
        static NEXT_CONNECTION: AtomicU64 = AtomicU64::new(0);
        let mut stop = self.stop.subscribe();
        let mut forgetting = tokio::time::interval(FORGET_UNUSED_AFTER);
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                _ = stop.wait_for(|stop| *stop) => return,
                _ = forgetting.tick() => {
                    self.state.forget_unused();
                    continue;
                }
            };
            let (stream, address) = match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    // Out of file descriptors, most likely: others have to end first.
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            };
            let Some(permit) = self.connection_limit.take() else {
                self.state.metrics.refused_connections.inc();
                continue;
            };
            let tls = match port {
                Port::Http => self.tls.get(),
                Port::OtlpHttp => self.otlp_tls.get(),
                Port::OtlpGrpc => self.grpc_tls.get(),
                Port::Native => None,
                Port::NativeTls => self.native_tls.get(),
            };
            let (state, stop) = (self.state.clone(), self.stop.subscribe());
            let id = NEXT_CONNECTION.fetch_add(1, Ordering::Relaxed);
            tokio::spawn(async move {
                state.metrics.connections.inc();
                let peer = Peer { address: address.ip(), permit };
                if let Some(Some(stream)) = peer.permit.wait_for(handshake(stream, tls)).await {
                    // Boxed: a connection is to be as large as its own protocol makes it.
                    match port {
                        Port::Http => {
                            let connection = Connection::new(stream, state.options.limits.clone());
                            Box::pin(serve(&state, connection, id, &peer, stop)).await;
                        }
                        Port::OtlpHttp | Port::OtlpGrpc => {
                            let connection = NewConnection { stream, port, id, peer, stop };
                            if let Some(otlp) = &state.options.otlp {
                                otlp.serve(&GatewayHandle::new(&state), connection).await;
                            }
                        }
                        Port::Native | Port::NativeTls => {
                            Box::pin(native::serve(&state, stream, id, &peer, stop)).await;
                        }
                    }
                }
                state.metrics.connections.dec();
            });
        }
    }

    /// Takes no more requests, stores what has been gathered, and lets every open request have its answer,
    /// all within `limit`. Returns what could not be stored.
    pub async fn shut_down(&self, limit: Duration) -> ShutDown {
        let deadline = tokio::time::Instant::now() + limit;
        self.state.closing.store(true, Ordering::Release);
        self.stop.send_replace(true);
        keep(&self.state).await;
        // Commits that wait for batches are answered: no batch comes any more.
        let appends = async {
            if let Some(appends) = self.state.appends.get() {
                appends.shut_down().await;
            }
        };
        let (_, closed) =
            tokio::join!(self.state.gatherer.shut_down(limit), tokio::time::timeout_at(deadline, appends));
        if closed.is_err() {
            tracing::warn!("some ordered appends were still being committed at the end");
        }
        // Every connection holds a permit until its last answer is out.
        // Those whose inserts could not be stored in time have just been told, and that has to go out.
        let answers_until = deadline.max(tokio::time::Instant::now() + LAST_ANSWERS);
        let answered = tokio::time::timeout_at(answers_until, self.connection_limit.emptied()).await;
        if answered.is_err() {
            tracing::warn!("some requests were still being answered at the end");
        }
        // An insert that was just being handed over may have come after the flush.
        let left = deadline.saturating_duration_since(tokio::time::Instant::now()).max(LAST_FLUSH);
        self.state.gatherer.shut_down(left).await
    }
}

/// Makes TLS for gRPC. A client of gRPC must be offered HTTP/2 before it speaks it.
fn for_grpc(tls: &Arc<rustls::ServerConfig>) -> TlsAcceptor {
    let mut tls = (**tls).clone();
    tls.alpn_protocols = vec![b"h2".to_vec()];
    TlsAcceptor::from(Arc::new(tls))
}

/// Registers metrics of the bounds, for alerts on how full the journal and the buffers are.
fn register_bounds(settings: &Settings, registry: &mut Registry) {
    for (name, of, bytes) in [
        ("windrow_journal_max", "journal.max_bytes", settings.journal.max_bytes),
        ("windrow_buffers_max", "gather.max_buffer_bytes", settings.gather.max_buffer_bytes),
    ] {
        let help = format!("The setting {of}");
        registry.register_with_unit(name, help, Unit::Bytes, ConstGauge::new(bytes as i64));
    }
}

fn max_table_bytes(gather: &GatherSettings) -> u64 {
    (gather.max_buffer_bytes as f64 * gather.max_table_share) as u64
}

async fn handshake(stream: TcpStream, tls: Option<TlsAcceptor>) -> Option<Stream> {
    stream.set_nodelay(true).ok()?;
    let Some(acceptor) = tls else { return Some(Stream::Plain(stream)) };
    let stream = tokio::time::timeout(HANDSHAKE_TIMEOUT, acceptor.accept(stream)).await.ok()?.ok()?;
    Some(Stream::Tls(Box::new(tokio_rustls::TlsStream::Server(stream))))
}

/// Returns the span that a client's request belongs to; none if there are two fields, because it is not clear
/// which one is meant.
fn parent_of(head: &RequestHead) -> Option<Parent> {
    let mut given = head.fields().filter(|(name, _)| name.eq_ignore_ascii_case("traceparent"));
    let (_, traceparent) = given.next().filter(|_| given.next().is_none())?;
    Parent::of_header(traceparent, head.field("tracestate"))
}

async fn serve(state: &Arc<State>, mut connection: Connection, id: u64, peer: &Peer, mut stop: watch::Receiver<bool>) {
    let (mut out, mut latest) = (Vec::new(), LatestInsert::default());
    // Only gateways of a cluster look at it.
    let mut answered: Option<Instant> = None;
    // One future for the connection's life: making it anew for each request would take a lock each time.
    let stop = stop.wait_for(|stop| *stop);
    tokio::pin!(stop);
    loop {
        let next = tokio::select! {
            biased;
            next = peer.permit.wait_for(connection.next_request()) => next,
            _ = &mut stop => return,
        };
        // Somebody else has its permit.
        let Some(next) = next else { return };
        let refused = match next {
            Ok(NextRequest::Request(head)) => {
                let arrived = Instant::now();
                let tracer = state.options.tracer.as_ref();
                let trace = tracer.and_then(|tracer| tracer.begin(parent_of(&head), arrived));
                let back_after =
                    state.cluster.as_ref().map(|_| answered.map_or(Duration::MAX, |answered| arrived - answered));
                let origin = Origin { connection_id: id, arrived, back_after, trace: trace.as_ref() };
                let after = exchange(state, &mut connection, &head, (origin, peer), &mut latest, &mut out).await;
                answered = state.cluster.as_ref().map(|_| Instant::now());
                trace.into_iter().for_each(RequestTrace::end);
                match after {
                    After::KeepAlive if !state.is_closing() => continue,
                    _ => return connection.close().await,
                }
            }
            Ok(NextRequest::Closed) | Err(_) => return,
            Ok(NextRequest::Refused(error)) => (error.status(), error.to_string()),
            Ok(NextRequest::TooSlow) => (408, "the request's head did not come in time".to_owned()),
        };
        answer::unreadable(&mut out, refused.0, &refused.1);
        // The client may be gone; the connection ends either way.
        let _ = connection.send(&out).await;
        return connection.close().await;
    }
}
