//! The benchmarks, one per file. Each measures both ways alternately (A B A B), so that whatever else the machine does
//! falls on both, and reports medians and their ratios.

mod article;
mod article_charts;
mod bulk;
mod culprit;
mod duckdb;
mod durability;
mod formats;
mod goals;
mod idle;
mod inserts;
mod inserts_table;
mod journal;
mod kafka;
mod parsing;
mod python;
mod replay;
mod sampler;
mod select;
mod tables;

pub use article::ArticleOptions;
pub use bulk::BulkOptions;
pub use culprit::CulpritOptions;
pub use duckdb::DuckDbOptions;
pub use durability::DurabilityOptions;
pub use formats::FormatsOptions;
pub use idle::IdleOptions;
pub use inserts::InsertsOptions;
pub use journal::JournalOptions;
pub use kafka::KafkaOptions;
pub use parsing::ParsingOptions;
pub use python::{AppendsOptions, ClientsOptions, ResultsOptions, WriterOptions};
pub use replay::ReplayOptions;
pub use select::SelectOptions;
pub use tables::TablesOptions;

use crate::error::BenchError;
use crate::report::Section;
use crate::sql::Sql;
use crate::stack::{Stack, StackOptions};

pub trait Part {
    /// Variables, `NAME=value`, that the gateway is started with.
    fn environment(&self) -> Vec<String> {
        Vec::new()
    }

    fn measure(&self, stack: &Stack, options: &StackOptions) -> Result<Section, BenchError>;
}

/// A table that did not exist before, so that its parts count from 1.
fn fresh_table(clickhouse: &Sql, table: &str, create: &str) -> Result<(), BenchError> {
    clickhouse.execute(&format!("DROP TABLE IF EXISTS {table} SYNC"))?;
    clickhouse.execute(create)
}

/// How many parts inserts made in a fresh table without partitions: each took the next block number, and a merged part
/// keeps the range of those it was made of.
fn parts_created(clickhouse: &Sql, table: &str) -> Result<u64, BenchError> {
    let (database, name) = table.split_once('.').unwrap_or(("default", table));
    clickhouse.number(&format!(
        "SELECT toUInt64(max(max_block_number)) FROM system.parts WHERE database = '{database}' AND table = '{name}'"
    ))
}

fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}
