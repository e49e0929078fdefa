//! The admin port: health, metrics, and what is under way as JSON.

mod exposition;

use std::sync::Arc;

use prometheus_client::registry::Registry;
use serde_json::json;
use tokio::net::TcpListener;
use windrow_gatherer::Gatherer;
use windrow_http::{Connection, Limits, Method, NextRequest, RequestHead, ResponseBuilder, Stream};
use windrow_sink::ClickHouseSink;

use crate::data::same_secret;
use crate::options::AdminOptions;

/// Whether the gateway can do its work now, and a sentence that says more.
type Readiness = dyn Fn() -> Result<String, String> + Send + Sync;

pub struct AdminServer {
    registry: Registry,
    gatherer: Gatherer<ClickHouseSink>,
    options: AdminOptions,
    ready: Box<Readiness>,
    limits: Arc<Limits>,
}

fn end(response: ResponseBuilder<'_>, head: &RequestHead, body: &[u8]) {
    match head.method() {
        Method::Head => response.number("Content-Length", body.len() as u64).end(),
        _ => response.body(body),
    }
}

impl AdminServer {
    pub fn new(
        registry: Registry,
        gatherer: Gatherer<ClickHouseSink>,
        options: AdminOptions,
        ready: impl Fn() -> Result<String, String> + Send + Sync + 'static,
    ) -> AdminServer {
        let limits = Limits { max_head_bytes: 64 * 1024, max_fields: 100, ..Limits::default() };
        AdminServer { registry, gatherer, options, ready: Box::new(ready), limits: Arc::new(limits) }
    }

    /// Serves until the task is dropped.
    pub async fn run(self: Arc<Self>, listener: TcpListener) {
        loop {
            let Ok((stream, _)) = listener.accept().await else {
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
                continue;
            };
            let server = self.clone();
            tokio::spawn(async move {
                let connection = Connection::new(Stream::Plain(stream), server.limits.clone());
                // A scraper that goes away in the middle is its own business.
                let _ = server.serve(connection).await;
            });
        }
    }

    async fn serve(&self, mut connection: Connection) -> std::io::Result<()> {
        let mut out = Vec::new();
        while let NextRequest::Request(head) = connection.next_request().await? {
            self.answer(&head, &mut out);
            connection.send(&out).await?;
            if !head.keep_alive() {
                break;
            }
        }
        connection.close().await;
        Ok(())
    }

    fn answer(&self, head: &RequestHead, out: &mut Vec<u8>) {
        let text = "text/plain; charset=utf-8";
        let path = head.target().split('?').next().unwrap_or("");
        // Health is asked by machines that have no secrets, and tells none.
        let open = matches!(path, "/healthz" | "/readyz");
        if !open && !self.is_authorised(head) {
            let response =
                ResponseBuilder::new(out, 401).field("WWW-Authenticate", "Bearer").field("Content-Type", text);
            return end(response, head, b"the admin port needs the token of the setting admin.token\n");
        }
        let (status, kind, body) = match path {
            _ if !matches!(head.method(), Method::Get | Method::Head) => (405, text, "only GET\n".to_owned()),
            "/healthz" => (200, text, "ok\n".to_owned()),
            "/readyz" => match (self.ready)() {
                Ok(said) => (200, text, format!("{said}\n")),
                Err(reason) => (503, text, format!("{reason}\n")),
            },
            "/metrics" => (200, "text/plain; version=0.0.4; charset=utf-8", self.metrics()),
            "/api/v1/buffers" => (200, "application/json", self.buffers().to_string()),
            _ => (404, text, "there are /healthz, /readyz, /metrics and /api/v1/buffers\n".to_owned()),
        };
        end(ResponseBuilder::new(out, status).field("Content-Type", kind), head, body.as_bytes());
    }

    fn is_authorised(&self, head: &RequestHead) -> bool {
        let Some(wanted) = &self.options.token else { return true };
        let given = head.field_str("authorization").and_then(|field| field.strip_prefix("Bearer "));
        given.is_some_and(|given| same_secret(given.trim(), wanted))
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
