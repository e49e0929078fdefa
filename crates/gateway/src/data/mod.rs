//! The data port: one connection at a time, one request after another.

mod answer;
mod appends;
mod body;
mod claim;
mod classify;
mod deduplication;
mod duckdb;
mod exchange;
mod flush;
mod forward;
mod forwarding;
mod insert;
mod known_heads;
mod on_duckdb;
mod own_tables;
mod progress;
mod query_ids;
mod request;
mod serve;
mod sessions;
mod strangers;
mod stripped;
mod text;

pub(crate) use body::BodyRoom;
pub use duckdb::{install_duckdb_functions, prepare_temporary_folder};
pub(crate) use duckdb::{KeptFiles, TemporaryFiles};
pub(crate) use known_heads::KnownHeads;
pub(crate) use query_ids::QueryIds;
pub use serve::DataServer;
pub(crate) use sessions::Sessions;
