//! Payloads as the record batches that go into a table.

use std::panic::{catch_unwind, AssertUnwindSafe};

use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use arrow_ipc::reader::StreamDecoder;
use bytes::Bytes;
use windrow_clickhouse::ErrorCode;
use windrow_columns::{decode_native, NativeLimits};
use windrow_duckdb::{record_batch, Fitting};
use windrow_interchange::{check_arrow_stream, ArrowFault};

use super::table::SqlTable;
use super::unfolding::unfolded_bytes;
use crate::error::AppendError;
use crate::errors::unpacks_to_too_much;
use crate::request::Payload;
use crate::size::batch_bytes;
use crate::target::Read;

/// The size that a batch may grow to in memory, in times of what it may have on the wire: widths of types differ.
const MAX_GROWTH: u64 = 4;

pub(super) fn read(table: &SqlTable, payload: Payload, max_bytes: u64) -> Result<Read<Vec<RecordBatch>>, AppendError> {
    let batches = decoded(payload, max_bytes)?;
    let mut fitted = Vec::with_capacity(batches.len());
    let (mut rows, mut held_bytes) = (0u64, 0u64);
    for batch in batches {
        check_size(table, &batch, max_bytes)?;
        let fitting = table.fitting(batch.schema_ref())?;
        let batch = fit(table, &fitting, &batch, rows)?;
        rows += batch.num_rows() as u64;
        held_bytes = held_bytes.saturating_add(batch_bytes(&batch));
        if batch.num_rows() > 0 {
            fitted.push(batch);
        }
    }
    Ok(Read { batch: fitted, rows, held_bytes })
}

fn fit(table: &SqlTable, fitting: &Fitting, batch: &RecordBatch, rows_before: u64) -> Result<RecordBatch, AppendError> {
    let fitted = catch_unwind(AssertUnwindSafe(|| fitting.apply(batch)));
    let fitted = fitted.map_err(|_| bad("its values contradict each other"))?;
    fitted.map_err(|not_held| {
        let row = not_held.row.map(|row| rows_before + row as u64);
        AppendError { row, ..table.not_held(&not_held) }
    })
}

/// Checks the size of a batch. Columns that the batch hasn't are written as well, and may be wide.
fn check_size(table: &SqlTable, batch: &RecordBatch, max_bytes: u64) -> Result<(), AppendError> {
    const BYTES_OF_A_VALUE: u64 = 16;
    let of_table = (batch.num_rows() as u64).saturating_mul(table.columns() as u64 * BYTES_OF_A_VALUE);
    let bound = max_bytes.saturating_mul(MAX_GROWTH);
    match of_table > bound.saturating_mul(MAX_GROWTH) || unfolded_bytes(batch) > bound {
        true => Err(unpacks_to_too_much()),
        false => Ok(()),
    }
}

pub(super) fn decoded(payload: Payload, max_bytes: u64) -> Result<Vec<RecordBatch>, AppendError> {
    match payload {
        Payload::ArrowStream(bytes) => of_stream(bytes, max_bytes),
        Payload::Native(bytes) => of_native(&bytes, max_bytes),
        Payload::Batch(batch) => Ok(vec![batch]),
    }
}

/// Decodes a stream. The decoder looks through what it takes: offsets, UTF-8, keys of dictionaries. All that
/// it believes was checked before. For some of the damage that is left it has assertions instead of errors.
pub(super) fn of_stream(bytes: Bytes, max_bytes: u64) -> Result<Vec<RecordBatch>, AppendError> {
    check_arrow_stream(&bytes, max_bytes).map_err(|fault| match fault {
        ArrowFault::Bad(why) => bad(&why),
        ArrowFault::TooLarge => unpacks_to_too_much(),
    })?;
    let decoded = catch_unwind(|| decode_stream(bytes));
    decoded.unwrap_or_else(|_| Err(bad("its buffers contradict each other")))
}

fn decode_stream(bytes: Bytes) -> Result<Vec<RecordBatch>, AppendError> {
    let mut buffer = Buffer::from(bytes);
    let (mut decoder, mut batches) = (StreamDecoder::new(), Vec::new());
    let unreadable = |error: arrow_schema::ArrowError| bad(&error.to_string());
    while !buffer.is_empty() {
        batches.extend(decoder.decode(&mut buffer).map_err(unreadable)?);
    }
    decoder.finish().map_err(unreadable)?;
    match (decoder.schema(), batches.is_empty()) {
        (None, _) => Err(bad("it is empty")),
        // A batch of no rows has a schema all the same, which has to be right.
        (Some(schema), true) => Ok(vec![RecordBatch::new_empty(schema)]),
        (Some(_), false) => Ok(batches),
    }
}

fn bad(why: &str) -> AppendError {
    AppendError::new(ErrorCode::INCORRECT_DATA, &format!("The batch is no Arrow IPC stream that can be read: {why}"))
}

fn of_native(mut bytes: &[u8], max_bytes: u64) -> Result<Vec<RecordBatch>, AppendError> {
    let limits = NativeLimits { max_unfolded_bytes: max_bytes as usize, ..NativeLimits::default() };
    let unreadable = |why: &dyn std::fmt::Display| {
        AppendError::new(ErrorCode::INCORRECT_DATA, &format!("The batch can't be read as Native: {why}"))
    };
    let mut batches = Vec::new();
    while !bytes.is_empty() {
        let native = decode_native(bytes, limits).map_err(|error| unreadable(&error))?;
        let batch = record_batch(&native.block, &native.names, &native.types).map_err(|error| unreadable(&error))?;
        batches.push(batch);
        bytes = bytes.get(native.consumed_bytes..).filter(|_| native.consumed_bytes > 0).unwrap_or(&[]);
    }
    // No bytes are no rows, and no columns either that later batches would be bound to.
    Ok(batches)
}
