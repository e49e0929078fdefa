//! JSON row by row, and as one document that has the types beside the rows.

use std::io::Write;

use arrow_array::RecordBatch;

use crate::results::columns::Columns;
use crate::results::encoder::Statistics;
use crate::results::error::ResultError;
use crate::results::settings::OutputSettings;
use crate::results::text::{json_pretty, json_string, json_value};

/// Tabs before a field's name in the format JSON.
const FIELD_INDENT: usize = 3;

/// Writes rows as lines of the form `{"a":1,"b":2}`.
pub(crate) fn each_row(
    out: &mut Vec<u8>,
    columns: &Columns,
    batch: &RecordBatch,
    settings: &OutputSettings,
) -> Result<(), ResultError> {
    let (read, keys) = (columns.read(batch)?, keys(columns, settings));
    for row in 0..batch.num_rows() {
        out.push(b'{');
        for (at, (key, column)) in keys.iter().zip(&read).enumerate() {
            if at > 0 {
                out.push(b',');
            }
            out.extend_from_slice(key);
            out.push(b':');
            json_value(out, column, row, settings);
        }
        out.extend_from_slice(b"}\n");
    }
    Ok(())
}

/// Writes the lines of names and types before rows of the form `[1, 2]`.
pub(crate) fn compact_heading(
    out: &mut Vec<u8>,
    columns: &Columns,
    names: bool,
    types: bool,
    settings: &OutputSettings,
) {
    let mut line = |texts: &[String]| {
        out.push(b'[');
        for (at, text) in texts.iter().enumerate() {
            out.extend_from_slice(if at > 0 { b", " } else { b"" });
            json_string(out, text.as_bytes(), settings.escape_forward_slashes);
        }
        out.extend_from_slice(b"]\n");
    };
    if names {
        line(columns.names());
    }
    if types {
        line(&columns.type_names());
    }
}

pub(crate) fn compact_each_row(
    out: &mut Vec<u8>,
    columns: &Columns,
    batch: &RecordBatch,
    settings: &OutputSettings,
) -> Result<(), ResultError> {
    let read = columns.read(batch)?;
    for row in 0..batch.num_rows() {
        compact_row(out, &read, row, settings);
        out.push(b'\n');
    }
    Ok(())
}

fn compact_row(out: &mut Vec<u8>, read: &[crate::results::values::Column], row: usize, settings: &OutputSettings) {
    out.push(b'[');
    for (at, column) in read.iter().enumerate() {
        out.extend_from_slice(if at > 0 { b", " } else { b"" });
        json_value(out, column, row, settings);
    }
    out.push(b']');
}

/// Writes the document's beginning: names and types.
pub(crate) fn begin(out: &mut Vec<u8>, columns: &Columns, settings: &OutputSettings) {
    out.extend_from_slice(b"{\n\t\"meta\":\n\t[\n");
    for (at, (name, type_name)) in columns.names().iter().zip(columns.type_names()).enumerate() {
        out.extend_from_slice(if at > 0 { b",\n" } else { b"" });
        out.extend_from_slice(b"\t\t{\n\t\t\t\"name\": ");
        json_string(out, name.as_bytes(), settings.escape_forward_slashes);
        out.extend_from_slice(b",\n\t\t\t\"type\": ");
        json_string(out, type_name.as_bytes(), settings.escape_forward_slashes);
        out.extend_from_slice(b"\n\t\t}");
    }
    out.extend_from_slice(b"\n\t],\n\n\t\"data\":\n\t[\n");
}

/// Writes rows of the document. `first` says that no row has been written yet.
pub(crate) fn rows(
    out: &mut Vec<u8>,
    columns: &Columns,
    batch: &RecordBatch,
    settings: &OutputSettings,
    compact: bool,
    mut first: bool,
) -> Result<(), ResultError> {
    let (read, keys) = (columns.read(batch)?, keys(columns, settings));
    let start = out.len();
    for row in 0..batch.num_rows() {
        if !std::mem::take(&mut first) {
            out.extend_from_slice(b",\n");
        }
        out.extend_from_slice(b"\t\t");
        if compact {
            compact_row(out, &read, row, settings);
            continue;
        }
        out.extend_from_slice(b"{\n");
        for (at, (key, column)) in keys.iter().zip(&read).enumerate() {
            out.extend_from_slice(if at > 0 { b",\n" } else { b"" });
            out.extend_from_slice(b"\t\t\t");
            out.extend_from_slice(key);
            out.extend_from_slice(b": ");
            json_pretty(out, column, row, settings, FIELD_INDENT);
        }
        out.extend_from_slice(b"\n\t\t}");
    }
    // The document is text, whatever bytes a BLOB holds.
    if let Err(error) = std::str::from_utf8(&out[start..]) {
        let valid = start + error.valid_up_to();
        let repaired = String::from_utf8_lossy(&out[valid..]).into_owned();
        out.truncate(valid);
        out.extend_from_slice(repaired.as_bytes());
    }
    Ok(())
}

pub(crate) fn finish(out: &mut Vec<u8>, rows: u64, statistics: &Statistics) {
    let Statistics { elapsed_seconds, rows_read, bytes_read } = statistics;
    let end = format!(
        "\n\t],\n\n\t\"rows\": {rows},\n\n\t\"statistics\":\n\t{{\n\t\t\"elapsed\": {elapsed_seconds},\n\
         \t\t\"rows_read\": {rows_read},\n\t\t\"bytes_read\": {bytes_read}\n\t}}\n}}\n"
    );
    out.write_all(end.as_bytes()).expect("writing to a vector cannot fail");
}

/// Returns the names in JSON, as they stand before every value.
fn keys(columns: &Columns, settings: &OutputSettings) -> Vec<Vec<u8>> {
    let key = |name: &String| {
        let mut key = Vec::new();
        json_string(&mut key, name.as_bytes(), settings.escape_forward_slashes);
        key
    };
    columns.names().iter().map(key).collect()
}
