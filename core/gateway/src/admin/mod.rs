//! The admin port: health, metrics, the dashboard, the gateway's state as JSON, and the dead letters.

mod answer;
mod dead_letters;
mod exposition;
mod history;
mod overview;
mod page;
mod process;
mod replicas;

use std::sync::Arc;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use serde_json::json;
use tokio::net::TcpListener;
use windrow_engine::Gatherer;
use windrow_http::{
    Collected, Connection, ConnectionLimit, ConnectionPermit, Limits, Method, NextRequest, RequestHead, Stream,
};
use windrow_settings::Difference;

use self::answer::Answer;
use self::dead_letters::{parameters, DeadLettersApi};
use self::history::{now_ms, History};
use self::overview::TableQuery;
use self::process::ProcessMetrics;
use self::replicas::ReplicaMetrics;
use crate::backend::BackendSink;
use crate::cluster::Cluster;
use crate::data::DataServer;
use crate::options::AdminOptions;
use crate::pipelines::pipelines_json;
use crate::state::State;

pub use dead_letters::{dead_letter_json, listing_json};

const DEAD_LETTERS: &str = "/api/v1/dead-letters";
const DRAIN: &str = "/api/v1/replicas/drain";
/// Largest body, in bytes: enough to select some ten thousand dead letters by their ids.
const MAX_BODY_BYTES: usize = 1 << 20;
/// Largest number of connections; one more is closed at once. Anybody can open a connection, and the
/// process's file descriptors are shared with the data port.
pub const MAX_ADMIN_CONNECTIONS: usize = 500;

const PATHS: &str =
    "there are / (the dashboard), /healthz, /readyz, /metrics, and under /api/v1/: status, history, tables, \
     refusals, appends, settings, buffers, cluster, kafka, otlp, replicas, dead-letters and reload\n";
const FROM_ELSEWHERE: &str =
    "without the setting admin.token this port answers to its own page, and by its address or as \
     localhost: not to other sites, nor by another name";

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Build {
    version: &'static str,
}

/// The answer to the question whether the gateway can do its work now.
#[derive(Debug, PartialEq, Eq)]
pub struct Verdict {
    pub is_ready: bool,
    /// The answer in words, for people.
    pub sentence: String,
    /// The reason why the backend is away, as an error, if the backend is away.
    pub backend: Result<(), String>,
}

type Readiness = dyn Fn() -> Verdict + Send + Sync;

/// A function that reads the settings anew and returns which differ; its error says what is wrong with them.
type Reload = dyn Fn() -> Result<Difference, String> + Send + Sync;

pub struct AdminServer {
    registry: Registry,
    gatherer: Gatherer<BackendSink>,
    state: Arc<State>,
    dead_letters: DeadLettersApi,
    options: AdminOptions,
    ready: Box<Readiness>,
    reload: Box<Reload>,
    limits: Arc<Limits>,
    history: History,
    started_ms: u64,
}

impl AdminServer {
    pub fn new(
        mut registry: Registry,
        data: &DataServer,
        options: AdminOptions,
        ready: impl Fn() -> Verdict + Send + Sync + 'static,
        reload: impl Fn() -> Result<Difference, String> + Send + Sync + 'static,
    ) -> AdminServer {
        let limits = Limits { max_head_bytes: 64 * 1024, max_fields: 100, ..Limits::default() };
        let (gatherer, state) = (data.gatherer().clone(), data.state().clone());
        let dead_letters = DeadLettersApi::new(state.clone());
        let (ready, reload, limits) = (Box::new(ready), Box::new(reload), Arc::new(limits));
        let (history, started_ms) = (History::default(), now_ms());
        registry.register_collector(Box::new(ProcessMetrics { started_ms }));
        if let Some(replicas) = replicas::several(&state.backend) {
            registry.register_collector(Box::new(ReplicaMetrics(replicas.clone())));
        }
        let build = Family::<Build, Gauge>::default();
        build.get_or_create(&Build { version: env!("CARGO_PKG_VERSION") }).set(1);
        registry.register("windrow_build_info", "1, with the version that runs", build);
        AdminServer { registry, gatherer, state, dead_letters, options, ready, reload, limits, history, started_ms }
    }

    /// Serves the port until the runtime ends.
    pub fn start(self, listener: TcpListener) {
        let server = Arc::new(self);
        let recorder = server.clone();
        tokio::spawn(async move { recorder.history.record(&recorder.gatherer, &recorder.state).await });
        tokio::spawn(async move { server.accept(listener).await });
    }

    async fn accept(self: &Arc<Self>, listener: TcpListener) {
        let connection_limit = ConnectionLimit::new(MAX_ADMIN_CONNECTIONS);
        loop {
            let Ok((stream, _)) = listener.accept().await else {
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
                continue;
            };
            let Some(permit) = connection_limit.take() else { continue };
            let server = self.clone();
            tokio::spawn(async move {
                let connection = Connection::new(Stream::Plain(stream), server.limits.clone());
                // A scraper that goes away in the middle is its own business.
                let _ = server.serve(connection, &permit).await;
            });
        }
    }

    async fn serve(&self, mut connection: Connection, permit: &ConnectionPermit) -> std::io::Result<()> {
        let mut out = Vec::new();
        while let Some(NextRequest::Request(head)) = permit.wait_for(connection.next_request()).await.transpose()? {
            let answer = match self.is_allowed(&head) {
                true if !self.is_from_here(&head) => Answer::error(403, FROM_ELSEWHERE),
                true => {
                    // Without a token nobody can be told from anybody.
                    if self.options.token.is_some() && self.is_authorised(&head) {
                        permit.is_of_user();
                    }
                    self.answer(&head, &mut connection).await?
                }
                false => Answer::text(401, "the admin port needs the token of the setting admin.token\n"),
            };
            answer.write(&head, &mut out);
            connection.send(&out).await?;
            if !head.keep_alive() {
                break;
            }
        }
        connection.close().await;
        Ok(())
    }

    async fn answer(&self, head: &RequestHead, connection: &mut Connection) -> std::io::Result<Answer> {
        let (path, query) = head.target().split_once('?').unwrap_or((head.target(), ""));
        if let Some(rest) = path.strip_prefix(DEAD_LETTERS).filter(|rest| rest.is_empty() || rest.starts_with('/')) {
            let (mut body, _) = connection.body().await?;
            return Ok(match body.collect(MAX_BODY_BYTES).await.map_err(std::io::Error::other)? {
                Collected::Whole(body) => self.dead_letters.answer(head, rest, query, &body).await,
                Collected::Longer(_) => Answer::error(413, "the body is too long"),
            });
        }
        if path == DRAIN && *head.method() == Method::Post {
            let (mut body, _) = connection.body().await?;
            return Ok(match body.collect(MAX_BODY_BYTES).await.map_err(std::io::Error::other)? {
                Collected::Whole(body) => replicas::drain(&self.state, head, &body),
                Collected::Longer(_) => Answer::error(413, "the body is too long"),
            });
        }
        Ok(match path {
            "/api/v1/replicas/drain" => Answer::text(405, "only POST\n"),
            "/api/v1/reload" if *head.method() == Method::Post => self.reload(),
            "/api/v1/reload" => Answer::text(405, "only POST\n"),
            _ if !matches!(head.method(), Method::Get | Method::Head) => Answer::text(405, "only GET\n"),
            "/healthz" => Answer::text(200, "ok\n"),
            "/readyz" => {
                let Verdict { is_ready, sentence, .. } = (self.ready)();
                let names = self.is_authorised(head);
                let more = overview::unprotected_in_words(&self.state, names);
                Answer::text(if is_ready { 200 } else { 503 }, format!("{sentence}\n{more}"))
            }
            "/metrics" => Answer::new(200, "text/plain; version=0.0.4; charset=utf-8", self.metrics()),
            "/api/v1/status" => Answer::json(200, &self.status()),
            "/api/v1/history" => self.history(query),
            "/api/v1/tables" => match TableQuery::read(parameters(query)) {
                Ok(wanted) => Answer::json(200, &overview::tables(&self.gatherer, self.has_parts(), &wanted)),
                Err(sentence) => Answer::error(400, &sentence),
            },
            "/api/v1/refusals" => Answer::json(200, &overview::refusals(&self.state, &self.history)),
            "/api/v1/appends" => Answer::json(200, &overview::appends(&self.state)),
            "/api/v1/settings" => Answer::json(200, &overview::settings(&self.state)),
            "/api/v1/buffers" => Answer::json(200, &self.buffers()),
            "/api/v1/replicas" => Answer::json(200, &json!({ "replicas": replicas::shown(&self.state.backend) })),
            "/api/v1/cluster" => Answer::json(200, &Cluster::shown(self.state.cluster.as_ref())),
            "/api/v1/otlp" => Answer::json(200, &overview::otlp(&self.state, &self.history)),
            "/api/v1/kafka" => Answer::json(200, &pipelines_json(&self.state.pipelines.get())),
            _ => page::file(path).unwrap_or_else(|| Answer::text(404, PATHS)),
        })
    }

    fn history(&self, query: &str) -> Answer {
        let mut since_ms = 0;
        for (name, value) in parameters(query) {
            match value.parse() {
                Ok(number) if name == "since_ms" => since_ms = number,
                _ => return Answer::error(400, "there is one parameter, since_ms: milliseconds since 1970"),
            }
        }
        Answer::json(200, &self.history.json(since_ms, self.has_parts()))
    }

    /// Says whether the backend's tables have parts.
    fn has_parts(&self) -> bool {
        self.state.backend.takes_requests()
    }

    fn status(&self) -> serde_json::Value {
        let Verdict { is_ready, sentence, backend } = (self.ready)();
        let settings = self.state.options.settings.get();
        let usage = self.gatherer.journal_usage().unwrap_or_default();
        let journal = json!({
            "bytes": usage.file_bytes,
            "live_bytes": usage.live_bytes,
            "max_bytes": settings.journal.max_bytes,
            "inserts": self.gatherer.leftovers().inserts,
            "segments": usage.segments,
        });
        let dead_letters = self.state.dead_letters.amount();
        json!({
            "version": env!("CARGO_PKG_VERSION"),
            "now_ms": now_ms(),
            "started_ms": self.started_ms,
            "ready": is_ready,
            "sentence": sentence,
            "backend": overview::backend(&self.state, backend),
            "connections": self.state.metrics.connections.get(),
            "dead_letters": dead_letters.dead_letters,
            "dead_letter_bytes": dead_letters.bytes,
            "held_bytes": self.gatherer.held_bytes(),
            "max_held_bytes": settings.gather.max_buffer_bytes,
            "journal": journal,
            "unprotected_tables": overview::unprotected(&self.state),
            "has_token": self.options.token.is_some(),
        })
    }

    fn reload(&self) -> Answer {
        match tokio::task::block_in_place(|| (self.reload)()) {
            Ok(Difference { at_reload, at_start }) => {
                Answer::json(200, &json!({ "changed": at_reload, "at_next_start": at_start }))
            }
            Err(error) => Answer::error(400, &error),
        }
    }

    /// Says whether a request has the token or needs none. Machines without secrets ask for the health, which
    /// tells no secrets. Nor do the files of the dashboard.
    fn is_allowed(&self, head: &RequestHead) -> bool {
        let path = head.target().split('?').next().unwrap_or_default();
        matches!(path, "/healthz" | "/readyz") || page::is_of_page(path) || self.is_authorised(head)
    }

    /// Says whether a request can be taken without a token: it comes from this port's own page, or from a
    /// program. A page of another site could use its reader's browser: with this port's address, while
    /// `Origin` names the other site, or with a name of its own that it lets lead to this address.
    fn is_from_here(&self, head: &RequestHead) -> bool {
        if self.options.token.is_some() || !head.target().starts_with("/api/") {
            return true;
        }
        let Some(host) = head.field_str("host") else { return true };
        let origin = head.field_str("origin").map(|origin| origin.rsplit_once("://").map_or(origin, |(_, host)| host));
        if origin.is_some_and(|origin| origin != host) {
            return false;
        }
        let name = match host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
            _ => host,
        };
        let name = name.trim_start_matches('[').trim_end_matches(']');
        name.eq_ignore_ascii_case("localhost") || name.parse::<std::net::IpAddr>().is_ok()
    }

    fn is_authorised(&self, head: &RequestHead) -> bool {
        let Some(wanted) = &self.options.token else { return true };
        let given = head.field_str("authorization").and_then(|field| field.strip_prefix("Bearer "));
        given.is_some_and(|given| windrow_clickhouse::same_secret(given.trim(), wanted))
    }

    fn metrics(&self) -> String {
        self.gatherer.update_gauges();
        let mut text = String::new();
        match prometheus_client::encoding::text::encode(&mut text, &self.registry) {
            Ok(()) => exposition::plain(&text),
            Err(error) => {
                tracing::error!(%error, "metrics could not be written");
                String::new()
            }
        }
    }

    fn buffers(&self) -> serde_json::Value {
        let buffers = self.gatherer.buffers();
        let rows = buffers.iter().map(|buffer| {
            json!({
                "database": buffer.destination.database,
                "table": buffer.destination.table,
                "user": buffer.destination.credentials.user,
                "inserts": buffer.entries.len(),
                "bytes": buffer.entries.iter().map(|entry| entry.bytes).sum::<u64>(),
                "first_update_micros": buffer.first_update_micros,
            })
        });
        json!({ "held_bytes": self.gatherer.held_bytes(), "buffers": rows.collect::<Vec<_>>() })
    }
}
