//! RowBinary and its kin: rows of values one after the other, with nothing between them. A value is written
//! as in a Native column, except for lists, which stand behind their length, and NULLs, which have no value.
//!
//! Only the columns' layouts decide how bytes are read: ClickHouse checks no value here, whatever the type,
//! and stores its bytes as they are.

mod header;
mod input;
mod rows;
mod value;

use super::outcome::{NotParsed, NotParsedReason, Parsed};
use super::series::Append;
use crate::plan::ReadPlan;
pub(in crate::read) use header::Target;
use header::{read_header, HeaderForm};
pub(super) use input::BinaryInput;

/// Reads a payload in the format RowBinary: the plan's columns in order.
pub fn read_row_binary(payload: &[u8], plan: &ReadPlan) -> Result<Parsed, NotParsed> {
    rows::read_rows(&mut BinaryInput::new(payload), plan, all_columns(plan))
}

/// Reads a payload in the format RowBinaryWithDefaults: before every value a byte says whether it is left out.
pub fn read_row_binary_with_defaults(payload: &[u8], plan: &ReadPlan) -> Result<Parsed, NotParsed> {
    rows::read_rows_with_defaults(&mut BinaryInput::new(payload), plan, all_columns(plan))
}

/// Reads a payload in the format RowBinaryWithNames: the names of its columns come first.
pub fn read_row_binary_with_names(payload: &[u8], plan: &ReadPlan) -> Result<Parsed, NotParsed> {
    let mut input = BinaryInput::new(payload);
    let targets = read_header(&mut input, plan, HeaderForm::Names).map_err(in_header)?;
    rows::read_rows(&mut input, plan, targets)
}

/// Reads a payload in the format RowBinaryWithNamesAndTypes.
pub fn read_row_binary_with_names_and_types(payload: &[u8], plan: &ReadPlan) -> Result<Parsed, NotParsed> {
    let mut input = BinaryInput::new(payload);
    let targets = read_header(&mut input, plan, HeaderForm::NamesAndTypes).map_err(in_header)?;
    rows::read_rows(&mut input, plan, targets)
}

/// Reads a payload in the format RowBinaryWithNamesAndTypesAndDefaults.
pub fn read_row_binary_with_names_and_types_and_defaults(payload: &[u8], plan: &ReadPlan) -> Result<Parsed, NotParsed> {
    let mut input = BinaryInput::new(payload);
    let targets = read_header(&mut input, plan, HeaderForm::NamesAndTypes).map_err(in_header)?;
    rows::read_rows_with_defaults(&mut input, plan, targets)
}

pub(super) fn appender(format: &str) -> Option<Append> {
    (format == "RowBinary").then_some(rows::append as Append)
}

fn all_columns(plan: &ReadPlan) -> Vec<Target> {
    (0..plan.columns().len()).map(Target::Column).collect()
}

fn in_header(reason: NotParsedReason) -> NotParsed {
    NotParsed { reason, row: 0 }
}
