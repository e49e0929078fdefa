//! Any database that there is an ADBC driver for, behind the gateway: PostgreSQL, SQLite, a Flight SQL server and
//! others.
//!
//! [`Adbc`] answers queries as streams of Arrow batches and tells what a table is made of; [`AdbcSink`] stores batches.
//! [`SqlDatabase`] is such a database or a DuckDB, for whoever treats both alike.
//! A table is described in DuckDB's types, whichever database it is in (`types.rs`). So what goes into which column,
//! and what is refused, is decided by the code that decides it for DuckDB, and is the same everywhere.
//!
//! What differs between databases beyond the driver's interface is in `system/`. Drivers block: each call runs on a
//! thread of its own, on one of a bounded number of connections (`pool.rs`).

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
