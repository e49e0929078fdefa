use super::cursor::Cursor;
use super::nested::ValueReader;
use super::outcome::{NotParsed, NotParsedReason, Parsed};
use super::rows::Rows;
use super::sql_value::SqlValues;
use crate::plan::ReadPlan;

/// Reads the rows behind VALUES, as far as they are made of literals: `(1, 'a'), (2, DEFAULT)`.
///
/// # Errors
/// Fails where the payload can't be parsed with certainty: it is then left to ClickHouse.
pub fn read_values(payload: &[u8], plan: &ReadPlan) -> Result<Parsed, NotParsed> {
    let mut rows = Rows::new(plan, payload.len())?;
    let mut values = SqlValues { cursor: Cursor::new(payload), scratch: Vec::new(), settings: &plan.rules.settings };
    match read_rows(&mut values, &mut rows) {
        Ok(()) => rows.finish(),
        Err(reason) => Err(rows.not_parsed(reason)),
    }
}

fn read_rows(values: &mut SqlValues<'_, '_>, rows: &mut Rows<'_>) -> Result<(), NotParsedReason> {
    values.cursor.skip_space();
    while !matches!(values.cursor.peek(), None | Some(b';')) {
        read_row(values, rows)?;
        values.cursor.skip_space();
        if values.cursor.eat(b',') {
            values.cursor.skip_space();
        }
    }
    values.cursor.eat_final_semicolon()
}

fn read_row(values: &mut SqlValues<'_, '_>, rows: &mut Rows<'_>) -> Result<(), NotParsedReason> {
    values.cursor.expect(b'(')?;
    for column in 0..rows.columns.len() {
        if column > 0 {
            values.cursor.expect(b',')?;
        }
        values.cursor.skip_space();
        rows.see(column)?;
        read_value(values, rows, column)?;
        values.cursor.skip_space();
    }
    values.cursor.expect(b')')?;
    rows.end_row()
}

fn read_value(values: &mut SqlValues<'_, '_>, rows: &mut Rows<'_>, column: usize) -> Result<(), NotParsedReason> {
    let reader = &rows.plan.rules.readers[column];
    match values.cursor.peek() {
        Some(b'D' | b'd') if values.cursor.eat_word(b"DEFAULT") => rows.give_default(column),
        Some(b'N' | b'n') if !reader.nullable && values.eat_null()? => rows.give_null(column),
        _ => {
            rows.give(column)?;
            values.read_column(&reader.reader, &mut rows.columns[column])
        }
    }
}
