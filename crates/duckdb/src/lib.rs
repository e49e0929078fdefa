//! DuckDB behind the gateway: its library loaded at run time and spoken to through ADBC.
//!
//! [`DuckDb`] opens a database and answers queries as streams of Arrow batches, tells what a table is made of, and begins
//! [`Transaction`]s that append batches. Its calls block, so each runs on a thread of this crate's own, never on tokio's.

mod connection;
mod database;
mod errors;
mod library;
mod options;
mod query;
mod single;
mod table;
mod transaction;
mod types;

pub use database::DuckDb;
pub use errors::{CommitError, OpenError};
pub use options::DuckDbOptions;
pub use query::{RecordStream, Session};
pub use table::{ColumnInfo, TableInfo, TableRef};
pub use transaction::Transaction;
pub use types::NotHeld;
