//! DuckDB's types, and their counterparts in ClickHouse and Arrow.

mod clickhouse;
mod create;
mod duck;

pub use clickhouse::clickhouse_type;
pub(crate) use clickhouse::{of_enum, FIRST_OF_ENUM, MAX_ENUM16, MAX_ENUM8};
pub use create::duckdb_type_of_arrow;
pub(crate) use duck::DuckType;
