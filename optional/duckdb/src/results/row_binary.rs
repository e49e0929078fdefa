//! RowBinary: one value after the other, with names and types before them if asked for.

use arrow_array::RecordBatch;
use windrow_columns::wire::write_varint;

use crate::results::binary::{self, string};
use crate::results::columns::Columns;
use crate::results::error::ResultError;

pub(crate) fn begin(out: &mut Vec<u8>, columns: &Columns, names: bool, types: bool) {
    if names {
        write_varint(out, columns.names().len() as u64);
        columns.names().iter().for_each(|name| string(out, name.as_bytes()));
    }
    if types {
        columns.type_names().iter().for_each(|name| string(out, name.as_bytes()));
    }
}

pub(crate) fn batch(out: &mut Vec<u8>, columns: &Columns, batch: &RecordBatch) -> Result<(), ResultError> {
    let read = columns.read(batch)?;
    for row in 0..batch.num_rows() {
        read.iter().for_each(|column| binary::value(out, column, row));
    }
    Ok(())
}
