//! Sends spans to an OpenTelemetry collector: the setting `tracing.otlp_endpoint`.
//!
//! The exporter and its queue are OpenTelemetry's own. A collector that is away costs nothing but spans: the
//! queue is bounded, and spans that find no room are dropped and counted.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::Duration;

use opentelemetry::trace::{Link, SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState};
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_otlp::{WithExportConfig, WithTonicConfig};
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{
    BatchConfigBuilder, BatchSpanProcessor, SpanData, SpanEvents, SpanExporter, SpanLinks, SpanProcessor,
};
use opentelemetry_sdk::Resource;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;
use tonic::metadata::{Ascii, MetadataKey, MetadataMap, MetadataValue};
use tonic::transport::ClientTlsConfig;
use windrow_engine::trace::{Exporter, Kind, Span, Tracer, Value};
use windrow_settings::TracingSettings;

const QUEUE_SPANS: usize = 8192;
const BATCH_SPANS: usize = 512;
const SEND_EVERY: Duration = Duration::from_secs(1);
const SEND_TIMEOUT: Duration = Duration::from_secs(5);
/// Time that the last spans may take at the end.
const LAST_SPANS: Duration = Duration::from_secs(1);

/// The tracer and its queue, until it is stopped.
pub(crate) struct Traces {
    pub(crate) tracer: Arc<Tracer>,
    queue: Arc<Queue>,
}

struct Queue {
    processor: BatchSpanProcessor,
    scope: InstrumentationScope,
    waiting: Arc<AtomicUsize>,
    dropped: Counter,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Outcome {
    result: &'static str,
}

impl Traces {
    /// Starts the exporter. It must be called inside the runtime: the exporter's channel is tonic's.
    pub(crate) fn start(settings: &TracingSettings, registry: &mut Registry) -> Result<Traces, String> {
        let endpoint = &settings.otlp_endpoint;
        let mut builder = opentelemetry_otlp::SpanExporter::builder()
            .with_tonic()
            .with_endpoint(endpoint)
            .with_timeout(SEND_TIMEOUT)
            .with_metadata(metadata(settings.headers.expose())?);
        match endpoint.split_once("://") {
            Some(("https", _)) => builder = builder.with_tls_config(ClientTlsConfig::new().with_enabled_roots()),
            Some(("http", _)) => {}
            _ => return Err(format!("tracing.otlp_endpoint: {endpoint:?} is no http:// or https:// URL")),
        }
        let exporter = builder.build().map_err(|error| format!("tracing.otlp_endpoint: {endpoint:?}: {error}"))?;
        let spans = Family::<Outcome, Counter>::default();
        registry.register("windrow_trace_spans", "Spans of traces, by what became of them.", spans.clone());
        let count = |result| spans.get_or_create_owned(&Outcome { result });
        let (sent, failed, dropped) = (count("sent"), count("failed"), count("dropped"));
        let waiting = Arc::new(AtomicUsize::new(0));
        let counting =
            Counting { exporter, waiting: waiting.clone(), sent, failed, is_failing: AtomicBool::new(false) };
        let config = BatchConfigBuilder::default()
            .with_max_queue_size(QUEUE_SPANS)
            .with_max_export_batch_size(BATCH_SPANS)
            .with_scheduled_delay(SEND_EVERY)
            .build();
        let mut processor = BatchSpanProcessor::new(counting, config);
        let of_service = [
            KeyValue::new("service.name", "windrow"),
            KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
            KeyValue::new("process.pid", i64::from(std::process::id())),
        ];
        processor.set_resource(&Resource::builder_empty().with_attributes(of_service).build());
        let scope = InstrumentationScope::builder("windrow").with_version(env!("CARGO_PKG_VERSION")).build();
        let queue = Arc::new(Queue { processor, scope, waiting, dropped });
        Ok(Traces { tracer: Arc::new(Tracer::new(queue.clone(), settings.sample_ratio)), queue })
    }

    /// Sends the spans that are left, if the collector takes them in time.
    pub(crate) async fn stop(self) {
        let queue = self.queue;
        // It waits for its thread.
        let stopped = tokio::task::spawn_blocking(move || queue.processor.shutdown_with_timeout(LAST_SPANS)).await;
        if let Ok(Err(error)) = stopped {
            tracing::warn!(%error, "the last spans could not be sent to the collector");
        }
    }
}

impl Exporter for Queue {
    fn export(&self, span: Span) {
        if self.waiting.fetch_add(1, Ordering::Relaxed) >= QUEUE_SPANS {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            self.dropped.inc();
            return;
        }
        self.processor.on_end(self.data(span));
    }
}

impl Queue {
    fn data(&self, span: Span) -> SpanData {
        let mut links = SpanLinks::default();
        links.links = span.links.iter().map(|link| Link::with_context(context(link))).collect();
        links.dropped_count = span.dropped_links;
        SpanData {
            span_context: context(&span.context),
            parent_span_id: SpanId::from(span.parent_span_id),
            parent_span_is_remote: span.kind == Kind::Server,
            span_kind: match span.kind {
                Kind::Server => SpanKind::Server,
                Kind::Client => SpanKind::Client,
                Kind::Consumer => SpanKind::Consumer,
                Kind::Internal => SpanKind::Internal,
            },
            name: span.name.into(),
            start_time: span.start,
            end_time: span.end,
            attributes: span.attributes.into_iter().map(|(key, value)| KeyValue::new(key, shown(value))).collect(),
            dropped_attributes_count: 0,
            events: SpanEvents::default(),
            links,
            status: span.error.map_or(Status::Unset, Status::error),
            instrumentation_scope: self.scope.clone(),
        }
    }
}

fn shown(value: Value) -> opentelemetry::Value {
    match value {
        Value::Text(text) => text.into(),
        Value::Number(number) => i64::try_from(number).unwrap_or(i64::MAX).into(),
    }
}

fn context(of: &windrow_engine::trace::SpanContext) -> SpanContext {
    // What others have written wrongly is theirs; a trace is not lost for it.
    let state = of.state.parse::<TraceState>().unwrap_or_default();
    let (trace, span) = (TraceId::from(of.trace_id), SpanId::from(of.span_id));
    SpanContext::new(trace, span, TraceFlags::SAMPLED, false, state)
}

/// Reads the headers. An error never quotes a value: the value is a secret.
fn metadata(headers: &str) -> Result<MetadataMap, String> {
    let mut metadata = MetadataMap::new();
    for (number, header) in headers.split(',').map(str::trim).filter(|header| !header.is_empty()).enumerate() {
        let problem = || format!("tracing.headers: number {} is no `name=value` of plain text", number + 1);
        let (name, value) = header.split_once('=').ok_or_else(problem)?;
        let name = name.trim().to_ascii_lowercase().parse::<MetadataKey<Ascii>>().map_err(|_| problem())?;
        let mut value = value.trim().parse::<MetadataValue<Ascii>>().map_err(|_| problem())?;
        value.set_sensitive(true);
        metadata.insert(name, value);
    }
    Ok(metadata)
}

/// The exporter, with counters of the spans that were sent or not.
#[derive(Debug)]
struct Counting<E> {
    exporter: E,
    waiting: Arc<AtomicUsize>,
    sent: Counter,
    failed: Counter,
    is_failing: AtomicBool,
}

impl<E: SpanExporter> SpanExporter for Counting<E> {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let spans = batch.len();
        self.waiting.fetch_sub(spans, Ordering::Relaxed);
        let exported = self.exporter.export(batch).await;
        match &exported {
            Ok(()) => {
                self.sent.inc_by(spans as u64);
                if self.is_failing.swap(false, Ordering::Relaxed) {
                    tracing::info!("the collector takes traces again");
                }
            }
            Err(error) => {
                self.failed.inc_by(spans as u64);
                if !self.is_failing.swap(true, Ordering::Relaxed) {
                    tracing::warn!(%error, "traces can't be sent to tracing.otlp_endpoint; they are dropped meanwhile");
                }
            }
        }
        exported
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.exporter.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_names_and_values_and_errors_show_neither() {
        let read = metadata("authorization=Bearer a=b, X-Team=ops,").expect("headers");
        assert_eq!(read.get("authorization").and_then(|value| value.to_str().ok()), Some("Bearer a=b"));
        assert_eq!(read.get("x-team").and_then(|value| value.to_str().ok()), Some("ops"));
        for bad in ["hidden", "a b=hidden", "=hidden", "a=hid\nden"] {
            let error = metadata(bad).expect_err(bad);
            assert!(error.contains("number 1") && !error.contains("hid"), "{error}");
        }
    }
}
