//! One JSON value into one column.

use super::cursor::Cursor;
use super::json_text::{read_string, skip_value, Text};
use super::number::{push_integer, read_number_text, read_signed};
use super::outcome::NotTypedReason;
use super::scalar::{push_fixed_string, push_number, push_string, push_text, push_time_number, quoted};
use super::time;
use crate::column::Column;
use crate::plan::resembles;
use crate::present::Present;
use crate::reader::{EnumReader, MapReader, Reader, TupleReader};
use crate::settings::ReadSettings;

pub(super) struct JsonValues<'a, 'p> {
    pub(super) cursor: Cursor<'a>,
    /// Where a string's escapes are resolved.
    pub(super) scratch: Vec<u8>,
    pub(super) settings: &'p ReadSettings,
}

impl<'a> JsonValues<'a, '_> {
    /// Reads the value at the cursor. Types and columns always fit: both come from the same plan.
    #[inline]
    pub(super) fn read(&mut self, reader: &Reader, column: &mut Column) -> Result<(), NotTypedReason> {
        match (reader, column) {
            (Reader::Nullable(inner), Column::Nullable { nulls, inner: values }) => {
                self.read_nullable(inner, nulls, values)
            }
            (reader, column) if self.cursor.peek() == Some(b'n') => self.read_null(reader, column),
            (Reader::String, Column::Strings { rows, data }) => self.read_text(rows, data),
            (Reader::Array(inner), Column::Array { offsets, inner: values }) => self.read_array(inner, offsets, values),
            (Reader::Map(map), Column::Array { offsets, inner }) => self.read_map(map, offsets, inner),
            (Reader::Tuple(tuple), Column::Tuple { elements }) => self.read_tuple(tuple, elements),
            (reader, Column::Fixed { data, .. }) => self.read_fixed(reader, data),
            _ => Err(NotTypedReason::Value),
        }
    }

    fn read_nullable(
        &mut self,
        inner: &Reader,
        nulls: &mut Vec<u8>,
        values: &mut Column,
    ) -> Result<(), NotTypedReason> {
        let is_null = self.cursor.peek() == Some(b'n');
        nulls.push(is_null.into());
        if !is_null {
            return self.read(inner, values);
        }
        values.push_zero();
        self.expect_null()
    }

    /// `null` inside of another value, for a type that has none: it becomes zero.
    fn read_null(&mut self, reader: &Reader, column: &mut Column) -> Result<(), NotTypedReason> {
        if !self.settings.null_as_default || reader.zero_is_doubtful() {
            return Err(NotTypedReason::Null);
        }
        column.push_zero();
        self.expect_null()
    }

    pub(super) fn expect_null(&mut self) -> Result<(), NotTypedReason> {
        if self.cursor.eat_exactly(b"null") {
            Ok(())
        } else {
            Err(NotTypedReason::Value)
        }
    }

    #[inline]
    fn read_fixed(&mut self, reader: &Reader, out: &mut Vec<u8>) -> Result<(), NotTypedReason> {
        match reader {
            Reader::Integer { .. }
            | Reader::WideInteger { .. }
            | Reader::Float32
            | Reader::Float64
            | Reader::BFloat16 => self.read_number(reader, out),
            Reader::Decimal { .. } => self.read_maybe_quoted_number(reader, out),
            Reader::Bool => self.read_bool(out),
            Reader::FixedString(width) => {
                self.cursor.expect(b'"')?;
                let text = read_string(&mut self.cursor, &mut self.scratch)?;
                push_fixed_string(text.bytes(&self.scratch), *width, out)
            }
            Reader::Enum(names) => self.read_enum(names, out),
            Reader::DateTime(_) | Reader::DateTime64 { .. } | Reader::Time | Reader::Time64 { .. }
                if self.cursor.peek() != Some(b'"') =>
            {
                push_time_number(reader, &mut self.cursor, self.settings, out)
            }
            Reader::Date if self.cursor.peek() != Some(b'"') => push_integer(&mut self.cursor, 2, false, out),
            Reader::Date32 if self.cursor.peek() != Some(b'"') => self.read_date32_number(out),
            _ => {
                self.cursor.expect(b'"')?;
                let text = quoted(&mut self.cursor, b'"')?;
                push_text(reader, text, self.settings, out)
            }
        }
    }

    #[inline]
    fn read_number(&mut self, reader: &Reader, out: &mut Vec<u8>) -> Result<(), NotTypedReason> {
        match self.cursor.peek() {
            Some(b't') if self.cursor.eat_exactly(b"true") => push_number(reader, &mut Cursor::new(b"1"), out),
            Some(b'f') if self.cursor.eat_exactly(b"false") => push_number(reader, &mut Cursor::new(b"0"), out),
            _ => self.read_maybe_quoted_number(reader, out),
        }
    }

    #[inline]
    fn read_maybe_quoted_number(&mut self, reader: &Reader, out: &mut Vec<u8>) -> Result<(), NotTypedReason> {
        let is_quoted = self.cursor.eat(b'"');
        push_number(reader, &mut self.cursor, out)?;
        if is_quoted {
            self.cursor.expect(b'"')?;
        }
        Ok(())
    }

    fn read_bool(&mut self, out: &mut Vec<u8>) -> Result<(), NotTypedReason> {
        let value = match self.cursor.peek() {
            Some(b't') if self.cursor.eat_exactly(b"true") => 1,
            Some(b'f') if self.cursor.eat_exactly(b"false") => 0,
            Some(b'1') if self.cursor.eat(b'1') => 1,
            Some(b'0') if self.cursor.eat(b'0') => 0,
            _ => return Err(NotTypedReason::Value),
        };
        out.push(value);
        Ok(())
    }

    fn read_enum(&mut self, names: &EnumReader, out: &mut Vec<u8>) -> Result<(), NotTypedReason> {
        if self.cursor.eat(b'"') {
            let name = read_string(&mut self.cursor, &mut self.scratch)?;
            return names.push_named(name.bytes(&self.scratch), out).ok_or(NotTypedReason::Value);
        }
        let value = read_signed(&mut self.cursor)?;
        names.push_value(value, out).ok_or(NotTypedReason::Value)
    }

    fn read_date32_number(&mut self, out: &mut Vec<u8>) -> Result<(), NotTypedReason> {
        let days = read_signed(&mut self.cursor)?;
        out.extend_from_slice(&time::date32(days)?.to_le_bytes());
        Ok(())
    }

    /// A String takes a string, and of every other value its text.
    #[inline]
    fn read_text(&mut self, rows: &mut usize, out: &mut Vec<u8>) -> Result<(), NotTypedReason> {
        if self.cursor.eat(b'"') {
            let text = read_string(&mut self.cursor, &mut self.scratch)?;
            push_string(text.bytes(&self.scratch), rows, out);
            return Ok(());
        }
        let text = match self.cursor.peek() {
            Some(b'-' | b'0'..=b'9') => read_number_text(&mut self.cursor)?,
            _ => skip_value(&mut self.cursor, &mut self.scratch)?,
        };
        push_string(text, rows, out);
        Ok(())
    }

    fn read_array(
        &mut self,
        inner: &Reader,
        offsets: &mut Vec<u64>,
        values: &mut Column,
    ) -> Result<(), NotTypedReason> {
        let mut end = offsets.last().copied().unwrap_or(0);
        self.cursor.expect(b'[')?;
        self.cursor.skip_space();
        if !self.cursor.eat(b']') {
            loop {
                self.read(inner, values)?;
                end += 1;
                self.cursor.skip_space();
                if self.cursor.eat(b']') {
                    break;
                }
                self.cursor.expect(b',')?;
                self.cursor.skip_space();
            }
        }
        offsets.push(end);
        Ok(())
    }

    fn read_map(&mut self, map: &MapReader, offsets: &mut Vec<u64>, pairs: &mut Column) -> Result<(), NotTypedReason> {
        let Column::Tuple { elements } = pairs else { return Err(NotTypedReason::Value) };
        let [keys, values] = elements.as_mut_slice() else { return Err(NotTypedReason::Value) };
        let mut end = offsets.last().copied().unwrap_or(0);
        self.cursor.expect(b'{')?;
        self.cursor.skip_space();
        if !self.cursor.eat(b'}') {
            loop {
                if self.cursor.peek() != Some(b'"') {
                    return Err(NotTypedReason::Value);
                }
                self.read(&map.key, keys)?;
                self.expect_colon()?;
                self.read(&map.value, values)?;
                end += 1;
                if self.ends_object()? {
                    break;
                }
            }
        }
        offsets.push(end);
        Ok(())
    }

    fn read_tuple(&mut self, tuple: &TupleReader, columns: &mut [Column]) -> Result<(), NotTypedReason> {
        if let Some(names) = &tuple.names {
            return self.read_named_tuple(names, &tuple.elements, columns);
        }
        self.cursor.expect(b'[')?;
        for (index, (element, column)) in tuple.elements.iter().zip(columns).enumerate() {
            self.cursor.skip_space();
            if index > 0 {
                self.cursor.expect(b',')?;
                self.cursor.skip_space();
            }
            self.read(element, column)?;
        }
        self.cursor.skip_space();
        self.cursor.expect(b']')
    }

    fn read_named_tuple(
        &mut self,
        names: &[String],
        elements: &[Reader],
        columns: &mut [Column],
    ) -> Result<(), NotTypedReason> {
        let mut seen = Present::default();
        self.cursor.expect(b'{')?;
        self.cursor.skip_space();
        if !self.cursor.eat(b'}') {
            loop {
                let name = self.read_plain_key()?;
                self.expect_colon()?;
                match names.iter().position(|known| known.as_bytes() == name) {
                    Some(index) if seen.contains(index) => return Err(NotTypedReason::DuplicateField),
                    Some(index) => {
                        seen.insert(index);
                        self.read(&elements[index], &mut columns[index])?;
                    }
                    None if resembles(name, names.iter().map(String::as_str)) => {
                        return Err(NotTypedReason::UnknownField)
                    }
                    None => drop(skip_value(&mut self.cursor, &mut self.scratch)?),
                }
                if self.ends_object()? {
                    break;
                }
            }
        }
        for (index, column) in columns.iter_mut().enumerate().filter(|(index, _)| !seen.contains(*index)) {
            if elements[index].zero_is_doubtful() {
                return Err(NotTypedReason::Null);
            }
            column.push_zero();
        }
        Ok(())
    }

    /// A key without escapes: with them, ClickHouse's readers do not all agree.
    pub(super) fn read_plain_key(&mut self) -> Result<&'a [u8], NotTypedReason> {
        self.cursor.expect(b'"')?;
        match read_string(&mut self.cursor, &mut self.scratch)? {
            Text::Plain(name) => Ok(name),
            Text::Unescaped => Err(NotTypedReason::UnknownField),
        }
    }

    #[inline]
    pub(super) fn expect_colon(&mut self) -> Result<(), NotTypedReason> {
        self.cursor.skip_space();
        self.cursor.expect(b':')?;
        self.cursor.skip_space();
        Ok(())
    }

    /// Behind a member of an object: whether that was the last.
    #[inline]
    pub(super) fn ends_object(&mut self) -> Result<bool, NotTypedReason> {
        self.ends_list(b'}')
    }

    /// Behind an item of a list: whether that was the last.
    #[inline]
    pub(super) fn ends_list(&mut self, closing: u8) -> Result<bool, NotTypedReason> {
        self.cursor.skip_space();
        if self.cursor.eat(closing) {
            return Ok(true);
        }
        self.cursor.expect(b',')?;
        self.cursor.skip_space();
        Ok(false)
    }
}
