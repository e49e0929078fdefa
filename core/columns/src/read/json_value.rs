//! One JSON value into one column.

use super::cursor::Cursor;
use super::json_text::{read_string, read_string_with, skip_value, Text};
use super::nested::ValueReader;
use super::number::{push_integer, read_number_text, read_signed};
use super::outcome::NotParsedReason;
use super::scalar::{
    push_fixed_string, push_number, push_special_float, push_string, push_text, push_time_number, quoted,
};
use super::time;
use crate::column::Column;
use crate::plan::resembles;
use crate::present::Present;
use crate::reader::{EnumReader, Reader, TupleReader};
use crate::settings::ReadSettings;

pub(super) struct JsonValues<'a, 'p> {
    pub(super) cursor: Cursor<'a>,
    /// Buffer in which a string's escapes are resolved.
    pub(super) scratch: Vec<u8>,
    pub(super) settings: &'p ReadSettings,
}

impl<'a> JsonValues<'a, '_> {
    pub(super) fn expect_null(&mut self) -> Result<(), NotParsedReason> {
        if self.cursor.eat_exactly(b"null") {
            Ok(())
        } else {
            Err(NotParsedReason::Value)
        }
    }

    #[inline]
    fn read_number(&mut self, reader: &Reader, out: &mut Vec<u8>) -> Result<(), NotParsedReason> {
        let word: &[u8] = match self.cursor.peek() {
            Some(b't') if self.cursor.eat_exactly(b"true") => b"1",
            Some(b'f') if self.cursor.eat_exactly(b"false") => b"0",
            _ => return self.read_maybe_quoted_number(reader, out),
        };
        if !self.settings.json.bools_as_numbers {
            return Err(NotParsedReason::Setting);
        }
        push_number(reader, &mut Cursor::new(word), out)
    }

    #[inline]
    fn read_maybe_quoted_number(&mut self, reader: &Reader, out: &mut Vec<u8>) -> Result<(), NotParsedReason> {
        if !self.cursor.eat(b'"') {
            return push_number(reader, &mut self.cursor, out);
        }
        match self.cursor.peek() {
            Some(b'0'..=b'9') => push_number(reader, &mut self.cursor, out)?,
            _ => self.read_quoted_number(reader, out)?,
        }
        self.cursor.expect(b'"')
    }

    /// Reads a number in quotes that has a sign, or is written as a word.
    #[cold]
    fn read_quoted_number(&mut self, reader: &Reader, out: &mut Vec<u8>) -> Result<(), NotParsedReason> {
        let rest = self.cursor.rest();
        let length = rest.iter().take_while(|byte| byte.is_ascii_alphabetic() || **byte == b'-').count();
        if push_special_float(reader, &rest[..length], out) {
            self.cursor.at += length;
            return Ok(());
        }
        push_number(reader, &mut self.cursor, out)
    }

    fn read_bool(&mut self, out: &mut Vec<u8>) -> Result<(), NotParsedReason> {
        let value = match self.cursor.peek() {
            Some(b't') if self.cursor.eat_exactly(b"true") => 1,
            Some(b'f') if self.cursor.eat_exactly(b"false") => 0,
            Some(b'1') if self.cursor.eat(b'1') => 1,
            Some(b'0') if self.cursor.eat(b'0') => 0,
            _ => return Err(NotParsedReason::Value),
        };
        out.push(value);
        Ok(())
    }

    fn read_enum(&mut self, names: &EnumReader, out: &mut Vec<u8>) -> Result<(), NotParsedReason> {
        if self.cursor.eat(b'"') {
            let name = read_string(&mut self.cursor, &mut self.scratch)?;
            return names.push_named(name.bytes(&self.scratch), out).ok_or(NotParsedReason::Value);
        }
        let value = read_signed(&mut self.cursor)?;
        names.push_value(value, out).ok_or(NotParsedReason::Value)
    }

    fn read_date32_number(&mut self, out: &mut Vec<u8>) -> Result<(), NotParsedReason> {
        let days = read_signed(&mut self.cursor)?;
        out.extend_from_slice(&time::date32(days, self.settings)?.to_le_bytes());
        Ok(())
    }

    /// Reads the text of a value that is no string, where a String takes it.
    fn read_other_text(&mut self) -> Result<&'a [u8], NotParsedReason> {
        let json = &self.settings.json;
        let is_taken = match self.cursor.peek() {
            Some(b'-' | b'0'..=b'9') => json.numbers_as_strings,
            Some(b't' | b'f') => json.bools_as_strings,
            Some(b'[') => json.arrays_as_strings,
            _ => json.objects_as_strings,
        };
        match self.cursor.peek() {
            _ if !is_taken => Err(NotParsedReason::Setting),
            Some(b'-' | b'0'..=b'9') => read_number_text(&mut self.cursor),
            _ => skip_value(&mut self.cursor, &mut self.scratch),
        }
    }

    fn read_named_tuple(
        &mut self,
        names: &[String],
        elements: &[Reader],
        columns: &mut [Column],
    ) -> Result<(), NotParsedReason> {
        let mut seen = Present::default();
        self.cursor.expect(b'{')?;
        self.cursor.skip_space();
        if !self.cursor.eat(b'}') {
            loop {
                let name = self.read_plain_key()?;
                self.expect_colon()?;
                match names.iter().position(|known| known.as_bytes() == name) {
                    Some(index) if seen.contains(index) => return Err(NotParsedReason::DuplicateField),
                    Some(index) => {
                        seen.insert(index);
                        self.read(&elements[index], &mut columns[index])?;
                    }
                    None if resembles(name, names.iter().map(String::as_str)) => {
                        return Err(NotParsedReason::UnknownField)
                    }
                    None => drop(skip_value(&mut self.cursor, &mut self.scratch)?),
                }
                if self.ends_object()? {
                    break;
                }
            }
        }
        for (index, column) in columns.iter_mut().enumerate().filter(|(index, _)| !seen.contains(*index)) {
            if elements[index].zero_is_doubtful() || column.zero_is_large() {
                return Err(NotParsedReason::Null);
            }
            column.push_zero();
        }
        Ok(())
    }

    /// Reads a key without escapes: with escapes, ClickHouse's readers do not all agree.
    pub(super) fn read_plain_key(&mut self) -> Result<&'a [u8], NotParsedReason> {
        self.cursor.expect(b'"')?;
        match read_string(&mut self.cursor, &mut self.scratch)? {
            Text::Plain(name) => Ok(name),
            Text::Unescaped => Err(NotParsedReason::UnknownField),
        }
    }

    /// Reads on behind a member of an object, and says whether that was the last.
    #[inline]
    pub(super) fn ends_object(&mut self) -> Result<bool, NotParsedReason> {
        self.ends_list(b'}')
    }
}

impl<'a> ValueReader<'a> for JsonValues<'a, '_> {
    #[inline]
    fn cursor(&mut self) -> &mut Cursor<'a> {
        &mut self.cursor
    }

    fn settings(&self) -> &ReadSettings {
        self.settings
    }

    #[inline]
    fn eat_null(&mut self) -> Result<bool, NotParsedReason> {
        if self.cursor.peek() != Some(b'n') {
            return Ok(false);
        }
        self.expect_null()?;
        Ok(true)
    }

    /// Reads the text of a String: a string, or the text of any other value.
    #[inline]
    fn read_text(&mut self, rows: &mut usize, out: &mut Vec<u8>) -> Result<(), NotParsedReason> {
        if self.cursor.eat(b'"') {
            let text = read_string_with(&mut self.cursor, &mut self.scratch, self.settings.json.escapes())?;
            push_string(text.bytes(&self.scratch), rows, out);
        } else {
            push_string(self.read_other_text()?, rows, out);
        }
        Ok(())
    }

    #[inline]
    fn read_fixed(&mut self, reader: &Reader, out: &mut Vec<u8>) -> Result<(), NotParsedReason> {
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
                let text = read_string_with(&mut self.cursor, &mut self.scratch, self.settings.json.escapes())?;
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

    fn read_tuple(&mut self, tuple: &TupleReader, columns: &mut [Column]) -> Result<(), NotParsedReason> {
        match &tuple.names {
            Some(names) => self.read_named_tuple(names, &tuple.elements, columns),
            None => self.read_elements(&tuple.elements, columns, b'[', b']'),
        }
    }

    fn read_map_key(&mut self, reader: &Reader, column: &mut Column) -> Result<(), NotParsedReason> {
        match self.cursor.peek() {
            Some(b'"') => self.read(reader, column),
            _ => Err(NotParsedReason::Value),
        }
    }
}
