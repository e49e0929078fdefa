//! Ordered appends: numbered batches that come in any order over many connections and become visible in
//! order, all or nothing.

mod admission;
mod answer;
mod appends;
mod applying;
mod clickhouse;
mod ended;
mod error;
mod errors;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod id;
mod metrics;
mod open_append;
mod options;
mod progress;
mod reading;
mod reopening;
mod request;
mod room;
mod service;
#[cfg(test)]
#[path = "../tests/simulated/mod.rs"]
mod simulated;
mod size;
mod spool;
mod sql;
mod target;

pub use answer::{Atomicity, Column, Committed, Opened, Progress, Put, State, Status};
pub use appends::{Announced, Appends, Attended, Reservation};
pub use error::AppendError;
pub use id::{AppendId, NotAnId};
pub use options::{AppendOptions, Store};
pub use request::{OpenRequest, Payload, MAX_BATCHES};
