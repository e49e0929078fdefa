//! The load generator: N connections, each in a closed loop (or at a fixed pace) of one-row inserts with unique ids.
//!
//! It has to cost less than what it measures. So a connection is one task on a single-threaded runtime, its request is
//! a prefix and a row written into one reused buffer, and its answer is parsed where it was read. An insert's id is
//! (connection, sequence number): what was stored can be compared with what was acknowledged without remembering every
//! id.

mod check;
mod connection;
mod exchange;
mod histogram;
mod outcome;
mod plan;
mod row;
mod run;
mod targets;

pub use check::{check_rows, check_stored, RowsIn, Stored};
pub use exchange::{Answer, Exchange};
pub use histogram::Histogram;
pub use outcome::LoadOutcome;
pub use plan::Plan;
pub use row::{create_duckdb_table, create_table, insert_query, is_mangled, row_body, RowFormat, RowsOfRun};
pub use run::run;
pub use targets::{Spread, Targets};

#[cfg(test)]
mod tests;
