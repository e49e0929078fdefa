//! Native as clients send it over HTTP: blocks one after the other, without BlockInfo, whatever protocol version the
//! request names. Each names its columns, in any order, and may leave some out.

use super::allowance::Allowance;
use super::native_convert::convert;
use super::outcome::{NotParsed, NotParsedReason, Parsed};
use super::rows::Rows;
use super::sent_type;
use crate::column::Column;
use crate::native::{read_column, Input, NativeError, NativeLimits};
use crate::plan::ReadPlan;
use crate::types::DataType;

/// Reads a payload in the format Native.
pub fn read_native(payload: &[u8], plan: &ReadPlan) -> Result<Parsed, NotParsed> {
    let mut rows = Rows::new(plan, payload.len())?;
    let max_unfolded_bytes = Allowance::of(payload.len()).left_bytes();
    let mut input = Input::new(payload, NativeLimits { max_unfolded_bytes, ..NativeLimits::default() });
    while !input.at_end() {
        if let Err(reason) = read_block(&mut input, &mut rows) {
            return Err(rows.not_parsed(reason));
        }
    }
    rows.finish()
}

impl From<NativeError> for NotParsedReason {
    fn from(error: NativeError) -> Self {
        match error {
            NativeError::Truncated | NativeError::Malformed(_) => NotParsedReason::Syntax,
            NativeError::OverLimit(_) | NativeError::Type(_) => NotParsedReason::Value,
        }
    }
}

fn read_block(input: &mut Input<'_>, rows: &mut Rows<'_>) -> Result<(), NotParsedReason> {
    let column_count = input.columns()?;
    let row_count = input.rows()?;
    if column_count == 0 {
        // Of no rows, it ends the payload whatever follows; of some, it is rows of defaults.
        return Err(NotParsedReason::Syntax);
    }
    let mut expected = 0;
    for _ in 0..column_count {
        let column = read_column_of_block(input, rows, expected, row_count)?;
        expected = column.map_or(expected, |column| column + 1);
    }
    rows.end_rows(row_count)
}

/// Reads a column with its name and type. Returns the column, which is mostly `expected`; `None` for one that
/// is skipped.
fn read_column_of_block(
    input: &mut Input<'_>,
    rows: &mut Rows<'_>,
    expected: usize,
    row_count: usize,
) -> Result<Option<usize>, NotParsedReason> {
    let plan = rows.plan;
    if let Some(reader) = plan.rules.readers.get(expected) {
        let plain = reader.plain.as_ref();
        let data_type = match () {
            () if input.eat_exactly(&reader.native_header) => Some(&plan.columns()[expected].data_type),
            () => plain.filter(|plain| input.eat_exactly(&plain.native_header)).map(|plain| &plain.data_type),
        };
        if let Some(data_type) = data_type {
            read_known_type(input, rows, expected, data_type, row_count)?;
            return Ok(Some(expected));
        }
    }
    let name = input.text()?.as_bytes();
    let Some(column) = plan.position(name) else {
        skip_unknown_column(input, plan, name, row_count)?;
        return Ok(None);
    };
    let type_text = input.text()?;
    if type_text == plan.rules.readers[column].type_text {
        read_known_type(input, rows, column, &plan.columns()[column].data_type, row_count)?;
    } else {
        read_other_type(input, rows, column, type_text, row_count)?;
    }
    Ok(Some(column))
}

/// Reads values of a type whose values are laid out as those of the column's type.
fn read_known_type(
    input: &mut Input<'_>,
    rows: &mut Rows<'_>,
    column: usize,
    data_type: &DataType,
    row_count: usize,
) -> Result<(), NotParsedReason> {
    rows.see(column)?;
    if row_count > 0 {
        rows.give(column)?;
        read_column(input, data_type, row_count, &mut rows.columns[column])?;
    }
    Ok(())
}

fn read_other_type(
    input: &mut Input<'_>,
    rows: &mut Rows<'_>,
    column: usize,
    type_text: &str,
    row_count: usize,
) -> Result<(), NotParsedReason> {
    let sent = sent_type::parse_for(&rows.plan.columns()[column].data_type, type_text)?;
    // ClickHouse would refuse it, or take an Enum's numbers for another's.
    if !rows.plan.rules.settings.native_casts {
        return Err(NotParsedReason::Value);
    }
    rows.see(column)?;
    if row_count == 0 {
        return Ok(());
    }
    rows.give(column)?;
    let mut values = Column::empty(&sent);
    read_column(input, &sent, row_count, &mut values)?;
    let values = convert(values, &sent, &rows.plan.columns()[column].data_type)?;
    let gathered = &mut rows.columns[column];
    if gathered.rows() == 0 {
        *gathered = values;
    } else {
        gathered.append(&values);
    }
    Ok(())
}

fn skip_unknown_column(
    input: &mut Input<'_>,
    plan: &ReadPlan,
    name: &[u8],
    row_count: usize,
) -> Result<(), NotParsedReason> {
    if !plan.rules.settings.skip_unknown_fields || plan.resembles_a_column(name) {
        return Err(NotParsedReason::UnknownField);
    }
    let sent = sent_type::parse(input.text()?)?;
    Ok(read_column(input, &sent, row_count, &mut Column::empty(&sent))?)
}
