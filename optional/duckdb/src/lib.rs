//! DuckDB behind the gateway: its library is loaded at run time and used through ADBC.
//!
//! [`DuckDb`] opens a database, answers queries as streams of Arrow batches, describes tables, and begins
//! [`Transaction`]s that append batches. Its calls block, so each runs on a thread of this crate's own, never
//! on tokio's.

mod batches;
mod connection;
mod database;
mod errors;
mod fit;
mod instance;
mod library;
mod open;
mod options;
mod query;
mod query_permits;
pub mod results;
mod rows;
mod single;
mod sink;
pub mod statement;
mod stream;
mod table;
mod tables;
mod transaction;
mod types;
mod user_permits;
mod work;

pub use database::DuckDb;
pub use errors::{CommitError, OpenError};
pub use fit::{CannotStore, Fitting};
pub use library::library_is_there;
pub use options::DuckDbOptions;
pub use query::{Port, Session};
pub use rows::record_batch;
pub use single::{check as check_statement, not_taken};
pub use sink::{schema_of, DuckDbSink};
pub use stream::{Answering, BatchSender, RecordStream, StopSignal};
pub use table::{is_windrows, ColumnInfo, TableInfo, TableRef};
pub use tables::may_change as may_change_tables;
pub use transaction::{Transaction, TransactionWork};
pub use types::{clickhouse_type, duckdb_type_of_arrow};
pub use user_permits::{UserPermit, UserPermits};
