//! ClickHouse's native protocol, for clients that don't speak HTTP.
//!
//! - `handshake.rs`: who a client is, and what it is told of the server: the backend's version, name and time zone.
//! - `session.rs`: a connection's packets, one after the other. A statement is gathered, or it is the backend's.
//! - `insert.rs`: an insert, whose rows come as blocks or stand in its text, through the stages of [`crate::insert`].
//! - `forward.rs`: a statement that is no plain insert, on its way to the backend.
//! - `rows.rs`: the blocks that come behind a statement.
//! - `relay.rs`: a statement that is not gathered is sent to the backend as it came, over a connection of the client's
//!   own that is opened when it is first needed (`upstream.rs`). The backend agrees on the client's own revision, so
//!   its answers are passed on as they are.
//! - `over_http.rs`: the same without a native port, for a ClickHouse over HTTP alone, DuckDB, and Windrow's tables.
//! - `chunked.rs`: connections whose packets come in chunks.
//! - `wire.rs`: a client's bytes. The bytes of a statement stay there until it is known what becomes of the statement,
//!   so that they can be passed on as they came.
//! - `reply.rs`: the gateway's own answers.

mod chunked;
mod forward;
mod handshake;
mod insert;
mod over_http;
mod relay;
mod reply;
mod rows;
mod session;
mod upstream;
mod wire;

pub(crate) use over_http::{wait_for, Blocks, Failure, Posted};
pub(crate) use session::{serve, Session};
pub(crate) use upstream::KnownDatabases;
pub use upstream::NativeBackend;
