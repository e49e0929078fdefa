//! `system.windrow_dead_letters`.

use serde_json::json;
use windrow_gatherer::dead_letters::{DeadLetters, LetterSummary, Page, Selection};

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

/// More letters than this make the table too large to be sent along: the latest of them are.
const MAX_ROWS: usize = 100_000;

pub(super) fn rows(letters: &DeadLetters, visible: &Visible<'_>) -> Vec<serde_json::Value> {
    let selection = match visible {
        Visible::Everybodys => Selection::default(),
        Visible::Only(user) => Selection { user: Some((*user).to_owned()), ..Selection::default() },
    };
    let listing = letters.list(&selection, Page { offset: 0, limit: MAX_ROWS });
    listing.letters.iter().map(|letter| row(letter)).collect()
}

fn row(letter: &LetterSummary) -> serde_json::Value {
    let (stream, message) = (letter.origin.stream.as_deref(), letter.message);
    json!({
        "id": letter.id.0,
        "database": letter.origin.database,
        "table": letter.origin.table,
        "user": letter.origin.user,
        "code": letter.code,
        "error": &*letter.error,
        "arrived": letter.arrived_micros,
        "failed": letter.failed_micros,
        "attempts": letter.attempts,
        "rows": letter.rows,
        "bytes": letter.payload_bytes,
        "ack": letter.ack.as_str(),
        "format": letter.origin.format,
        "query": letter.origin.query,
        "query_id": letter.query_id.to_string(),
        "pipeline": stream.map_or("", |stream| &stream.pipeline),
        "topic": stream.map_or("", |stream| &stream.topic),
        "partition": message.map(|message| message.partition),
        "offset": message.map(|message| message.offset),
    })
}
