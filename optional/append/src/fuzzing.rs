//! The readers of bytes from outside, as a fuzzer calls them.

pub use crate::clickhouse::fuzzing::{batch as batch_for_clickhouse, record};
pub use crate::sql::fuzzing::batch as batch_for_duckdb;
