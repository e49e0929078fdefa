//! The tables `system.asynchronous_inserts`, `system.asynchronous_insert_log`, `system.windrow_dead_letters`
//! and `system.windrow_kafka` in any SELECT. The statement is sent to the backend with the tables' rows
//! beside it, as external tables of the same names, and loses the `system.` before them.

mod dead_letters;

use std::fmt::Write;

use serde_json::json;
use windrow_clickhouse::Credentials;
use windrow_columns::{read_json_each_row, ColumnSpec, DataType, DefaultKind, ReadPlan, ReadSettings};
use windrow_engine::{BufferSnapshot, LogEntry, LoggedBatch};
use windrow_sql::{backquote, own_table_references, without_system_prefix, OwnTableUse};

use crate::multipart::{Form, Multipart};
use crate::pipelines::own_table as kafka;
use crate::state::State;

pub(crate) const NAMES: [&str; 4] =
    ["asynchronous_inserts", "asynchronous_insert_log", dead_letters::NAME, kafka::NAME];

/// Names and types of columns, as ClickHouse documents them.
pub type ColumnList = &'static [(&'static str, &'static str)];

const INSERTS: ColumnList = &[
    ("query", "String"),
    ("database", "String"),
    ("table", "String"),
    ("format", "String"),
    ("first_update", "DateTime64(6)"),
    ("total_bytes", "UInt64"),
    ("entries.query_id", "Array(String)"),
    ("entries.bytes", "Array(UInt64)"),
];

const LOG: ColumnList = &[
    ("hostname", "LowCardinality(String)"),
    ("event_date", "Date"),
    ("event_time", "DateTime"),
    ("event_time_microseconds", "DateTime64(6)"),
    ("query", "String"),
    ("database", "LowCardinality(String)"),
    ("table", "LowCardinality(String)"),
    ("format", "LowCardinality(String)"),
    ("query_id", "String"),
    ("bytes", "UInt64"),
    ("rows", "UInt64"),
    ("exception", "String"),
    ("status", "Enum8('Ok' = 0, 'ParsingError' = 1, 'FlushError' = 2)"),
    ("data_kind", "Enum8('Parsed' = 0, 'Preprocessed' = 1)"),
    ("flush_time", "DateTime"),
    ("flush_time_microseconds", "DateTime64(6)"),
    ("flush_query_id", "String"),
    ("timeout_milliseconds", "UInt64"),
];

/// The users whose rows are shown.
pub(crate) enum Visible<'a> {
    Everybodys,
    Only(&'a str),
}

impl Visible<'_> {
    fn shows(&self, owner: &Credentials) -> bool {
        match self {
            Visible::Everybodys => true,
            Visible::Only(user) => owner.user == *user,
        }
    }
}

/// A table's rows, ready to be sent along with a statement.
pub(crate) struct ExternalTable {
    name: &'static str,
    structure: String,
    native: Vec<u8>,
}

/// A table's columns with its rows.
pub struct OwnRows {
    pub(crate) name: &'static str,
    pub columns: ColumnList,
    pub rows: Vec<serde_json::Value>,
}

pub(crate) fn own_rows(name: &str, state: &State, visible: &Visible<'_>) -> Option<OwnRows> {
    match name {
        "asynchronous_inserts" => {
            let buffers = state.gatherer.buffers();
            let seen = buffers.iter().filter(|buffer| visible.shows(&buffer.destination.credentials));
            Some(OwnRows { name: NAMES[0], columns: INSERTS, rows: seen.map(inserts_row).collect() })
        }
        "asynchronous_insert_log" => {
            let (log, facts) = (state.gatherer.log(), state.admission.facts.get());
            let hostname = facts.display_name();
            let seen = log.iter().filter(|batch| visible.shows(&batch.destination.credentials));
            let rows = seen.flat_map(|batch| batch.inserts.iter().map(move |insert| log_row(batch, insert, hostname)));
            Some(OwnRows { name: NAMES[1], columns: LOG, rows: rows.collect() })
        }
        dead_letters::NAME => {
            let rows = dead_letters::rows(&state.dead_letters, visible);
            Some(OwnRows { name: dead_letters::NAME, columns: dead_letters::COLUMNS, rows })
        }
        kafka::NAME => {
            let rows = kafka::rows(&state.pipelines.get(), visible);
            Some(OwnRows { name: kafka::NAME, columns: kafka::COLUMNS, rows })
        }
        _ => None,
    }
}

fn external_table(name: &str, state: &State, visible: &Visible<'_>) -> Option<ExternalTable> {
    let OwnRows { name, columns, rows } = own_rows(name, state, visible)?;
    Some(ExternalTable::new(name, columns, rows.into_iter()))
}

fn inserts_row(buffer: &BufferSnapshot) -> serde_json::Value {
    json!({
        "query": buffer.kind.query,
        "database": buffer.destination.database,
        "table": buffer.destination.table,
        "format": buffer.kind.format,
        "first_update": buffer.first_update_micros,
        "total_bytes": buffer.entries.iter().map(|entry| entry.bytes).sum::<u64>(),
        "entries.query_id": buffer.entries.iter().map(|entry| entry.query_id.to_string()).collect::<Vec<_>>(),
        "entries.bytes": buffer.entries.iter().map(|entry| entry.bytes).collect::<Vec<_>>(),
    })
}

fn log_row(batch: &LoggedBatch, entry: &LogEntry, hostname: &str) -> serde_json::Value {
    let flushed = batch.flush_time_micros;
    json!({
        "hostname": hostname,
        "event_date": entry.event_time_micros / 86_400_000_000,
        "event_time": entry.event_time_micros / 1_000_000,
        "event_time_microseconds": entry.event_time_micros,
        "query": entry.kind.query,
        "database": batch.destination.database,
        "table": batch.destination.table,
        "format": entry.kind.format,
        "query_id": entry.query_id.to_string(),
        "bytes": entry.bytes,
        "rows": entry.rows,
        "exception": entry.exception.as_deref().unwrap_or(""),
        "status": entry.status.as_str(),
        "data_kind": entry.kind.data_kind.as_str(),
        "flush_time": flushed / 1_000_000,
        "flush_time_microseconds": flushed,
        "flush_query_id": batch.flush_query_id.map(|id| id.to_string()).unwrap_or_default(),
        "timeout_milliseconds": batch.timeout_ms,
    })
}

impl ExternalTable {
    fn new(name: &'static str, columns: ColumnList, rows: impl Iterator<Item = serde_json::Value>) -> ExternalTable {
        let mut structure = String::new();
        for (column, data_type) in columns {
            if !structure.is_empty() {
                structure.push_str(", ");
            }
            // Writing to a String never fails.
            let _ = write!(structure, "{} {data_type}", backquote(column));
        }
        ExternalTable { name, structure, native: native(columns, rows) }
    }
}

/// Writes the rows in Native. They are read by Windrow's own reader, in which an integer for a DateTime64 is
/// a number of ticks: so neither the backend's version nor a time zone changes them.
fn native(columns: ColumnList, rows: impl Iterator<Item = serde_json::Value>) -> Vec<u8> {
    let specs = columns.iter().map(|(name, data_type)| ColumnSpec {
        name: (*name).to_owned(),
        data_type: DataType::parse(data_type).expect("the types listed above are all known"),
        default_kind: DefaultKind::None,
    });
    let mut settings = ReadSettings::default();
    settings.set_server_timezone("UTC");
    let plan = ReadPlan::new(specs.collect(), settings);
    let mut text = Vec::new();
    for row in rows {
        text.extend_from_slice(row.to_string().as_bytes());
        text.push(b'\n');
    }
    let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
    let types: Vec<DataType> = plan.columns().iter().map(|column| column.data_type.clone()).collect();
    match read_json_each_row(&text, &plan) {
        Ok(parsed) => parsed.block.encode_native(&names, &types),
        Err(not_parsed) => {
            tracing::error!(?not_parsed, "a row of a system table could not be written");
            Vec::new()
        }
    }
}

/// A statement with the tables that it reads as parts of a form.
pub(crate) struct WithTables {
    pub(crate) form: Form,
    tables: Vec<ExternalTable>,
}

impl WithTables {
    fn new(statement: &[u8], tables: Vec<ExternalTable>) -> WithTables {
        let mut parts = Multipart::new();
        parts.field("query", statement);
        tables.iter().for_each(|table| parts.table(table.name, &[&table.native]));
        WithTables { form: parts.end(), tables }
    }

    /// Returns the parameters that tell the backend how to read the tables.
    pub(crate) fn params(&self) -> impl Iterator<Item = (String, &str)> {
        self.tables.iter().flat_map(|table| {
            [
                (format!("{}_structure", table.name), table.structure.as_str()),
                (format!("{}_format", table.name), "Native"),
            ]
        })
    }
}

/// Returns a statement that reads Windrow's own tables, with these beside it; `None` if it doesn't, or may not.
pub(crate) async fn beside(
    state: &State,
    statement: &[u8],
    database: &str,
    credentials: &Credentials,
) -> Option<WithTables> {
    let own = own_table_references(statement, database, &NAMES);
    if own.references.is_empty() || own.usage != OwnTableUse::Reads {
        return None;
    }
    let admission = &state.admission;
    let sees_all = admission.is_granted(credentials, "SHOW USERS ON *.*").await.ok()?;
    let visible = if sees_all { Visible::Everybodys } else { Visible::Only(&credentials.user) };
    let mut names: Vec<&str> = own.references.iter().map(|reference| reference.table.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let mut tables = Vec::new();
    for name in names {
        if !admission.is_granted(credentials, &format!("SELECT ON system.{name}")).await.ok()? {
            return None;
        }
        tables.extend(external_table(name, state, &visible));
    }
    Some(WithTables::new(&without_system_prefix(statement, &own), tables))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_all_tables_can_be_written() {
        let inserts = json!({"query": "q", "first_update": 1_700_000_000_123_456u64, "total_bytes": 5,
            "entries.query_id": ["a", "b"], "entries.bytes": [2, 3]});
        assert!(native(INSERTS, std::iter::once(inserts)).len() > 100);
        let log = json!({"hostname": "h", "event_date": 20_000, "event_time": 1_728_000_000u64, "query": "x\n\"y",
            "event_time_microseconds": 1_728_000_000_000_001u64, "status": "FlushError", "data_kind": "Parsed",
            "flush_time": 0, "flush_time_microseconds": 0});
        assert!(native(LOG, std::iter::once(log)).len() > 100);
        let dead_letter =
            json!({"id": 1, "code": -1, "error": "no\n", "arrived": 1_700_000_000_123_456u64, "ack": "disk"});
        assert!(native(dead_letters::COLUMNS, std::iter::once(dead_letter)).len() > 100);
    }

    #[cfg(feature = "kafka")]
    #[test]
    fn rows_of_pipelines_can_be_written() {
        let pipelines = kafka::rows(&[crate::pipelines::example()], &Visible::Everybodys);
        assert!(native(kafka::COLUMNS, pipelines.into_iter()).len() > 100);
    }
}
