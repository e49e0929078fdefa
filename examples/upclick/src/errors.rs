//! The errors of a demo that did not run, or did not end well.

use std::fmt;

use crate::summary::DemoSummary;

#[derive(Debug)]
pub enum DemoError {
    /// An option can't be used.
    Options(String),
    /// The demo's own sites could not be served.
    Sites(std::io::Error),
    /// A query to a gateway or a database failed that the demo can't do without.
    Unusable { whose: String, what: &'static str, reason: String },
    /// A second signal came, or one while rows were looked up.
    Interrupted,
    /// The run ended, and rows are missing or inserts failed.
    Incomplete(Box<DemoSummary>),
    /// The same happened to telemetry: rows are missing or were refused.
    TelemetryIncomplete,
}

impl fmt::Display for DemoError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Options(reason) => f.write_str(reason),
            Self::Sites(error) => write!(f, "cannot serve the demo's sites on loopback: {error}"),
            Self::Unusable { whose, what, reason } => write!(f, "{whose}: cannot {what}: {reason}"),
            Self::Interrupted => f.write_str("interrupted before all rows were looked up"),
            Self::TelemetryIncomplete => f.write_str("telemetry is missing, or was refused: the summary says which"),
            Self::Incomplete(_) => f.write_str("rows are missing, or inserts failed: the summary says which"),
        }
    }
}

impl std::error::Error for DemoError {}
