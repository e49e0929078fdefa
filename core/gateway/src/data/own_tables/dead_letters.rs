//! The table `system.windrow_dead_letters`.

use serde_json::json;
use windrow_engine::dead_letters::{DeadLetterSummary, DeadLetters, Page, Selection};

use super::{ColumnList, Visible};

pub(super) const NAME: &str = "windrow_dead_letters";

pub(super) const COLUMNS: ColumnList = &[
    ("id", "UInt64"),
    ("database", "LowCardinality(String)"),
    ("table", "LowCardinality(String)"),
    ("user", "LowCardinality(String)"),
    ("code", "Int32"),
    ("error", "String"),
    ("arrived", "DateTime64(6)"),
    ("failed", "DateTime64(6)"),
    ("attempts", "UInt32"),
    ("rows", "UInt64"),
    ("bytes", "UInt64"),
    ("ack", "Enum8('memory' = 0, 'disk' = 1, 'stored' = 2)"),
    ("format", "LowCardinality(String)"),
    ("query", "String"),
    ("query_id", "String"),
    ("pipeline", "LowCardinality(String)"),
    ("topic", "LowCardinality(String)"),
    ("partition", "Nullable(Int32)"),
    ("offset", "Nullable(Int64)"),
];

/// Limit of the table's rows, the latest dead letters: with more, the table would be too large to be sent along.
const MAX_ROWS: usize = 100_000;

pub(super) fn rows(dead_letters: &DeadLetters, visible: &Visible<'_>) -> Vec<serde_json::Value> {
    let selection = match visible {
        Visible::Everybodys => Selection::default(),
        Visible::Only(user) => Selection { user: Some((*user).to_owned()), ..Selection::default() },
    };
    let listing = dead_letters.list(&selection, Page { offset: 0, limit: MAX_ROWS });
    listing.dead_letters.iter().map(|dead_letter| row(dead_letter)).collect()
}

fn row(dead_letter: &DeadLetterSummary) -> serde_json::Value {
    let (stream, message) = (dead_letter.origin.stream.as_deref(), dead_letter.message);
    json!({
        "id": dead_letter.id.0,
        "database": dead_letter.origin.database,
        "table": dead_letter.origin.table,
        "user": dead_letter.origin.user,
        "code": dead_letter.code.number(),
        "error": &*dead_letter.error,
        "arrived": dead_letter.arrived_micros,
        "failed": dead_letter.failed_micros,
        "attempts": dead_letter.attempts,
        "rows": dead_letter.rows,
        "bytes": dead_letter.payload_bytes,
        "ack": dead_letter.ack.as_str(),
        "format": dead_letter.origin.format,
        "query": dead_letter.origin.query,
        "query_id": dead_letter.query_id.to_string(),
        "pipeline": stream.map_or("", |stream| &stream.pipeline),
        "topic": stream.map_or("", |stream| &stream.topic),
        "partition": message.map(|message| message.partition),
        "offset": message.map(|message| message.offset),
    })
}
