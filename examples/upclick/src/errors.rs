//! Why a demo did not run, or did not end well.

use std::fmt;

use crate::summary::DemoSummary;

#[derive(Debug)]
pub enum DemoError {
    /// An option can't be used.
    Options(String),
    /// The demo's own sites could not be served.
    Sites(std::io::Error),
    /// The gateway could not be asked for something that the demo can't do without.
    Gateway { what: &'static str, reason: String },
    /// The run ended, and rows are missing or inserts failed.
    Incomplete(Box<DemoSummary>),
}

impl fmt::Display for DemoError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Options(reason) => f.write_str(reason),
            Self::Sites(error) => write!(f, "cannot serve the demo's sites on loopback: {error}"),
            Self::Gateway { what, reason } => write!(f, "cannot {what}: {reason}"),
            Self::Incomplete(summary) => f.write_str(&summary.verdict()),
        }
    }
}

impl std::error::Error for DemoError {}
