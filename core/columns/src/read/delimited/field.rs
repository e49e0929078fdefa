//! One field into one column.

use super::bool_word::read_bool_word;
use super::dialect::Dialect;
use super::lenient::plain_spelling;
use crate::column::Column;
use crate::read::cursor::Cursor;
use crate::read::json_text::Text;
use crate::read::nested::ValueReader;
use crate::read::outcome::NotParsedReason;
use crate::read::rows::Rows;
use crate::read::scalar::{push_fixed_string, push_number, push_special_float, push_string, push_text};
use crate::read::sql_value::SqlValues;
use crate::reader::{EnumReader, Reader, TupleReader};
use crate::settings::ReadSettings;

pub(super) struct Fields<'a, 'p, D> {
    pub(super) cursor: Cursor<'a>,
    /// The end of the table: only line breaks that are no rows are behind it.
    end: usize,
    /// Buffer in which a text's escapes are resolved.
    pub(super) scratch: Vec<u8>,
    settings: &'p ReadSettings,
    pub(super) dialect: D,
}

impl<'a, 'p, D: Dialect> Fields<'a, 'p, D> {
    pub(super) fn new(payload: &'a [u8], settings: &'p ReadSettings, dialect: D) -> Self {
        let breaks = payload.iter().rev().take_while(|byte| matches!(byte, b'\n' | b'\r'));
        let end = payload.len() - if dialect.skips_empty_end() { breaks.count() } else { 0 };
        Fields { cursor: Cursor::new(payload), end, scratch: Vec::new(), settings, dialect }
    }

    #[inline]
    pub(super) fn at_table_end(&self) -> bool {
        self.cursor.at >= self.end
    }

    /// Reads the field at the cursor, which is left at the end of the field.
    #[inline]
    pub(super) fn read_field(&mut self, rows: &mut Rows<'_>, column: usize) -> Result<(), NotParsedReason> {
        if let Err(reason) = self.read_into(rows, column) {
            rows.fail(column);
            return Err(reason);
        }
        Ok(())
    }

    #[inline(always)]
    fn read_into(&mut self, rows: &mut Rows<'_>, column: usize) -> Result<(), NotParsedReason> {
        let reader = &rows.plan.rules.readers[column];
        self.dialect.skip_blanks(&mut self.cursor);
        if self.dialect.empty_is_default() && self.dialect.at_field_end(&self.cursor) {
            return rows.give_default(column);
        }
        if self.dialect.eat_null(&mut self.cursor) {
            if !reader.nullable {
                return rows.give_null(column);
            }
            rows.give(column)?;
            rows.columns[column].push_zero();
            return Ok(());
        }
        rows.give(column)?;
        self.read(&reader.reader, &mut rows.columns[column])
    }

    /// Says whether the current row has no more fields.
    pub(super) fn ends_row(&mut self) -> bool {
        self.dialect.skip_blanks(&mut self.cursor);
        self.dialect.at_row_end(&self.cursor)
    }

    /// Skips a field that belongs to no column.
    pub(super) fn skip_field(&mut self) -> Result<(), NotParsedReason> {
        self.dialect.skip_blanks(&mut self.cursor);
        self.dialect.text(&mut self.cursor, &mut self.scratch).map(drop)
    }

    /// Reads a value that is not NULL.
    #[inline]
    fn read(&mut self, reader: &Reader, column: &mut Column) -> Result<(), NotParsedReason> {
        match (reader, column) {
            (Reader::String, Column::Strings { rows, data }) => {
                let text = self.dialect.text(&mut self.cursor, &mut self.scratch)?;
                push_string(text.bytes(&self.scratch), rows, data);
                Ok(())
            }
            (
                Reader::Integer { .. }
                | Reader::WideInteger { .. }
                | Reader::Float32
                | Reader::Float64
                | Reader::BFloat16
                | Reader::Decimal { .. },
                Column::Fixed { data, .. },
            ) => self.read_number(reader, data),
            (Reader::Nullable(inner), Column::Nullable { nulls, inner: values }) => {
                nulls.push(0);
                self.read(inner, values)
            }
            (Reader::Tuple(tuple), Column::Tuple { elements }) if self.dialect.spreads_tuples() => {
                self.read_spread(tuple, elements)
            }
            (Reader::Array(_) | Reader::Map(_) | Reader::Tuple(_), column) => self.read_nested(reader, column),
            (reader, Column::Fixed { data, .. }) => self.read_word(reader, data),
            _ => Err(NotParsedReason::Value),
        }
    }

    #[inline]
    fn read_number(&mut self, reader: &Reader, out: &mut Vec<u8>) -> Result<(), NotParsedReason> {
        let start = self.cursor.at;
        let before = out.len();
        let is_quoted = self.dialect.eat_quote(&mut self.cursor);
        let is_read = push_number(reader, &mut self.cursor, out).is_ok()
            && (!is_quoted || self.dialect.eat_quote(&mut self.cursor))
            && self.dialect.finish_field(&mut self.cursor).is_ok();
        if is_read {
            return Ok(());
        }
        self.cursor.at = start;
        out.truncate(before);
        self.read_lenient_number(reader, out)
    }

    #[cold]
    fn read_lenient_number(&mut self, reader: &Reader, out: &mut Vec<u8>) -> Result<(), NotParsedReason> {
        let Text::Plain(text) = self.dialect.text(&mut self.cursor, &mut self.scratch)? else {
            return Err(NotParsedReason::Value);
        };
        if push_special_float(reader, text, out) {
            return Ok(());
        }
        if let Reader::Integer { width, .. } | Reader::WideInteger { width, .. } = reader {
            if text.is_empty() && self.dialect.empty_integer_is_zero() && !self.cursor.at_end() {
                out.resize(out.len() + width, 0);
                return Ok(());
            }
            if !self.dialect.integers_are_lenient() {
                return Err(NotParsedReason::Value);
            }
        }
        plain_spelling(text, reader, &mut self.scratch).ok_or(NotParsedReason::Value)?;
        let mut number = Cursor::new(&self.scratch);
        push_number(reader, &mut number, out)?;
        if number.at_end() {
            Ok(())
        } else {
            Err(NotParsedReason::Value)
        }
    }

    /// Reads a value that is found by its end.
    fn read_word(&mut self, reader: &Reader, out: &mut Vec<u8>) -> Result<(), NotParsedReason> {
        if let Reader::Bool = reader {
            return self.read_bool(out);
        }
        let text = self.dialect.text(&mut self.cursor, &mut self.scratch)?;
        match (reader, text) {
            (Reader::FixedString(width), text) => push_fixed_string(text.bytes(&self.scratch), *width, out),
            (Reader::Enum(names), text) => push_enum(names, text.bytes(&self.scratch), out),
            (reader, Text::Plain(text)) => push_text(reader, text, self.settings, out),
            _ => Err(NotParsedReason::Value),
        }
    }

    /// Reads a Bool. Neither quotes nor spaces may be around it.
    fn read_bool(&mut self, out: &mut Vec<u8>) -> Result<(), NotParsedReason> {
        let rest = self.cursor.rest();
        let length = rest.iter().take_while(|byte| byte.is_ascii_alphanumeric()).count();
        let value = read_bool_word(&rest[..length]).ok_or(NotParsedReason::Value)?;
        self.cursor.at += length;
        if !self.dialect.at_field_end(&self.cursor) {
            return Err(NotParsedReason::Value);
        }
        out.push(value.into());
        Ok(())
    }

    /// Reads an Array, a Map or a Tuple, in which values are written as in SQL.
    fn read_nested(&mut self, reader: &Reader, column: &mut Column) -> Result<(), NotParsedReason> {
        if self.dialect.nests_in_place() {
            let cursor = Cursor { bytes: self.cursor.bytes, at: self.cursor.at };
            self.cursor.at = read_brackets(reader, cursor, self.settings, column)?;
            return self.dialect.finish_field(&mut self.cursor);
        }
        let text = self.dialect.text(&mut self.cursor, &mut self.scratch)?;
        let text = text.bytes(&self.scratch);
        if read_brackets(reader, Cursor::new(text), self.settings, column)? == text.len() {
            Ok(())
        } else {
            Err(NotParsedReason::Value)
        }
    }

    /// Reads a Tuple whose elements are fields of their own.
    fn read_spread(&mut self, tuple: &TupleReader, columns: &mut [Column]) -> Result<(), NotParsedReason> {
        for (index, (reader, column)) in tuple.elements.iter().zip(columns).enumerate() {
            if index > 0 {
                if !self.dialect.at_delimiter(&self.cursor) {
                    return Err(NotParsedReason::Syntax);
                }
                self.cursor.at += 1;
                self.dialect.skip_blanks(&mut self.cursor);
            }
            // ClickHouse skips line breaks too in search of an element, so an empty one may be the next line's.
            if self.dialect.at_field_end(&self.cursor) {
                return Err(NotParsedReason::Value);
            }
            if !self.dialect.eat_null(&mut self.cursor) {
                self.read(reader, column)?;
                continue;
            }
            let is_nullable = matches!(reader, Reader::Nullable(_));
            let is_empty = self.settings.is_for_sql() && reader.holds_others();
            if !is_nullable && !is_empty && (!self.settings.null_as_default || reader.zero_is_doubtful()) {
                return Err(NotParsedReason::Null);
            }
            column.push_zero();
        }
        Ok(())
    }
}

/// Appends an Enum by its name, or by the number behind a name.
fn push_enum(names: &EnumReader, text: &[u8], out: &mut Vec<u8>) -> Result<(), NotParsedReason> {
    if names.push_named(text, out).is_some() {
        return Ok(());
    }
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let is_plain = matches!(digits, [b'1'..=b'9', rest @ ..] if rest.len() < 5 && rest.iter().all(u8::is_ascii_digit));
    let text = std::str::from_utf8(text).ok().filter(|_| is_plain).ok_or(NotParsedReason::Value)?;
    let value = text.parse().map_err(|_| NotParsedReason::Value)?;
    names.push_value(value, out).ok_or(NotParsedReason::Value)
}

/// Reads a value in brackets and returns the place of its end. A bare NULL in its place is no NULL, as it
/// would be in SQL.
fn read_brackets(
    reader: &Reader,
    cursor: Cursor<'_>,
    settings: &ReadSettings,
    column: &mut Column,
) -> Result<usize, NotParsedReason> {
    if !matches!(cursor.peek(), Some(b'[' | b'{' | b'(')) {
        return Err(NotParsedReason::Value);
    }
    let mut values = SqlValues { cursor, scratch: Vec::new(), settings };
    values.read(reader, column)?;
    Ok(values.cursor.at)
}
