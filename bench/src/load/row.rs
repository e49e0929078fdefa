//! The row that is inserted: what a probe of article 1 reports, under an id that is unique and a value that follows
//! from the id, so that a row which was lost, doubled or mangled on its way shows.

use std::io::Write;
use std::sync::Arc;

use crate::wire::url_encode;

/// Settings beyond the defaults are given as SQL, empty for none.
pub fn create_table(table: &str, settings: &str) -> String {
    let settings = if settings.is_empty() { String::new() } else { format!(" SETTINGS {settings}") };
    format!(
        "CREATE TABLE {table} (conn UInt32, seq UInt64, time DateTime, site String, city String, latency_us UInt32) \
         ENGINE = MergeTree ORDER BY (conn, seq){settings}"
    )
}

/// The same table in DuckDB's words.
pub fn create_duckdb_table(table: &str) -> String {
    format!(
        "CREATE TABLE {table} (conn UINTEGER NOT NULL, seq UBIGINT NOT NULL, time TIMESTAMP_S NOT NULL, site VARCHAR NOT NULL, \
         city VARCHAR NOT NULL, latency_us UINTEGER NOT NULL)"
    )
}

/// How a row is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum RowFormat {
    #[value(name = "JSONEachRow")]
    JsonEachRow,
    #[value(name = "RowBinary")]
    RowBinary,
    #[value(name = "Native")]
    Native,
}

impl RowFormat {
    pub const ALL: [RowFormat; 3] = [RowFormat::JsonEachRow, RowFormat::RowBinary, RowFormat::Native];

    pub fn row_bytes(self) -> usize {
        let mut body = Vec::new();
        write_row(self, &mut body, &Row::of(100, 10_000));
        body.len()
    }
}

impl std::fmt::Display for RowFormat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            RowFormat::JsonEachRow => "JSONEachRow",
            RowFormat::RowBinary => "RowBinary",
            RowFormat::Native => "Native",
        })
    }
}

/// The query part of the URL: settings are `name=value` pairs, encoded already.
pub fn insert_query(table: &str, format: RowFormat, settings: &[&str]) -> String {
    let mut query = format!("query={}", url_encode(&format!("INSERT INTO {table} FORMAT {format}")));
    for setting in settings {
        query.push('&');
        query.push_str(setting);
    }
    query
}

/// The condition, in SQL, under which a row is not what was sent. `target` is SQL, too: the number of the table or
/// whatever else the insert chose, 0 if it had no choice. So a row that came into another's table shows.
pub fn is_mangled(target: &str) -> String {
    format!(
        "latency_us != (conn * 7919 + seq * 104729 + ({target}) * 15485863) % 1000000 OR site != 'example.com' \
         OR city != 'Oslo' OR time != '2023-11-14 22:13:20'"
    )
}

/// What the rows of one run have in common.
#[derive(Debug, Clone, Default)]
pub struct RowsOfRun {
    /// Added to the number of the connection, so that runs into the same tables can be told apart.
    pub first_conn: u32,
    /// Written into each row of JSONEachRow, each with a comma before it: `,"pad":"x"`.
    pub fields: Arc<str>,
}

/// One row: its id, and what else its value follows from.
#[derive(Debug, Clone, Copy)]
pub struct Row<'a> {
    pub conn: u32,
    pub seq: u64,
    /// What the insert chose among several, 0 if it had no choice.
    pub target: u32,
    /// As in `RowsOfRun`.
    pub fields: &'a str,
}

impl Row<'_> {
    fn of(conn: u32, seq: u64) -> Self {
        Row { conn, seq, target: 0, fields: "" }
    }
}

const TIME: u32 = 1_700_000_000;
const SITE: &str = "example.com";
const CITY: &str = "Oslo";

pub fn write_row(format: RowFormat, body: &mut Vec<u8>, row: &Row<'_>) {
    let Row { conn, seq, target, fields } = *row;
    let latency_us = ((u64::from(conn) * 7919 + seq * 104_729 + u64::from(target) * 15_485_863) % 1_000_000) as u32;
    match format {
        RowFormat::JsonEachRow => {
            // Writing into a Vec can't fail.
            let _ = writeln!(
                body,
                "{{\"conn\":{conn},\"seq\":{seq},\"time\":{TIME},\"site\":\"{SITE}\",\
                 \"city\":\"{CITY}\",\"latency_us\":{latency_us}{fields}}}"
            );
        }
        RowFormat::RowBinary => {
            body.extend_from_slice(&conn.to_le_bytes());
            body.extend_from_slice(&seq.to_le_bytes());
            body.extend_from_slice(&TIME.to_le_bytes());
            write_text(body, SITE);
            write_text(body, CITY);
            body.extend_from_slice(&latency_us.to_le_bytes());
        }
        RowFormat::Native => {
            // Six columns, one row.
            body.extend_from_slice(&[6, 1]);
            write_header(body, "conn", "UInt32");
            body.extend_from_slice(&conn.to_le_bytes());
            write_header(body, "seq", "UInt64");
            body.extend_from_slice(&seq.to_le_bytes());
            write_header(body, "time", "DateTime");
            body.extend_from_slice(&TIME.to_le_bytes());
            write_header(body, "site", "String");
            write_text(body, SITE);
            write_header(body, "city", "String");
            write_text(body, CITY);
            write_header(body, "latency_us", "UInt32");
            body.extend_from_slice(&latency_us.to_le_bytes());
        }
    }
}

fn write_header(body: &mut Vec<u8>, name: &str, data_type: &str) {
    write_text(body, name);
    write_text(body, data_type);
}

/// Behind its length, of which one byte is enough here.
fn write_text(body: &mut Vec<u8>, text: &str) {
    body.push(text.len() as u8);
    body.extend_from_slice(text.as_bytes());
}

/// Many rows of JSONEachRow as one body.
pub fn row_body(rows: u64) -> Vec<u8> {
    let mut body = Vec::new();
    for seq in 0..rows {
        write_row(RowFormat::JsonEachRow, &mut body, &Row::of(0, seq));
    }
    body
}
