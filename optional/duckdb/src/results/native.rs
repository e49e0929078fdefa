//! The format Native: blocks of columns.
//!
//! The bytes before and between the columns depend on the client's revision (`client_protocol_version`). They
//! follow what ClickHouse 26.7 was seen to send.

use arrow_array::RecordBatch;
use windrow_columns::wire::write_varint;

use crate::results::binary::{self, string};
use crate::results::columns::Columns;
use crate::results::error::ResultError;
use crate::results::values::{Column, Values};

/// The first revision whose blocks say whether their buckets may come out of order.
const OUT_OF_ORDER_BUCKETS: u64 = 54_483;
/// The first revision whose columns say whether they have a serialization of their own.
const CUSTOM_SERIALIZATION: u64 = 54_454;

pub(crate) fn batch(
    out: &mut Vec<u8>,
    columns: &Columns,
    batch: &RecordBatch,
    revision: u64,
) -> Result<(), ResultError> {
    let read = columns.read(batch)?;
    if revision > 0 {
        block_info(out, revision);
    }
    write_varint(out, read.len() as u64);
    write_varint(out, batch.num_rows() as u64);
    let rows = Rows::All(batch.num_rows());
    for ((name, type_name), column) in columns.names().iter().zip(columns.type_names()).zip(&read) {
        string(out, name.as_bytes());
        string(out, type_name.as_bytes());
        if revision >= CUSTOM_SERIALIZATION {
            out.push(0);
        }
        write_column(out, column, &rows);
    }
    Ok(())
}

fn block_info(out: &mut Vec<u8>, revision: u64) {
    // Field 1: no overflow rows; field 2: no bucket.
    out.extend_from_slice(&[1, 0, 2, 0xFF, 0xFF, 0xFF, 0xFF]);
    if revision >= OUT_OF_ORDER_BUCKETS {
        out.extend_from_slice(&[3, 0]);
    }
    out.push(0);
}

/// The rows of a column that are written: all, or the elements that certain outer rows contain.
enum Rows {
    All(usize),
    Some(Vec<usize>),
}

impl Rows {
    fn for_each(&self, mut act: impl FnMut(usize)) {
        match self {
            Rows::All(count) => (0..*count).for_each(act),
            Rows::Some(rows) => rows.iter().for_each(|row| act(*row)),
        }
    }
}

fn write_column(out: &mut Vec<u8>, column: &Column, rows: &Rows) {
    match &column.values {
        Values::Array { offsets, element } => {
            let items = write_offsets(out, column, rows, |row| offsets.range(row));
            write_column(out, element, &items);
        }
        Values::Map { offsets, key, value } => {
            let items = write_offsets(out, column, rows, |row| offsets.range(row));
            write_column(out, key, &items);
            write_column(out, value, &items);
        }
        Values::Tuple { elements, .. } if elements.is_empty() => rows.for_each(|_| out.push(0)),
        Values::Tuple { elements, .. } => elements.iter().for_each(|element| write_column(out, element, rows)),
        values => {
            if column.nullable {
                rows.for_each(|row| out.push(u8::from(column.is_null(row))));
            }
            rows.for_each(|row| match column.is_null(row) {
                true => binary::default(out, values),
                false => binary::scalar(out, values, row),
            });
        }
    }
}

/// Writes where each row's elements end, and returns which elements these are.
fn write_offsets(
    out: &mut Vec<u8>,
    column: &Column,
    rows: &Rows,
    range: impl Fn(usize) -> std::ops::Range<usize>,
) -> Rows {
    let mut items = Vec::new();
    rows.for_each(|row| {
        // ClickHouse has no NULL in place of an array: it is an empty one.
        if !column.is_null(row) {
            items.extend(range(row));
        }
        out.extend_from_slice(&(items.len() as u64).to_le_bytes());
    });
    Rows::Some(items)
}
