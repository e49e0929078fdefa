//! MsgPack: one item for every column of every row, with nothing around a row.
//!
//! ClickHouse cuts an integer down to the width of its column, so those that don't fit are left to it. It takes no
//! float for another width of float, and no text for a number or a time.

mod item;
mod value;

use super::binary::BinaryInput;
use super::outcome::{NotTyped, NotTypedReason, Parsed};
use super::rows::Rows;
use crate::plan::ReadPlan;
use item::{read_item, Item};

/// Reads a payload in the format MsgPack.
pub fn read_msgpack(payload: &[u8], plan: &ReadPlan) -> Result<Parsed, NotTyped> {
    let mut rows = Rows::new(plan, payload.len())?;
    let mut input = BinaryInput::new(payload);
    while !input.at_end() {
        if let Err(reason) = read_row(&mut input, &mut rows) {
            return Err(rows.not_typed(reason));
        }
    }
    rows.finish()
}

fn read_row(input: &mut BinaryInput<'_>, rows: &mut Rows<'_>) -> Result<(), NotTypedReason> {
    let plan = rows.plan;
    for (column, spec) in plan.columns().iter().enumerate() {
        rows.see(column)?;
        match read_item(input)? {
            Item::Nil if !plan.readers[column].nullable => rows.give_null(column)?,
            item => {
                rows.give(column)?;
                value::read(input, item, &spec.data_type, &mut rows.columns[column], &plan.settings)?;
            }
        }
    }
    rows.end_row()
}
