//! Any database with an ADBC driver, behind the gateway: PostgreSQL, SQLite, a Flight SQL server and others.
//!
//! [`Adbc`] answers queries as streams of Arrow batches and describes tables; [`AdbcSink`] stores batches.
//! [`SqlDatabase`] is such a database or a DuckDB, for callers that treat both alike. A table is described in
//! DuckDB's types, whichever database it is in (`types.rs`). So the same code as for DuckDB decides which
//! values go into a column and which are refused, and the result is the same everywhere.
//!
//! Differences between databases that the driver's interface does not hide are in `system/`. Drivers block:
//! each call runs on a thread of its own, on one of a limited number of connections (`pool.rs`).

mod batches;
mod connection;
mod database;
mod driver;
mod errors;
mod options;
mod pool;
mod query;
mod results;
mod sink;
mod sql_database;
mod system;
mod table;
mod tables;
mod transaction;
mod types;
mod write;

pub use database::Adbc;
pub use options::AdbcOptions;
pub use sink::AdbcSink;
pub use sql_database::SqlDatabase;
