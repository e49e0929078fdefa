use super::cursor::Cursor;
use super::json_text::skip_value;
use super::json_value::JsonValues;
use super::outcome::{NotTyped, NotTypedReason, Parsed};
use super::rows::Rows;
use crate::plan::ReadPlan;

/// Reads a payload in the format JSONEachRow: objects with or without separators, or one array of them.
pub fn read_json_each_row(payload: &[u8], plan: &ReadPlan) -> Result<Parsed, NotTyped> {
    let mut rows = Rows::new(plan)?;
    let values = JsonValues { cursor: Cursor::new(payload), scratch: Vec::new(), settings: &plan.settings };
    let outcome = Objects { values, rows: &mut rows, order: Vec::new() }.read();
    match outcome {
        Ok(()) => rows.finish(),
        Err(reason) => Err(rows.not_typed(reason)),
    }
}

struct Objects<'a, 'p, 'r> {
    values: JsonValues<'a, 'p>,
    rows: &'r mut Rows<'p>,
    /// The columns in the order in which the second row gave them; the rows behind it mostly do the same.
    order: Vec<usize>,
}

/// In `order`, for a key that is no column's.
const NO_COLUMN: usize = usize::MAX;

impl Objects<'_, '_, '_> {
    fn read(&mut self) -> Result<(), NotTypedReason> {
        self.values.cursor.skip_space();
        if self.values.cursor.eat(b'[') {
            self.read_array()
        } else {
            self.read_sequence()
        }
    }

    /// Objects one after the other, with a comma between or behind them where somebody likes one.
    fn read_sequence(&mut self) -> Result<(), NotTypedReason> {
        while !matches!(self.values.cursor.peek(), None | Some(b';')) {
            self.read_row()?;
            self.values.cursor.skip_space();
            if self.values.cursor.eat(b',') {
                self.values.cursor.skip_space();
                if self.values.cursor.peek() == Some(b';') {
                    return Err(NotTypedReason::Syntax);
                }
            }
        }
        self.values.cursor.eat_final_semicolon()
    }

    fn read_array(&mut self) -> Result<(), NotTypedReason> {
        self.values.cursor.skip_space();
        if !self.values.cursor.eat(b']') {
            loop {
                self.read_row()?;
                self.values.cursor.skip_space();
                if self.values.cursor.eat(b']') {
                    break;
                }
                self.values.cursor.expect(b',')?;
                self.values.cursor.skip_space();
            }
        }
        self.values.cursor.skip_space();
        self.values.cursor.eat_final_semicolon()
    }

    #[inline]
    fn read_row(&mut self) -> Result<(), NotTypedReason> {
        self.values.cursor.expect(b'{')?;
        self.values.cursor.skip_space();
        if !self.values.cursor.eat(b'}') {
            let learning = self.rows.is_second();
            // Rows mostly give the columns in the table's order, so the next key is known before it is read.
            let mut next = 0;
            for position in 0.. {
                let column = self.read_member(self.order.get(position).copied().unwrap_or(next))?;
                if learning {
                    self.order.push(column);
                }
                next = column.wrapping_add(1);
                if self.values.ends_object()? {
                    break;
                }
            }
        }
        self.rows.end_row()
    }

    /// Reads a key and its value; returns the column.
    #[inline]
    fn read_member(&mut self, expected: usize) -> Result<usize, NotTypedReason> {
        let plan = self.rows.plan;
        if let Some(reader) = plan.readers.get(expected) {
            if !reader.key.is_empty() && self.values.cursor.eat_exactly(&reader.key) {
                self.values.cursor.skip_space();
                self.read_value(expected)?;
                return Ok(expected);
            }
        }
        let name = self.values.read_plain_key()?;
        match plan.position(name) {
            Some(column) => {
                self.values.expect_colon()?;
                self.read_value(column)?;
                Ok(column)
            }
            None => {
                if !plan.settings.skip_unknown_fields || plan.resembles_a_column(name) {
                    return Err(NotTypedReason::UnknownField);
                }
                self.values.expect_colon()?;
                skip_value(&mut self.values.cursor, &mut self.values.scratch)?;
                Ok(NO_COLUMN)
            }
        }
    }

    #[inline]
    fn read_value(&mut self, column: usize) -> Result<(), NotTypedReason> {
        let reader = &self.rows.plan.readers[column];
        self.rows.see(column)?;
        if !reader.nullable && self.values.cursor.peek() == Some(b'n') {
            self.values.expect_null()?;
            return self.rows.give_null(column);
        }
        self.rows.give(column)?;
        self.values.read(&reader.reader, &mut self.rows.columns[column])
    }
}
