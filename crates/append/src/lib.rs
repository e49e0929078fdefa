//! Ordered appends: numbered batches that come in any order over many connections and land in order, all or nothing.

mod answer;
mod appends;
#[allow(dead_code)]
mod clickhouse;
#[allow(dead_code)]
mod error;
mod id;
mod options;
mod request;
#[allow(dead_code)]
mod target;

pub use answer::{Atomicity, Column, Committed, Progress, Put, State, Status};
pub use appends::Appends;
pub use error::AppendError;
pub use id::{AppendId, NotAnId};
pub use options::{AppendOptions, Store};
pub use request::{OpenRequest, Payload, MAX_BATCHES};
