use super::super::rows::Rows;
use super::header::Target;
use super::input::BinaryInput;
use super::value::read_value;
use super::{all_columns, NotParsed, NotParsedReason, Parsed};
use crate::column::Column;
use crate::plan::ReadPlan;
use crate::read::series::{Kept, Stopped};

/// Reads rows in which each of the payload's columns has a value.
pub(super) fn read_rows(
    input: &mut BinaryInput<'_>,
    plan: &ReadPlan,
    mut targets: Vec<Target>,
) -> Result<Parsed, NotParsed> {
    let mut rows = Rows::new(plan, input.rest().len())?;
    let mut count = 0;
    match append_rows(input, &mut rows, &mut targets, &mut count) {
        Ok(()) => rows.finish(),
        Err(reason) => Err(NotParsed { reason, row: count as u64 }),
    }
}

/// Appends rows; `count` is set to the number of rows that were read.
#[inline]
fn append_rows(
    input: &mut BinaryInput<'_>,
    rows: &mut Rows<'_>,
    targets: &mut [Target],
    count: &mut usize,
) -> Result<(), NotParsedReason> {
    for target in targets.iter() {
        if let Target::Column(column) = target {
            rows.see(*column)?;
        }
    }
    if input.rest().len() >= MIN_BYTES_BY_COLUMN {
        if let Some(widths) = widths(&rows.columns, targets) {
            *count = read_fixed_rows(input, &mut rows.columns, targets, &widths);
        }
    }
    let (mut failed, mut read) = (None, *count);
    while !input.at_end() {
        if let Err(reason) = read_row(input, &mut rows.columns, targets, &mut failed) {
            failed.into_iter().for_each(|column| rows.fail(column));
            *count = read;
            return Err(reason);
        }
        read += 1;
    }
    *count = read;
    rows.end_rows(read)
}

/// Appends the rows of one more payload, in the format RowBinary.
pub(super) fn append(payload: &[u8], rows: &mut Rows<'_>, kept: &mut Kept) -> Result<(), Stopped> {
    let mut input = BinaryInput::new(payload);
    if kept.targets.len() != rows.columns.len() {
        kept.targets = all_columns(rows.plan);
    }
    let mut count = 0;
    append_rows(&mut input, rows, &mut kept.targets, &mut count).map_err(|reason| {
        rows.skip_to(count);
        Stopped { reason, at: payload.len() - input.rest().len() }
    })
}

/// Shortest payload that is read by columns. Shorter ones are read row by row: looking at the columns first
/// is not worth it.
const MIN_BYTES_BY_COLUMN: usize = 1024;

#[inline(always)]
fn read_row(
    input: &mut BinaryInput<'_>,
    columns: &mut [Column],
    targets: &mut [Target],
    failed: &mut Option<usize>,
) -> Result<(), NotParsedReason> {
    for target in targets {
        match target {
            Target::Column(column) => {
                if let Err(reason) = read_value(input, &mut columns[*column]) {
                    *failed = Some(*column);
                    return Err(reason);
                }
            }
            Target::Nowhere(scratch) => {
                read_value(input, scratch)?;
                scratch.clear();
            }
        }
    }
    Ok(())
}

/// Returns the width of every column in the payload, if each column has values of one width.
fn widths(columns: &[Column], targets: &[Target]) -> Option<Vec<usize>> {
    let width = |target: &Target| match target {
        Target::Column(column) => columns[*column].width(),
        Target::Nowhere(scratch) => scratch.width(),
    };
    targets.iter().map(width).collect()
}

/// Reads all whole rows, column by column, and returns their number.
fn read_fixed_rows(input: &mut BinaryInput<'_>, columns: &mut [Column], targets: &[Target], widths: &[usize]) -> usize {
    let row_bytes: usize = widths.iter().sum();
    let count = input.rest().len() / row_bytes;
    let Ok(bytes) = input.take(count * row_bytes) else { return 0 };
    let mut offset = 0;
    for (target, width) in targets.iter().zip(widths) {
        if let Target::Column(column) = target {
            if let Column::Fixed { data, .. } = &mut columns[*column] {
                copy_column(bytes, row_bytes, offset, *width, data);
            }
        }
        offset += width;
    }
    count
}

fn copy_column(bytes: &[u8], row_bytes: usize, offset: usize, width: usize, data: &mut Vec<u8>) {
    data.reserve(bytes.len() / row_bytes * width);
    let rows = bytes.chunks_exact(row_bytes);
    match width {
        1 => data.extend(rows.map(|row| row[offset])),
        2 => copy_values::<2>(rows, offset, data),
        4 => copy_values::<4>(rows, offset, data),
        8 => copy_values::<8>(rows, offset, data),
        16 => copy_values::<16>(rows, offset, data),
        _ => rows.for_each(|row| data.extend_from_slice(&row[offset..offset + width])),
    }
}

fn copy_values<'a, const WIDTH: usize>(rows: impl Iterator<Item = &'a [u8]>, offset: usize, data: &mut Vec<u8>) {
    for value in rows.filter_map(|row| row[offset..].first_chunk::<WIDTH>()) {
        data.extend_from_slice(value);
    }
}

/// Reads rows in which a byte before each value says whether it is left out.
pub(super) fn read_rows_with_defaults(
    input: &mut BinaryInput<'_>,
    plan: &ReadPlan,
    mut targets: Vec<Target>,
) -> Result<Parsed, NotParsed> {
    let mut rows = Rows::new(plan, input.rest().len())?;
    while !input.at_end() {
        read_row_with_defaults(input, &mut rows, &mut targets).map_err(|reason| rows.not_parsed(reason))?;
    }
    rows.finish()
}

fn read_row_with_defaults(
    input: &mut BinaryInput<'_>,
    rows: &mut Rows<'_>,
    targets: &mut [Target],
) -> Result<(), NotParsedReason> {
    for target in targets {
        let is_left_out = input.byte()? != 0;
        match target {
            Target::Column(column) if is_left_out => {
                rows.see(*column)?;
                rows.give_default(*column)?;
            }
            Target::Column(column) => {
                rows.see(*column)?;
                rows.give(*column)?;
                read_value(input, &mut rows.columns[*column])?;
            }
            Target::Nowhere(_) if is_left_out => {}
            Target::Nowhere(scratch) => {
                read_value(input, scratch)?;
                scratch.clear();
            }
        }
    }
    rows.end_rows(1)
}
