//! One column's value in one row.

use crate::read::cursor::Cursor;
use crate::read::json_text::skip_value;
use crate::read::json_value::JsonValues;
use crate::read::nested::ValueReader;
use crate::read::outcome::NotParsedReason;
use crate::read::rows::Rows;

/// A reader of values. With `STRINGS` every value is a JSON string that has the value's text.
pub(super) struct Fields<'a, 'p, 'r, const STRINGS: bool> {
    pub(super) values: JsonValues<'a, 'p>,
    pub(super) rows: &'r mut Rows<'p>,
}

impl<'a, 'p, 'r, const STRINGS: bool> Fields<'a, 'p, 'r, STRINGS> {
    pub(super) fn new(payload: &'a [u8], rows: &'r mut Rows<'p>) -> Self {
        let settings = &rows.plan.rules.settings;
        Fields { values: JsonValues { cursor: Cursor::new(payload), scratch: Vec::new(), settings }, rows }
    }

    /// Reads the value at the cursor, which the current row has for `column`.
    #[inline]
    pub(super) fn read(&mut self, column: usize) -> Result<(), NotParsedReason> {
        let outcome = self.read_value(column);
        if outcome.is_err() {
            self.rows.fail(column);
        }
        outcome
    }

    #[inline]
    fn read_value(&mut self, column: usize) -> Result<(), NotParsedReason> {
        self.rows.see(column)?;
        if STRINGS {
            return self.read_string(column);
        }
        let reader = &self.rows.plan.rules.readers[column];
        if !reader.nullable && self.values.cursor.peek() == Some(b'n') {
            self.values.expect_null()?;
            return self.rows.give_null(column);
        }
        self.rows.give(column)?;
        self.values.read(&reader.reader, &mut self.rows.columns[column])
    }

    /// Skips the value at the cursor, which belongs to no column.
    pub(super) fn skip(&mut self) -> Result<(), NotParsedReason> {
        skip_value(&mut self.values.cursor, &mut self.values.scratch).map(drop)
    }

    /// Returns the column of a name; `None` for a name of no column, where such fields are skipped.
    pub(super) fn position(&self, name: &[u8]) -> Result<Option<usize>, NotParsedReason> {
        let plan = self.rows.plan;
        let column = plan.position(name);
        if column.is_none() && (!plan.rules.settings.skip_unknown_fields || plan.resembles_a_column(name)) {
            return Err(NotParsedReason::UnknownField);
        }
        Ok(column)
    }
}
