//! The reports of a simulated program: requests that it has served, as traces, log records and metrics.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fastrand::Rng;
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{any_value, AnyValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs};
use opentelemetry_proto::tonic::metrics::v1::{
    metric, number_data_point, AggregationTemporality, Gauge, Histogram, HistogramDataPoint, Metric, NumberDataPoint,
    ResourceMetrics, ScopeMetrics, Sum,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{span, status, ResourceSpans, ScopeSpans, Span, Status};

/// A route that a program serves: its typical time, and how many of a thousand requests fail.
struct Route {
    service: &'static str,
    name: &'static str,
    typical_ms: f64,
    failures: u32,
}

const fn route(service: &'static str, name: &'static str, typical_ms: f64, failures: u32) -> Route {
    Route { service, name, typical_ms, failures }
}

const ROUTES: [Route; 8] = [
    route("frontend", "GET /", 12.0, 1),
    route("frontend", "GET /search", 85.0, 4),
    route("catalogue", "GET /products/{id}", 9.0, 1),
    route("cart", "POST /cart", 18.0, 2),
    route("cart", "GET /cart", 6.0, 1),
    route("checkout", "POST /orders", 140.0, 15),
    route("payment", "POST /pay", 260.0, 40),
    route("shipping", "GET /quotes", 45.0, 8),
];
const REQUESTS_PER_TURN: usize = 3;
const BOUNDS_MS: [f64; 5] = [10.0, 50.0, 100.0, 500.0, 1000.0];

/// A simulated program that reports about itself.
pub(super) struct Program {
    route: &'static Route,
    resource: Resource,
    scope: InstrumentationScope,
    began: SystemTime,
    served: u64,
    failed: u64,
    rng: Rng,
}

/// One report of each signal. The numbers count rows as they come into tables.
pub(super) struct Told {
    pub(super) logs: (u64, ExportLogsServiceRequest),
    pub(super) traces: (u64, ExportTraceServiceRequest),
    pub(super) metrics: (u64, ExportMetricsServiceRequest),
}

/// A request that the program has served.
struct Served {
    ended: SystemTime,
    took: Duration,
    is_failure: bool,
    trace: [u8; 16],
    span: [u8; 8],
}

impl Program {
    /// Makes a program. `run` is the name of the scope, by which the run's rows are found.
    pub(super) fn new(index: usize, run: &str) -> Program {
        let route = &ROUTES[index % ROUTES.len()];
        let attributes = vec![
            text("service.name", route.service),
            text("service.instance.id", &format!("{}-{index}", route.service)),
            text("host.name", &format!("node-{}", index % 12)),
        ];
        Program {
            route,
            resource: Resource { attributes, ..Resource::default() },
            scope: InstrumentationScope { name: run.to_owned(), ..InstrumentationScope::default() },
            began: SystemTime::now(),
            served: 0,
            failed: 0,
            rng: Rng::with_seed(index as u64),
        }
    }

    /// Returns the reports about everything since the last call.
    pub(super) fn tell(&mut self) -> Told {
        let now = SystemTime::now();
        let served: Vec<Served> = (0..REQUESTS_PER_TURN).map(|_| self.serve(now)).collect();
        self.served += served.len() as u64;
        self.failed += served.iter().filter(|served| served.is_failure).count() as u64;
        let logs: Vec<LogRecord> = served.iter().map(|served| self.log(served)).collect();
        let spans: Vec<Span> = served.iter().flat_map(|served| self.spans(served)).collect();
        let metrics = self.metrics(now, &served);
        let (resource, scope) = (Some(self.resource.clone()), Some(self.scope.clone()));
        Told {
            logs: (
                logs.len() as u64,
                ExportLogsServiceRequest {
                    resource_logs: vec![ResourceLogs {
                        resource: resource.clone(),
                        scope_logs: vec![ScopeLogs { scope: scope.clone(), log_records: logs, ..ScopeLogs::default() }],
                        ..ResourceLogs::default()
                    }],
                },
            ),
            traces: (
                spans.len() as u64,
                ExportTraceServiceRequest {
                    resource_spans: vec![ResourceSpans {
                        resource: resource.clone(),
                        scope_spans: vec![ScopeSpans { scope: scope.clone(), spans, ..ScopeSpans::default() }],
                        ..ResourceSpans::default()
                    }],
                },
            ),
            metrics: (
                metrics.len() as u64,
                ExportMetricsServiceRequest {
                    resource_metrics: vec![ResourceMetrics {
                        resource,
                        scope_metrics: vec![ScopeMetrics { scope, metrics, ..ScopeMetrics::default() }],
                        ..ResourceMetrics::default()
                    }],
                },
            ),
        }
    }

    /// Serves one request. Most take about the typical time, and a few take much longer.
    fn serve(&mut self, now: SystemTime) -> Served {
        let spread = 0.5 + self.rng.f64() + if self.rng.u32(..100) < 3 { 6.0 * self.rng.f64() } else { 0.0 };
        Served {
            ended: now,
            took: Duration::from_secs_f64(self.route.typical_ms * spread / 1000.0),
            is_failure: self.rng.u32(..1000) < self.route.failures,
            trace: self.rng.u128(1..).to_be_bytes(),
            span: self.rng.u64(1..).to_be_bytes(),
        }
    }

    fn log(&self, served: &Served) -> LogRecord {
        let took_ms = served.took.as_secs_f64() * 1000.0;
        let (number, name, what) = match served.is_failure {
            true => (17, "ERROR", "failed: the service behind it did not answer in time"),
            false => (9, "INFO", "was served"),
        };
        LogRecord {
            time_unix_nano: nanoseconds(served.ended),
            severity_number: number,
            severity_text: name.to_owned(),
            body: value(&format!("{} {what} after {took_ms:.0} ms", self.route.name)),
            attributes: vec![text("http.route", self.route.name)],
            trace_id: served.trace.to_vec(),
            span_id: served.span.to_vec(),
            ..LogRecord::default()
        }
    }

    /// Returns the span of a request, and the span of its database query.
    fn spans(&self, served: &Served) -> [Span; 2] {
        let ended = nanoseconds(served.ended);
        let took = served.took.as_nanos() as u64;
        let code = if served.is_failure { status::StatusCode::Error } else { status::StatusCode::Unset };
        let request = Span {
            trace_id: served.trace.to_vec(),
            span_id: served.span.to_vec(),
            name: self.route.name.to_owned(),
            kind: span::SpanKind::Server as i32,
            start_time_unix_nano: ended - took,
            end_time_unix_nano: ended,
            attributes: vec![text("http.route", self.route.name)],
            status: Some(Status { code: code as i32, ..Status::default() }),
            ..Span::default()
        };
        let query = Span {
            span_id: (u64::from_be_bytes(served.span) ^ 1).to_be_bytes().to_vec(),
            parent_span_id: served.span.to_vec(),
            name: "SELECT".to_owned(),
            kind: span::SpanKind::Client as i32,
            start_time_unix_nano: ended - took * 3 / 4,
            attributes: vec![text("db.system.name", "postgresql")],
            status: None,
            ..request.clone()
        };
        [request, query]
    }

    /// Returns one point of each kind: how many requests were served, how long the last ones took, how many wait.
    fn metrics(&mut self, now: SystemTime, served: &[Served]) -> Vec<Metric> {
        let (start_time_unix_nano, time_unix_nano) = (nanoseconds(self.began), nanoseconds(now));
        let attributes = vec![text("http.route", self.route.name)];
        let number = |value: i64| NumberDataPoint {
            attributes: attributes.clone(),
            start_time_unix_nano,
            time_unix_nano,
            value: Some(number_data_point::Value::AsInt(value)),
            ..NumberDataPoint::default()
        };
        let sum = |value: u64| {
            metric::Data::Sum(Sum {
                data_points: vec![number(value as i64)],
                aggregation_temporality: AggregationTemporality::Cumulative as i32,
                is_monotonic: true,
            })
        };
        let took_ms: Vec<f64> = served.iter().map(|served| served.took.as_secs_f64() * 1000.0).collect();
        let mut bucket_counts = vec![0; BOUNDS_MS.len() + 1];
        took_ms.iter().for_each(|ms| bucket_counts[BOUNDS_MS.iter().filter(|bound| ms > bound).count()] += 1);
        let durations = metric::Data::Histogram(Histogram {
            data_points: vec![HistogramDataPoint {
                attributes: attributes.clone(),
                start_time_unix_nano,
                time_unix_nano,
                count: took_ms.len() as u64,
                sum: Some(took_ms.iter().sum()),
                bucket_counts,
                explicit_bounds: BOUNDS_MS.to_vec(),
                ..HistogramDataPoint::default()
            }],
            aggregation_temporality: AggregationTemporality::Delta as i32,
        });
        let waiting = metric::Data::Gauge(Gauge { data_points: vec![number(self.rng.i64(0..20))] });
        let named = |name: &str, unit: &str, data| Metric {
            name: name.to_owned(),
            unit: unit.to_owned(),
            data: Some(data),
            ..Metric::default()
        };
        vec![
            named("http.server.requests", "1", sum(self.served)),
            named("http.server.failures", "1", sum(self.failed)),
            named("http.server.duration", "ms", durations),
            named("http.server.waiting", "1", waiting),
        ]
    }
}

fn nanoseconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}

fn value(text: &str) -> Option<AnyValue> {
    Some(AnyValue { value: Some(any_value::Value::StringValue(text.to_owned())) })
}

fn text(key: &str, text: &str) -> KeyValue {
    KeyValue { key: key.to_owned(), value: value(text), ..KeyValue::default() }
}
