//! What one run of the load generator is to do.

use std::sync::Arc;
use std::time::Duration;

use super::row::{RowFormat, RowsOfRun};
use super::targets::Targets;
use crate::wire::Endpoint;

#[derive(Debug, Clone)]
pub struct Plan {
    pub target: Endpoint,
    /// The query part of the URL, encoded: the INSERT and its settings.
    pub query: String,
    /// Several such queries in its place, among which each insert chooses.
    pub targets: Option<Arc<Targets>>,
    /// Of the rows, as the query has it.
    pub format: RowFormat,
    pub rows: RowsOfRun,
    pub connections: u32,
    pub threads: u32,
    /// Sent and checked, but not measured: connections, caches and buffers are warm when the clock starts.
    pub warmup: Duration,
    pub window: Duration,
    /// Each connection stops after so many inserts, if the window has not closed before.
    pub inserts_per_connection: Option<u64>,
    /// `None`: the next insert follows the answer. `Some`: each connection inserts once per interval, as a scheduler
    /// would start it, with its own offset into the interval.
    pub interval: Option<Duration>,
    /// How long after the window answers may still come in before the run is given up.
    pub grace: Duration,
}
