//! The gateway, between sockets and the gatherer: ClickHouse's HTTP interface on the data port, its native protocol, and
//! the admin port.
//!
//! - `data/` serves a connection of the data port: it decides whether a request is gathered, answered here, or
//!   forwarded.
//! - `native/` does the same for ClickHouse's native protocol.
//! - `protocol/` is what a crate needs that serves another protocol: OTLP is served by one.
//! - `statement/` settles query ids, deduplication and changed tables before a statement of any protocol goes on.
//! - `insert/` has the stages of an insert, whatever protocol it came by: candidate, admitted, parsed, handed over.
//! - `state.rs` is the state that all connections share.
//! - `admission/` asks the backend, with the client's own credentials, what an insert may do, and remembers the
//!   answers.
//! - `cluster/` is about the other gateways in front of the same ClickHouse, and which of them owns an insert.
//! - `admin/` is health, metrics and the API.
//! - `pipelines/` answers what pipelines of Kafka ask about tables, and shows the pipelines.
//!
//! - `live.rs` is a value that a reload of the settings replaces.
//! - `backend.rs` is the backend: a ClickHouse, or a database that takes SQL (`sql_backend/` says what that has to do).
//! - `without/` has stand-ins for parts that the program is built without.
//!
//! **When in doubt, forward.** A request that is not understood goes to the backend untouched, and so does every
//! insert that the backend is going to refuse: the error that a client reads is ClickHouse's own, word for word.

// What optional parts alone use is there without them.
#![cfg_attr(
    not(all(feature = "append", feature = "formats", feature = "kafka")),
    allow(
        dead_code,
        unreachable_code,
        unused_imports,
        unused_variables,
        clippy::unused_async,
        clippy::default_constructed_unit_structs
    )
)]

mod admin;
mod admission;
mod backend;
mod backend_reading;
mod clickhouse_settings;
mod cluster;
mod data;
mod dead_letter_retention;
mod error;
mod forward_reason;
mod ingest;
mod insert;
mod listener;
mod live;
mod metrics;
mod multipart;
mod native;
mod options;
#[cfg_attr(not(feature = "kafka"), path = "without/pipelines.rs")]
mod pipelines;
pub mod protocol;
mod recent;
pub mod sql_backend;
mod state;
mod statement;

pub use admin::{dead_letter_json, listing_json, AdminServer, Verdict, MAX_ADMIN_CONNECTIONS};
pub use admission::MARKED_WINDOW;
pub use backend::{Backend, ClickHouse};
pub use cluster::Cluster;
pub use data::{Certificates, DataServer, Port};
pub use listener::{bind, ListenError};
pub use native::NativeBackend;
pub use options::{temporary_folder, AdminOptions, DefaultUser, GatewayOptions, GatewayStores};
pub use pipelines::pipelines_json;
#[cfg(feature = "kafka")]
pub use pipelines::{BackendTables, PipelineSource, TablesThroughGateway};
