//! The admin port: health, metrics, what is under way as JSON, and the dead letters.

mod answer;
mod dead_letters;
mod exposition;

use std::sync::Arc;

use prometheus_client::registry::Registry;
use serde_json::json;
use tokio::net::TcpListener;
use windrow_engine::Gatherer;
use windrow_http::{
    Collected, Connection, ConnectionLimit, ConnectionPermit, Limits, Method, NextRequest, RequestHead, Stream,
};
use windrow_settings::Difference;

use self::answer::Answer;
use self::dead_letters::DeadLettersApi;
use crate::backend::BackendSink;
use crate::data::DataServer;
use crate::options::AdminOptions;
use crate::pipelines::pipelines_json;
use crate::state::State;

pub use dead_letters::{dead_letter_json, listing_json};

const DEAD_LETTERS: &str = "/api/v1/dead-letters";
/// A selection of some ten thousand dead letters by their ids.
const MAX_BODY_BYTES: usize = 1 << 20;
/// Nobody has to be known to open one, and the files of the process are the data port's, too. One more is closed at
/// once.
pub const MAX_ADMIN_CONNECTIONS: usize = 500;

/// Whether the gateway can do its work now, and a sentence that says more.
type Readiness = dyn Fn() -> Result<String, String> + Send + Sync;

/// Reads the settings anew, and says which differ; an error says what is wrong with them.
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
}

impl AdminServer {
    pub fn new(
        registry: Registry,
        data: &DataServer,
        options: AdminOptions,
        ready: impl Fn() -> Result<String, String> + Send + Sync + 'static,
        reload: impl Fn() -> Result<Difference, String> + Send + Sync + 'static,
    ) -> AdminServer {
        let limits = Limits { max_head_bytes: 64 * 1024, max_fields: 100, ..Limits::default() };
        let (gatherer, state) = (data.gatherer().clone(), data.state().clone());
        let dead_letters = DeadLettersApi::new(state.clone());
        let (ready, reload, limits) = (Box::new(ready), Box::new(reload), Arc::new(limits));
        AdminServer { registry, gatherer, state, dead_letters, options, ready, reload, limits }
    }

    /// Serves until the runtime ends.
    pub fn start(self, listener: TcpListener) {
        let server = Arc::new(self);
        tokio::spawn(async move { tokio::join!(server.accept(listener), server.dead_letters.discard_old()) });
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
        Ok(match path {
            "/api/v1/reload" if *head.method() == Method::Post => self.reload(),
            "/api/v1/reload" => Answer::text(405, "only POST\n"),
            _ if !matches!(head.method(), Method::Get | Method::Head) => Answer::text(405, "only GET\n"),
            "/healthz" => Answer::text(200, "ok\n"),
            "/readyz" => match (self.ready)() {
                Ok(said) => Answer::text(200, format!("{said}\n")),
                Err(reason) => Answer::text(503, format!("{reason}\n")),
            },
            "/metrics" => Answer::new(200, "text/plain; version=0.0.4; charset=utf-8", self.metrics()),
            "/api/v1/buffers" => Answer::json(200, &self.buffers()),
            "/api/v1/kafka" => Answer::json(200, &pipelines_json(&self.state.pipelines.get())),
            _ => Answer::text(
                404,
                "there are /healthz, /readyz, /metrics, /api/v1/buffers, /api/v1/kafka, /api/v1/dead-letters and \
                 /api/v1/reload\n",
            ),
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

    /// Health is asked by machines that have no secrets, and tells none.
    fn is_allowed(&self, head: &RequestHead) -> bool {
        matches!(head.target().split('?').next(), Some("/healthz" | "/readyz")) || self.is_authorised(head)
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
