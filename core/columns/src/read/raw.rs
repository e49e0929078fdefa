//! Formats for tables of a single String, whose values are pieces of the payload.

use memchr::memchr_iter;

use super::cursor::Cursor;
use super::json_text::skip_value;
use super::nested::ends_list;
use super::outcome::{NotParsed, NotParsedReason, Parsed};
use super::rows::Rows;
use super::scalar::push_string;
use super::series::{Append, Stopped};
use crate::column::Column;
use crate::plan::ReadPlan;
use crate::types::DataType;

/// Reads a payload in the format LineAsString: every line is a value.
pub fn read_line_as_string(payload: &[u8], plan: &ReadPlan) -> Result<Parsed, NotParsed> {
    read(plan, |values| lines(payload, values))
}

fn lines(payload: &[u8], values: &mut Values<'_, '_>) -> Result<(), NotParsedReason> {
    let mut start = 0;
    for end in memchr_iter(b'\n', payload) {
        values.push(&payload[start..end])?;
        start = end + 1;
    }
    match start < payload.len() {
        true => values.push(&payload[start..]),
        false => Ok(()),
    }
}

/// Reads a payload in the format RawBLOB: all of it is one value.
pub fn read_raw_blob(payload: &[u8], plan: &ReadPlan) -> Result<Parsed, NotParsed> {
    read(plan, |values| whole(payload, values))
}

fn whole(payload: &[u8], values: &mut Values<'_, '_>) -> Result<(), NotParsedReason> {
    match payload {
        [] => Err(NotParsedReason::Value),
        payload => values.push(payload),
    }
}

/// Reads a payload in the format JSONAsString: every object is a value, as it is written.
pub fn read_json_as_string(payload: &[u8], plan: &ReadPlan) -> Result<Parsed, NotParsed> {
    read(plan, |values| objects(payload, values))
}

fn objects(payload: &[u8], values: &mut Values<'_, '_>) -> Result<(), NotParsedReason> {
    let mut cursor = Cursor::new(payload);
    cursor.skip_space();
    if cursor.eat(b'[') {
        read_array(&mut cursor, values)?;
    } else {
        read_sequence(&mut cursor, values)?;
    }
    cursor.eat_final_semicolon()
}

/// Returns the function that appends the rows of one more payload, for formats whose payloads may follow each
/// other.
pub(super) fn appender(format: &str) -> Option<Append> {
    Some(match format {
        "LineAsString" => |payload, rows, _| append(payload, rows, lines),
        "RawBLOB" => |payload, rows, _| append(payload, rows, whole),
        "JSONAsString" => |payload, rows, _| append(payload, rows, objects),
        _ => return None,
    })
}

fn append(
    payload: &[u8],
    rows: &mut Rows<'_>,
    read_values: impl FnOnce(&[u8], &mut Values<'_, '_>) -> Result<(), NotParsedReason>,
) -> Result<(), Stopped> {
    check_columns(rows)
        .and_then(|()| read_values(payload, &mut Values { rows }))
        .map_err(|reason| Stopped { reason, at: 0 })
}

fn read_array(cursor: &mut Cursor<'_>, values: &mut Values<'_, '_>) -> Result<(), NotParsedReason> {
    cursor.skip_space();
    if !cursor.eat(b']') {
        loop {
            values.push(read_object(cursor)?)?;
            if ends_list(cursor, b']')? {
                break;
            }
        }
    }
    cursor.skip_space();
    Ok(())
}

fn read_sequence(cursor: &mut Cursor<'_>, values: &mut Values<'_, '_>) -> Result<(), NotParsedReason> {
    while !matches!(cursor.peek(), None | Some(b';')) {
        values.push(read_object(cursor)?)?;
        cursor.skip_space();
        if cursor.eat(b',') {
            cursor.skip_space();
            if cursor.peek() == Some(b';') {
                return Err(NotParsedReason::Syntax);
            }
        }
    }
    Ok(())
}

fn read_object<'a>(cursor: &mut Cursor<'a>) -> Result<&'a [u8], NotParsedReason> {
    if cursor.peek() != Some(b'{') {
        return Err(NotParsedReason::Syntax);
    }
    skip_value(cursor, &mut Vec::new())
}

struct Values<'r, 'p> {
    rows: &'r mut Rows<'p>,
}

impl Values<'_, '_> {
    fn push(&mut self, value: &[u8]) -> Result<(), NotParsedReason> {
        self.rows.see(0)?;
        let Some(Column::Strings { rows, data }) = self.rows.columns.first_mut() else {
            return Err(NotParsedReason::ColumnKind);
        };
        push_string(value, rows, data);
        self.rows.end_row()
    }
}

fn read(
    plan: &ReadPlan,
    read_values: impl FnOnce(&mut Values<'_, '_>) -> Result<(), NotParsedReason>,
) -> Result<Parsed, NotParsed> {
    let mut rows = Rows::new(plan, 0)?;
    match check_columns(&rows).and_then(|()| read_values(&mut Values { rows: &mut rows })) {
        Ok(()) => rows.finish(),
        Err(reason) => Err(rows.not_parsed(reason)),
    }
}

fn check_columns(rows: &Rows<'_>) -> Result<(), NotParsedReason> {
    match rows.plan.columns() {
        [column] if matches!(column.data_type, DataType::String) => Ok(()),
        _ => Err(NotParsedReason::ColumnKind),
    }
}
