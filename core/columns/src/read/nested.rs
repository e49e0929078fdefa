//! The part of reading values that JSON and SQL share: which type asks for which value, and how arrays, maps,
//! tuples and NULLs are made of other values. JSON and SQL differ in quotes, brackets, and the spelling of
//! scalars.

use super::cursor::Cursor;
use super::outcome::NotParsedReason;
use crate::column::Column;
use crate::reader::{MapReader, Reader, TupleReader};
use crate::settings::ReadSettings;

/// A reader of one language of values, at a position in a payload.
pub(super) trait ValueReader<'a> {
    fn cursor(&mut self) -> &mut Cursor<'a>;

    fn settings(&self) -> &ReadSettings;

    /// Reads NULL if there is one, and says whether there was.
    fn eat_null(&mut self) -> Result<bool, NotParsedReason>;

    /// Reads a value for a String.
    fn read_text(&mut self, rows: &mut usize, out: &mut Vec<u8>) -> Result<(), NotParsedReason>;

    /// Reads a value for a type of fixed width.
    fn read_fixed(&mut self, reader: &Reader, out: &mut Vec<u8>) -> Result<(), NotParsedReason>;

    fn read_tuple(&mut self, tuple: &TupleReader, columns: &mut [Column]) -> Result<(), NotParsedReason>;

    fn read_map_key(&mut self, reader: &Reader, column: &mut Column) -> Result<(), NotParsedReason>;

    /// Reads the value at the cursor. Types and columns always fit: both come from the same plan.
    #[inline]
    fn read(&mut self, reader: &Reader, column: &mut Column) -> Result<(), NotParsedReason> {
        match (reader, column) {
            (Reader::Nullable(inner), Column::Nullable { nulls, inner: values }) => {
                self.read_nullable(inner, nulls, values)
            }
            (reader, column) if self.eat_null()? => self.push_null(reader, column),
            (Reader::String, Column::Strings { rows, data }) => self.read_text(rows, data),
            (Reader::Array(inner), Column::Array { offsets, inner: values }) => self.read_array(inner, offsets, values),
            (Reader::Map(map), Column::Array { offsets, inner }) => self.read_map(map, offsets, inner),
            (Reader::Tuple(tuple), Column::Tuple { elements }) => self.read_tuple(tuple, elements),
            (reader, Column::Fixed { data, .. }) => self.read_fixed(reader, data),
            _ => Err(NotParsedReason::Value),
        }
    }

    fn read_nullable(
        &mut self,
        inner: &Reader,
        nulls: &mut Vec<u8>,
        values: &mut Column,
    ) -> Result<(), NotParsedReason> {
        let is_null = self.eat_null()?;
        nulls.push(is_null.into());
        if !is_null {
            return self.read(inner, values);
        }
        if values.zero_is_large() {
            return Err(NotParsedReason::Null);
        }
        values.push_zero();
        Ok(())
    }

    /// Stores a NULL inside of another value, for a type that has none: the NULL becomes zero.
    fn push_null(&mut self, reader: &Reader, column: &mut Column) -> Result<(), NotParsedReason> {
        let is_empty = self.settings().is_for_sql() && reader.holds_others();
        if !is_empty && !self.settings().null_as_default || reader.zero_is_doubtful() || column.zero_is_large() {
            return Err(NotParsedReason::Null);
        }
        column.push_zero();
        Ok(())
    }

    fn read_array(
        &mut self,
        inner: &Reader,
        offsets: &mut Vec<u64>,
        values: &mut Column,
    ) -> Result<(), NotParsedReason> {
        let mut end = offsets.last().copied().unwrap_or(0);
        self.cursor().expect(b'[')?;
        self.cursor().skip_space();
        if !self.cursor().eat(b']') {
            loop {
                self.read(inner, values)?;
                end += 1;
                if self.ends_list(b']')? {
                    break;
                }
            }
        }
        offsets.push(end);
        Ok(())
    }

    fn read_map(&mut self, map: &MapReader, offsets: &mut Vec<u64>, pairs: &mut Column) -> Result<(), NotParsedReason> {
        let Column::Tuple { elements } = pairs else { return Err(NotParsedReason::Value) };
        let [keys, values] = elements.as_mut_slice() else { return Err(NotParsedReason::Value) };
        let mut end = offsets.last().copied().unwrap_or(0);
        self.cursor().expect(b'{')?;
        self.cursor().skip_space();
        if !self.cursor().eat(b'}') {
            loop {
                self.read_map_key(&map.key, keys)?;
                self.expect_colon()?;
                self.read(&map.value, values)?;
                end += 1;
                if self.ends_list(b'}')? {
                    break;
                }
            }
        }
        offsets.push(end);
        Ok(())
    }

    /// Reads the elements of a Tuple, each in its place.
    fn read_elements(
        &mut self,
        elements: &[Reader],
        columns: &mut [Column],
        opening: u8,
        closing: u8,
    ) -> Result<(), NotParsedReason> {
        self.cursor().expect(opening)?;
        for (index, (element, column)) in elements.iter().zip(columns).enumerate() {
            self.cursor().skip_space();
            if index > 0 {
                self.cursor().expect(b',')?;
                self.cursor().skip_space();
            }
            self.read(element, column)?;
        }
        self.cursor().skip_space();
        self.cursor().expect(closing)
    }

    #[inline]
    fn expect_colon(&mut self) -> Result<(), NotParsedReason> {
        self.cursor().skip_space();
        self.cursor().expect(b':')?;
        self.cursor().skip_space();
        Ok(())
    }

    #[inline]
    fn ends_list(&mut self, closing: u8) -> Result<bool, NotParsedReason> {
        ends_list(self.cursor(), closing)
    }
}

/// Reads on behind an item of a list, and says whether that was the last.
#[inline]
pub(super) fn ends_list(cursor: &mut Cursor<'_>, closing: u8) -> Result<bool, NotParsedReason> {
    cursor.skip_space();
    if cursor.eat(closing) {
        return Ok(true);
    }
    cursor.expect(b',')?;
    cursor.skip_space();
    Ok(false)
}
