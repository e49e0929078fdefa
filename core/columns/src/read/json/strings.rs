//! Values as texts within JSON strings: scalars as they are, nested ones as in SQL.

use super::Fields;
use crate::column::Column;
use crate::read::cursor::Cursor;
use crate::read::json_text::read_string;
use crate::read::nested::ValueReader;
use crate::read::outcome::NotParsedReason;
use crate::read::scalar::{push_fixed_string, push_number, push_special_float, push_string, push_text};
use crate::read::sql_value::SqlValues;
use crate::reader::Reader;
use crate::settings::ReadSettings;

impl<const STRINGS: bool> Fields<'_, '_, '_, STRINGS> {
    #[inline]
    pub(super) fn read_string(&mut self, column: usize) -> Result<(), NotParsedReason> {
        self.values.cursor.expect(b'"')?;
        let text = read_string(&mut self.values.cursor, &mut self.values.scratch)?;
        let text = text.bytes(&self.values.scratch);
        let reader = &self.rows.plan.rules.readers[column];
        if is_null(text) {
            if !reader.nullable {
                return self.rows.give_null(column);
            }
            self.rows.give(column)?;
            self.rows.columns[column].push_zero();
            return Ok(());
        }
        self.rows.give(column)?;
        read_text(&reader.reader, &mut self.rows.columns[column], text, self.values.settings)
    }
}

/// Says whether a text stands for NULL. It does so for a String as well, whether the column is Nullable or
/// not.
fn is_null(text: &[u8]) -> bool {
    match text.len() {
        4 => text.eq_ignore_ascii_case(b"NULL"),
        12 => text == "ᴺᵁᴸᴸ".as_bytes(),
        _ => false,
    }
}

fn read_text(
    reader: &Reader,
    column: &mut Column,
    text: &[u8],
    settings: &ReadSettings,
) -> Result<(), NotParsedReason> {
    match (reader, column) {
        (Reader::Nullable(inner), Column::Nullable { nulls, inner: values }) => {
            nulls.push(0);
            read_text(inner, values, text, settings)
        }
        (Reader::String, Column::Strings { rows, data }) => {
            push_string(text, rows, data);
            Ok(())
        }
        (Reader::Array(_) | Reader::Map(_) | Reader::Tuple(_), column) => {
            let mut values = SqlValues { cursor: Cursor::new(text), scratch: Vec::new(), settings };
            values.read(reader, column)?;
            at_end(&values.cursor)
        }
        (reader, Column::Fixed { data, .. }) => read_scalar(reader, data, text, settings),
        _ => Err(NotParsedReason::Value),
    }
}

fn read_scalar(
    reader: &Reader,
    out: &mut Vec<u8>,
    text: &[u8],
    settings: &ReadSettings,
) -> Result<(), NotParsedReason> {
    match reader {
        Reader::Float32 | Reader::Float64 | Reader::BFloat16 if push_special_float(reader, text, out) => Ok(()),
        Reader::Integer { .. }
        | Reader::WideInteger { .. }
        | Reader::Float32
        | Reader::Float64
        | Reader::BFloat16
        | Reader::Decimal { .. } => {
            let mut cursor = Cursor::new(text);
            push_number(reader, &mut cursor, out)?;
            at_end(&cursor)
        }
        Reader::Bool => {
            out.push(match text {
                b"true" | b"1" => 1,
                b"false" | b"0" => 0,
                _ => return Err(NotParsedReason::Value),
            });
            Ok(())
        }
        Reader::FixedString(width) => push_fixed_string(text, *width, out),
        Reader::Enum(names) => names.push_named(text, out).ok_or(NotParsedReason::Value),
        reader => push_text(reader, text, settings, out),
    }
}

fn at_end(cursor: &Cursor<'_>) -> Result<(), NotParsedReason> {
    if cursor.at_end() {
        Ok(())
    } else {
        Err(NotParsedReason::Value)
    }
}
