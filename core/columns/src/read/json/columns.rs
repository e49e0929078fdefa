//! Rows as arrays of the columns' values.

use super::PlainFields;
use crate::read::json_text::skip_value;
use crate::read::nested::ValueReader;
use crate::read::outcome::NotParsedReason;

/// Reads objects of columns, one after the other.
pub(super) fn read_by_name(mut fields: PlainFields<'_, '_, '_>) -> Result<(), NotParsedReason> {
    fields.values.cursor.skip_space();
    while !fields.values.cursor.at_end() {
        let rows = read_named_columns(&mut fields)?;
        fields.values.cursor.skip_space();
        end_chunk(&fields, rows)?;
    }
    Ok(())
}

/// Reads arrays of columns, one after the other.
pub(super) fn read_by_position(mut fields: PlainFields<'_, '_, '_>) -> Result<(), NotParsedReason> {
    fields.values.cursor.skip_space();
    while !fields.values.cursor.at_end() {
        let rows = read_columns_in_order(&mut fields)?;
        fields.values.cursor.skip_space();
        end_chunk(&fields, rows)?;
    }
    Ok(())
}

/// Refuses a chunk of no rows before the end: ClickHouse stops reading there.
fn end_chunk(fields: &PlainFields<'_, '_, '_>, rows: usize) -> Result<(), NotParsedReason> {
    if rows == 0 && !fields.values.cursor.at_end() {
        return Err(NotParsedReason::Syntax);
    }
    Ok(())
}

/// Reads one object of columns; returns the number of its rows.
pub(super) fn read_named_columns(fields: &mut PlainFields<'_, '_, '_>) -> Result<usize, NotParsedReason> {
    let mut rows = None;
    fields.values.cursor.expect(b'{')?;
    fields.values.cursor.skip_space();
    if !fields.values.cursor.eat(b'}') {
        loop {
            let name = fields.values.read_plain_key()?;
            let column = fields.position(name)?;
            fields.values.expect_colon()?;
            match column {
                Some(column) => read_column(fields, column, &mut rows)?,
                None => skip_column(fields)?,
            }
            if fields.values.ends_object()? {
                break;
            }
        }
    }
    end_rows(fields, rows)
}

fn read_columns_in_order(fields: &mut PlainFields<'_, '_, '_>) -> Result<usize, NotParsedReason> {
    let mut rows = None;
    fields.values.cursor.expect(b'[')?;
    fields.values.cursor.skip_space();
    if !fields.values.cursor.eat(b']') {
        for column in 0.. {
            if column == fields.rows.columns.len() {
                return Err(NotParsedReason::Syntax);
            }
            read_column(fields, column, &mut rows)?;
            if fields.values.ends_list(b']')? {
                break;
            }
        }
    }
    end_rows(fields, rows)
}

fn end_rows(fields: &mut PlainFields<'_, '_, '_>, rows: Option<usize>) -> Result<usize, NotParsedReason> {
    let rows = rows.unwrap_or(0);
    fields.rows.end_rows(rows)?;
    Ok(rows)
}

/// Skips the values of a column of no known name. They are not looked at, but they have to be an array.
fn skip_column(fields: &mut PlainFields<'_, '_, '_>) -> Result<(), NotParsedReason> {
    if fields.values.cursor.peek() != Some(b'[') {
        return Err(NotParsedReason::Syntax);
    }
    skip_value(&mut fields.values.cursor, &mut fields.values.scratch).map(drop)
}

/// Reads the values of a column. A NULL is stored as zero here, even if the column has a DEFAULT expression.
fn read_column(
    fields: &mut PlainFields<'_, '_, '_>,
    column: usize,
    rows: &mut Option<usize>,
) -> Result<(), NotParsedReason> {
    let mut count = 0;
    fields.rows.see(column)?;
    fields.values.cursor.expect(b'[')?;
    fields.values.cursor.skip_space();
    if !fields.values.cursor.eat(b']') {
        fields.rows.give(column)?;
        let reader = &fields.rows.plan.rules.readers[column].reader;
        let values = &mut fields.rows.columns[column];
        loop {
            fields.values.read(reader, values)?;
            count += 1;
            if fields.values.ends_list(b']')? {
                break;
            }
        }
    }
    match rows.replace(count) {
        Some(before) if before != count => Err(NotParsedReason::Value),
        _ => Ok(()),
    }
}
