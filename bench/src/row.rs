//! The row that is inserted: what a probe of article 1 reports, under an id that is unique and a value that follows
//! from the id, so that a row which was lost, doubled or mangled on its way shows. The table is in `bench/base/check.py`.

use std::io::Write;

use serde::Deserialize;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum Format {
    #[serde(rename = "JSONEachRow")]
    JsonEachRow,
    RowBinary,
    Native,
}

#[derive(Debug, Clone, Copy)]
pub struct Row {
    pub conn: u32,
    pub seq: u64,
    /// Which of several tables the insert chose, 0 if it had no choice.
    pub target: u32,
}

const TIME: u32 = 1_700_000_000;
const SITE: &str = "example.com";
const CITY: &str = "Oslo";

pub fn write_row(format: Format, body: &mut Vec<u8>, row: Row) {
    let Row { conn, seq, target } = row;
    let latency_us = ((u64::from(conn) * 7919 + seq * 104_729 + u64::from(target) * 15_485_863) % 1_000_000) as u32;
    let number = |body: &mut Vec<u8>, value: u32| body.extend_from_slice(&value.to_le_bytes());
    match format {
        Format::JsonEachRow => {
            // Writing into a Vec can't fail.
            let _ = writeln!(
                body,
                "{{\"conn\":{conn},\"seq\":{seq},\"time\":{TIME},\"site\":\"{SITE}\",\"city\":\"{CITY}\",\
                 \"latency_us\":{latency_us}}}"
            );
        }
        Format::RowBinary | Format::Native => {
            let native = format == Format::Native;
            if native {
                // Six columns, one row.
                body.extend_from_slice(&[6, 1]);
            }
            let head = |body: &mut Vec<u8>, name: &str, kind: &str| {
                if native {
                    write_text(body, name);
                    write_text(body, kind);
                }
            };
            head(body, "conn", "UInt32");
            number(body, conn);
            head(body, "seq", "UInt64");
            body.extend_from_slice(&seq.to_le_bytes());
            head(body, "time", "DateTime");
            number(body, TIME);
            head(body, "site", "String");
            write_text(body, SITE);
            head(body, "city", "String");
            write_text(body, CITY);
            head(body, "latency_us", "UInt32");
            number(body, latency_us);
        }
    }
}

/// Behind its length, of which one byte is enough here.
fn write_text(body: &mut Vec<u8>, text: &str) {
    body.push(text.len() as u8);
    body.extend_from_slice(text.as_bytes());
}
