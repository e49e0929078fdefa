//! Metrics of Flight SQL: calls by their outcome, and the streams of rows in both directions.

use std::future::Future;
use std::sync::Arc;
use std::time::Instant;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{exponential_buckets, Histogram};
use prometheus_client::registry::{Registry, Unit};
use tonic::{Code, Status};

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct MethodLabels {
    method: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CallLabels {
    method: &'static str,
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DirectionLabels {
    direction: &'static str,
}

pub(crate) struct Metrics {
    pub(crate) connections: Gauge,
    calls: Family<CallLabels, Counter>,
    seconds: Family<MethodLabels, Histogram, fn() -> Histogram>,
    pub(crate) received: Traffic,
    pub(crate) sent: Traffic,
}

/// The rows of one direction.
#[derive(Clone)]
pub(crate) struct Traffic {
    streams: Gauge,
    pub(crate) rows: Counter,
    pub(crate) bytes: Counter,
}

fn durations() -> Histogram {
    Histogram::new(exponential_buckets(0.001, 2.0, 18))
}

impl Metrics {
    pub(crate) fn register(registry: &mut Registry) -> Arc<Metrics> {
        let connections = Gauge::default();
        registry.register("windrow_flight_connections", "Open connections of Flight SQL's port", connections.clone());
        let calls = Family::<CallLabels, Counter>::default();
        let help = "Calls of Flight SQL that came to their end, by how";
        registry.register("windrow_flight_calls", help, calls.clone());
        let seconds = Family::<MethodLabels, Histogram, fn() -> Histogram>::new_with_constructor(durations);
        let help = "From a call of Flight SQL to the end of its answer";
        registry.register_with_unit("windrow_flight_call_duration", help, Unit::Seconds, seconds.clone());
        let streams = Family::<DirectionLabels, Gauge>::default();
        let (rows, bytes) =
            (Family::<DirectionLabels, Counter>::default(), Family::<DirectionLabels, Counter>::default());
        let help = "Streams of rows of Flight SQL that are open";
        registry.register("windrow_flight_streams", help, streams.clone());
        registry.register("windrow_flight_rows", "Rows that went over Flight SQL", rows.clone());
        let help = "Bytes of Arrow that went over Flight SQL";
        registry.register_with_unit("windrow_flight_payload", help, Unit::Bytes, bytes.clone());
        let traffic = |direction| {
            let labels = DirectionLabels { direction };
            Traffic {
                streams: streams.get_or_create(&labels).clone(),
                rows: rows.get_or_create(&labels).clone(),
                bytes: bytes.get_or_create(&labels).clone(),
            }
        };
        let (received, sent) = (traffic("in"), traffic("out"));
        Arc::new(Metrics { connections, calls, seconds, received, sent })
    }

    pub(crate) fn call(self: &Arc<Metrics>, method: &'static str) -> Call {
        Call { metrics: self.clone(), method, begun: Instant::now(), has_ended: false }
    }
}

impl Traffic {
    pub(crate) fn open(&self) -> OpenStream {
        self.streams.inc();
        OpenStream { traffic: self.clone() }
    }
}

/// A stream of rows. The count of open streams goes down when it is dropped.
pub(crate) struct OpenStream {
    pub(crate) traffic: Traffic,
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.traffic.streams.dec();
    }
}

/// A call that is being answered. If it is dropped before its end, it was cancelled: its client is gone, or
/// needs no more.
pub(crate) struct Call {
    metrics: Arc<Metrics>,
    method: &'static str,
    begun: Instant,
    has_ended: bool,
}

impl Call {
    /// Runs the work and ends the call with its outcome.
    pub(crate) async fn watch<T>(self, work: impl Future<Output = Result<T, Status>>) -> Result<T, Status> {
        let outcome = work.await;
        self.end(outcome.as_ref().map_or_else(Status::code, |_| Code::Ok));
        outcome
    }

    pub(crate) fn end(mut self, code: Code) {
        self.has_ended = true;
        self.count(code);
    }

    fn count(&self, code: Code) {
        let labels = CallLabels { method: self.method, outcome: outcome(code) };
        self.metrics.calls.get_or_create(&labels).inc();
        let seconds = self.metrics.seconds.get_or_create(&MethodLabels { method: self.method });
        seconds.observe(self.begun.elapsed().as_secs_f64());
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if !self.has_ended {
            self.count(Code::Cancelled);
        }
    }
}

/// Returns gRPC's name of a status code.
fn outcome(code: Code) -> &'static str {
    match code {
        Code::Ok => "ok",
        Code::Cancelled => "cancelled",
        Code::Unknown => "unknown",
        Code::InvalidArgument => "invalid_argument",
        Code::DeadlineExceeded => "deadline_exceeded",
        Code::NotFound => "not_found",
        Code::AlreadyExists => "already_exists",
        Code::PermissionDenied => "permission_denied",
        Code::ResourceExhausted => "resource_exhausted",
        Code::FailedPrecondition => "failed_precondition",
        Code::Aborted => "aborted",
        Code::OutOfRange => "out_of_range",
        Code::Unimplemented => "unimplemented",
        Code::Internal => "internal",
        Code::Unavailable => "unavailable",
        Code::DataLoss => "data_loss",
        Code::Unauthenticated => "unauthenticated",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(registry: &Registry) -> String {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, registry).unwrap();
        text
    }

    #[tokio::test]
    async fn a_call_is_counted_by_how_it_ended() {
        let mut registry = Registry::default();
        let metrics = Metrics::register(&mut registry);
        metrics.call("DoGet").watch(async { Ok(()) }).await.unwrap();
        metrics.call("DoGet").watch(async { Err::<(), _>(Status::not_found("t")) }).await.unwrap_err();
        drop(metrics.call("DoPut").watch(async { Ok(()) }));
        let text = shown(&registry);
        for (method, outcome) in [("DoGet", "ok"), ("DoGet", "not_found"), ("DoPut", "cancelled")] {
            let line = format!("windrow_flight_calls_total{{method=\"{method}\",outcome=\"{outcome}\"}} 1\n");
            assert!(text.contains(&line), "{line}{text}");
        }
        assert!(text.contains("windrow_flight_call_duration_seconds_count{method=\"DoGet\"} 2\n"), "{text}");
    }

    #[test]
    fn streams_are_open_until_they_are_dropped() {
        let mut registry = Registry::default();
        let metrics = Metrics::register(&mut registry);
        let open = metrics.sent.open();
        open.traffic.rows.inc_by(3);
        assert!(shown(&registry).contains("windrow_flight_streams{direction=\"out\"} 1\n"));
        drop(open);
        let text = shown(&registry);
        for line in
            ["streams{direction=\"out\"} 0\n", "rows_total{direction=\"out\"} 3\n", "streams{direction=\"in\"} 0\n"]
        {
            assert!(text.contains(line), "{line}{text}");
        }
    }
}
