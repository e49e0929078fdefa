//! Native as clients send it over HTTP: blocks one after the other, without BlockInfo, whatever protocol version the
//! request names. Each names its columns, in any order, and may leave some out.

use super::native_convert::convert;
use super::outcome::{NotTyped, NotTypedReason, Parsed};
use super::rows::Rows;
use crate::column::Column;
use crate::native::{read_column, Input, NativeError, NativeLimits};
use crate::plan::ReadPlan;
use crate::types::DataType;

/// Reads a payload in the format Native.
pub fn read_native(payload: &[u8], plan: &ReadPlan) -> Result<Parsed, NotTyped> {
    let mut rows = Rows::new(plan)?;
    let mut input = Input::new(payload, NativeLimits::default());
    while !input.at_end() {
        if let Err(reason) = read_block(&mut input, &mut rows) {
            return Err(rows.not_typed(reason));
        }
    }
    rows.finish()
}

impl From<NativeError> for NotTypedReason {
    fn from(error: NativeError) -> Self {
        match error {
            NativeError::Truncated | NativeError::Malformed(_) => NotTypedReason::Syntax,
            NativeError::OverLimit(_) | NativeError::Type(_) => NotTypedReason::Value,
        }
    }
}

fn read_block(input: &mut Input<'_>, rows: &mut Rows<'_>) -> Result<(), NotTypedReason> {
    let column_count = input.columns()?;
    let row_count = input.rows()?;
    if column_count == 0 {
        // Of no rows, it ends the payload whatever follows; of some, it is rows of defaults.
        return Err(NotTypedReason::Syntax);
    }
    let mut expected = 0;
    for _ in 0..column_count {
        let name = input.text()?.as_bytes();
        let is_expected = rows.plan.columns().get(expected).is_some_and(|column| column.name.as_bytes() == name);
        match is_expected.then_some(expected).or_else(|| rows.plan.position(name)) {
            Some(column) => {
                read_known_column(input, rows, column, row_count)?;
                expected = column + 1;
            }
            None => skip_unknown_column(input, rows.plan, name, row_count)?,
        }
    }
    rows.end_rows(row_count)
}

fn read_known_column(
    input: &mut Input<'_>,
    rows: &mut Rows<'_>,
    column: usize,
    row_count: usize,
) -> Result<(), NotTypedReason> {
    let plan = rows.plan;
    let wanted = &plan.columns()[column].data_type;
    let type_text = input.text()?;
    rows.see(column)?;
    let values = if type_text == plan.readers[column].type_text {
        read_column(input, wanted, row_count)?
    } else {
        let sent = parse_type(type_text)?;
        convert(read_column(input, &sent, row_count)?, &sent, wanted)?
    };
    if row_count > 0 {
        rows.give(column)?;
        gather(&mut rows.columns[column], values);
    }
    Ok(())
}

fn gather(column: &mut Column, values: Column) {
    if column.rows() == 0 {
        *column = values;
    } else {
        column.append(&values);
    }
}

fn skip_unknown_column(
    input: &mut Input<'_>,
    plan: &ReadPlan,
    name: &[u8],
    row_count: usize,
) -> Result<(), NotTypedReason> {
    if !plan.settings.skip_unknown_fields || plan.resembles_a_column(name) {
        return Err(NotTypedReason::UnknownField);
    }
    let sent = parse_type(input.text()?)?;
    read_column(input, &sent, row_count)?;
    Ok(())
}

fn parse_type(text: &str) -> Result<DataType, NotTypedReason> {
    DataType::parse(text).map_err(|_| NotTypedReason::Value)
}
