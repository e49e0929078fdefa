//! OpenTelemetry's export requests as rows of the tables that the collector's ClickHouse exporter makes.
//!
//! These are pure functions on bytes: no I/O, no tasks, no clock. [`decode`] reads a request of OTLP, in
//! Protobuf or JSON, and checks all of it. A [`Layout`] is made once from the columns of a table; with it
//! [`Request::block`] writes the request's rows of one [`Kind`] as a block in ClickHouse's Native format.
//! [`create_statements`] makes the tables themselves, and [`answer`] the answers to senders.

pub mod answer;
mod block;
mod cells;
mod check;
mod json;
mod json_column;
mod json_reader;
mod json_text;
mod kind;
mod layout;
mod logs;
mod metrics;
mod request;
mod rows;
mod schema;
mod sieve;
mod source;
mod tables;
mod target;
mod traces;
mod value;
mod wire;

pub use block::Block;
pub use kind::{Kind, Signal};
pub use layout::{Layout, LayoutError};
pub use request::{decode, DecodeError, Encoding, Limits, Request, Unreadable};
pub use tables::{create_database_statement, create_statements, MetricTime, TableOptions};
