//! The data port: one connection at a time, one request after another.

mod admit;
mod answer;
mod appends;
mod body;
mod claim;
mod deduplication;
mod dispatch;
mod duckdb;
mod forward;
mod forwarding;
mod gather;
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

pub(crate) use duckdb::unknown_setting;
pub use duckdb::{install_duckdb_functions, prepare_temporary_folder};
pub use serve::DataServer;
pub(crate) use serve::State;
