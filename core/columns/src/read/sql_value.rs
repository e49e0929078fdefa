//! One literal of VALUES into one column, and the nested values of text formats.
//!
//! ClickHouse reads VALUES with two parsers: a fast one for literals in the column's own spelling, and the
//! SQL parser for the rest, which rounds and converts in its own ways and stays in charge of the column from
//! then on. Only literals that the fast parser takes are read here, and the few others that come out the same
//! in either parser.

use super::cursor::Cursor;
use super::nested::ValueReader;
use super::outcome::NotParsedReason;
use super::scalar::{push_fixed_string, push_number, push_string, push_text, push_time_number, quoted};
use super::sql_text::read_literal;
use crate::column::Column;
use crate::reader::{Reader, TupleReader};
use crate::settings::ReadSettings;

pub(super) struct SqlValues<'a, 'p> {
    pub(super) cursor: Cursor<'a>,
    /// Buffer in which a string's escapes are resolved.
    pub(super) scratch: Vec<u8>,
    pub(super) settings: &'p ReadSettings,
}

impl SqlValues<'_, '_> {
    /// Reads the value of a column. Inside of arrays and the like, the SQL parser would take over the whole value.
    pub(super) fn read_column(&mut self, reader: &Reader, column: &mut Column) -> Result<(), NotParsedReason> {
        match (reader, &mut *column, self.cursor.peek()) {
            (Reader::Bool, Column::Fixed { data, .. }, Some(digit @ (b'0' | b'1'))) => {
                self.cursor.at += 1;
                data.push(digit - b'0');
                Ok(())
            }
            (Reader::Integer { .. }, Column::Fixed { data, .. }, Some(b'\'')) => {
                self.cursor.at += 1;
                push_number(reader, &mut self.cursor, data)?;
                self.cursor.expect(b'\'')
            }
            _ => self.read(reader, column),
        }
    }

    fn expect_quote(&mut self) -> Result<(), NotParsedReason> {
        if self.cursor.eat(b'\'') {
            Ok(())
        } else {
            Err(NotParsedReason::Expression)
        }
    }

    fn read_bool(&mut self, out: &mut Vec<u8>) -> Result<(), NotParsedReason> {
        if self.cursor.eat_word(b"true") {
            out.push(1);
        } else if self.cursor.eat_word(b"false") {
            out.push(0);
        } else {
            return Err(NotParsedReason::Value);
        }
        Ok(())
    }
}

impl<'a> ValueReader<'a> for SqlValues<'a, '_> {
    #[inline]
    fn cursor(&mut self) -> &mut Cursor<'a> {
        &mut self.cursor
    }

    fn settings(&self) -> &ReadSettings {
        self.settings
    }

    fn eat_null(&mut self) -> Result<bool, NotParsedReason> {
        Ok(matches!(self.cursor.peek(), Some(b'N' | b'n')) && self.cursor.eat_word(b"NULL"))
    }

    fn read_text(&mut self, rows: &mut usize, out: &mut Vec<u8>) -> Result<(), NotParsedReason> {
        self.expect_quote()?;
        let text = read_literal(&mut self.cursor, &mut self.scratch, self.settings)?;
        push_string(text.bytes(&self.scratch), rows, out);
        Ok(())
    }

    fn read_fixed(&mut self, reader: &Reader, out: &mut Vec<u8>) -> Result<(), NotParsedReason> {
        match reader {
            Reader::Integer { .. }
            | Reader::WideInteger { .. }
            | Reader::Float32
            | Reader::Float64
            | Reader::BFloat16
            | Reader::Decimal { .. } => push_number(reader, &mut self.cursor, out),
            Reader::Bool => self.read_bool(out),
            Reader::FixedString(width) => {
                self.expect_quote()?;
                let text = read_literal(&mut self.cursor, &mut self.scratch, self.settings)?;
                push_fixed_string(text.bytes(&self.scratch), *width, out)
            }
            Reader::Enum(names) => {
                self.expect_quote()?;
                let name = read_literal(&mut self.cursor, &mut self.scratch, self.settings)?;
                names.push_named(name.bytes(&self.scratch), out).ok_or(NotParsedReason::Value)
            }
            Reader::DateTime(_) | Reader::DateTime64 { .. } | Reader::Time | Reader::Time64 { .. }
                if self.cursor.peek() != Some(b'\'') =>
            {
                push_time_number(reader, &mut self.cursor, self.settings, out)
            }
            _ => {
                self.expect_quote()?;
                let text = quoted(&mut self.cursor, b'\'')?;
                push_text(reader, text, self.settings, out)
            }
        }
    }

    fn read_tuple(&mut self, tuple: &TupleReader, columns: &mut [Column]) -> Result<(), NotParsedReason> {
        self.read_elements(&tuple.elements, columns, b'(', b')')
    }

    fn read_map_key(&mut self, reader: &Reader, column: &mut Column) -> Result<(), NotParsedReason> {
        self.read(reader, column)
    }
}
