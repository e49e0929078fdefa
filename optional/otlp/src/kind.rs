//! The signals that are sent, and the kinds of tables that they go to.

/// The content of a request. Each signal has an address of its own, over gRPC and over HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Signal {
    Logs,
    Traces,
    Metrics,
}

/// The content of a table. Metrics have one table for each kind of point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    Logs,
    Traces,
    Gauge,
    Sum,
    Summary,
    Histogram,
    ExponentialHistogram,
}

impl Kind {
    pub const ALL: [Kind; 7] =
        [Kind::Logs, Kind::Traces, Kind::Gauge, Kind::Sum, Kind::Summary, Kind::Histogram, Kind::ExponentialHistogram];

    pub fn signal(self) -> Signal {
        match self {
            Kind::Logs => Signal::Logs,
            Kind::Traces => Signal::Traces,
            _ => Signal::Metrics,
        }
    }

    /// Returns the name of the kind in settings and in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Logs => "logs",
            Kind::Traces => "traces",
            Kind::Gauge => "gauge",
            Kind::Sum => "sum",
            Kind::Summary => "summary",
            Kind::Histogram => "histogram",
            Kind::ExponentialHistogram => "exponential_histogram",
        }
    }

    /// Returns the exporter's own name for the table.
    pub fn default_table(self) -> &'static str {
        match self {
            Kind::Logs => "otel_logs",
            Kind::Traces => "otel_traces",
            Kind::Gauge => "otel_metrics_gauge",
            Kind::Sum => "otel_metrics_sum",
            Kind::Summary => "otel_metrics_summary",
            Kind::Histogram => "otel_metrics_histogram",
            Kind::ExponentialHistogram => "otel_metrics_exponential_histogram",
        }
    }
}
