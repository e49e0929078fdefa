//! DuckDB's types and those of ClickHouse and Arrow.

mod clickhouse;
mod create;
mod duck;

pub use clickhouse::clickhouse_type;
pub use create::duckdb_type_of_arrow;
pub(crate) use duck::DuckType;
