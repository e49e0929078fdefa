//! MsgPack: one item for every column of every row, with nothing around a row.
//!
//! ClickHouse cuts an integer down to the width of its column, so those that don't fit are left to it. It takes no
//! float for another width of float, and no text for a number or a time.

mod item;
mod value;

use super::binary::BinaryInput;
use super::outcome::{NotParsed, NotParsedReason, Parsed};
use super::rows::Rows;
use super::series::{Kept, Stopped};
use crate::plan::ReadPlan;
use crate::types::DataType;
use item::{read_item, Item};

/// Reads a payload in the format MsgPack.
pub fn read_msgpack(payload: &[u8], plan: &ReadPlan) -> Result<Parsed, NotParsed> {
    let mut rows = Rows::new(plan, payload.len())?;
    match append(payload, &mut rows, &mut Kept::default()) {
        Ok(()) => rows.finish(),
        Err(stopped) => Err(rows.not_parsed(stopped.reason)),
    }
}

/// Appends the rows of one more payload.
pub(super) fn append(payload: &[u8], rows: &mut Rows<'_>, _: &mut Kept) -> Result<(), Stopped> {
    let mut input = BinaryInput::new(payload);
    while !input.at_end() {
        read_row(&mut input, rows).map_err(|reason| Stopped { reason, at: payload.len() - input.rest().len() })?;
    }
    Ok(())
}

fn read_row(input: &mut BinaryInput<'_>, rows: &mut Rows<'_>) -> Result<(), NotParsedReason> {
    let plan = rows.plan;
    for (column, spec) in plan.columns().iter().enumerate() {
        rows.see(column)?;
        if let Err(reason) = read_column(input, rows, column, &spec.data_type) {
            rows.fail(column);
            return Err(reason);
        }
    }
    rows.end_row()
}

#[inline(always)]
fn read_column(
    input: &mut BinaryInput<'_>,
    rows: &mut Rows<'_>,
    column: usize,
    data_type: &DataType,
) -> Result<(), NotParsedReason> {
    match read_item(input)? {
        Item::Nil if !rows.plan.rules.readers[column].nullable => rows.give_null(column),
        item => {
            rows.give(column)?;
            value::read(input, item, data_type, &mut rows.columns[column], &rows.plan.rules.settings)
        }
    }
}
