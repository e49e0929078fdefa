//! The row that is inserted: what a probe of article 1 reports, under an id that is unique and a value that follows
//! from the id, so that a row which was lost, doubled or mangled on its way shows.

use std::io::Write;

use crate::wire::url_encode;

/// Settings beyond the defaults are given as SQL, empty for none.
pub fn create_table(table: &str, settings: &str) -> String {
    let settings = if settings.is_empty() { String::new() } else { format!(" SETTINGS {settings}") };
    format!(
        "CREATE TABLE {table} (conn UInt32, seq UInt64, time DateTime, site String, city String, latency_us UInt32) \
         ENGINE = MergeTree ORDER BY (conn, seq){settings}"
    )
}

/// The query part of the URL: settings are `name=value` pairs, encoded already.
pub fn insert_query(table: &str, settings: &[&str]) -> String {
    let mut query = format!("query={}", url_encode(&format!("INSERT INTO {table} FORMAT JSONEachRow")));
    for setting in settings {
        query.push('&');
        query.push_str(setting);
    }
    query
}

/// The condition, in SQL, under which a row is not what was sent.
pub const IS_MANGLED: &str = "latency_us != (conn * 7919 + seq * 104729) % 1000000 OR site != 'example.com' \
                              OR city != 'Oslo' OR toUnixTimestamp(time) != 1700000000";

pub fn write_row(body: &mut Vec<u8>, conn: u32, seq: u64) {
    let latency_us = (u64::from(conn) * 7919 + seq * 104_729) % 1_000_000;
    // Writing into a Vec can't fail.
    let _ = writeln!(
        body,
        "{{\"conn\":{conn},\"seq\":{seq},\"time\":1700000000,\"site\":\"example.com\",\
         \"city\":\"Oslo\",\"latency_us\":{latency_us}}}"
    );
}

/// Many rows as one body.
pub fn row_body(rows: u64) -> Vec<u8> {
    let mut body = Vec::new();
    for seq in 0..rows {
        write_row(&mut body, 0, seq);
    }
    body
}
