//! Converts lists, maps and structs.

use windrow_columns::{ColumnData, DataType, NotParsedReason, TupleType};

use super::{Converted, Converter, Nulls};
use crate::column::{Column, Field};

impl Converter<'_> {
    pub(super) fn list(&self, ends: &[u64], inner: &Column<'_>, nulls: Option<&[u8]>, wanted: &DataType) -> Converted {
        let DataType::Array(wanted) = wanted else { return Err(NotParsedReason::Value) };
        check_null_rows_are_empty(ends, nulls)?;
        let inner = self.column(inner, wanted, Nulls::Refused)?;
        Ok(ColumnData::Array { offsets: ends.to_vec(), inner: Box::new(inner) })
    }

    pub(super) fn map(
        &self,
        ends: &[u64],
        key: &Column<'_>,
        value: &Column<'_>,
        nulls: Option<&[u8]>,
        wanted: &DataType,
    ) -> Converted {
        let DataType::Map(wanted_key, wanted_value) = wanted else { return Err(NotParsedReason::Value) };
        check_null_rows_are_empty(ends, nulls)?;
        let key = self.column(key, wanted_key, Nulls::Refused)?;
        let value = self.column(value, wanted_value, Nulls::Refused)?;
        Ok(ColumnData::Array { offsets: ends.to_vec(), inner: Box::new(ColumnData::Tuple(vec![key, value])) })
    }

    pub(super) fn structure(&self, fields: &[Field<'_>], nulls: Option<&[u8]>, wanted: &DataType) -> Converted {
        let DataType::Tuple(tuple) = wanted else { return Err(NotParsedReason::Value) };
        if nulls.is_some() || fields.len() != tuple.elements.len() {
            return Err(NotParsedReason::Value);
        }
        let elements = (0..fields.len()).map(|position| {
            let field = field_of(fields, tuple, position).ok_or(NotParsedReason::UnknownField)?;
            self.column(&field.column, &tuple.elements[position], Nulls::Refused)
        });
        Ok(ColumnData::Tuple(elements.collect::<Result<_, _>>()?))
    }
}

/// Returns the field of a tuple's element, by its name. Elements without names take fields that are numbered,
/// as ClickHouse writes them, or fields whose names can't be taken for numbers.
fn field_of<'f, 'a>(fields: &'f [Field<'a>], tuple: &TupleType, position: usize) -> Option<&'f Field<'a>> {
    match &tuple.names {
        Some(names) => {
            let mut found = fields.iter().filter(|field| field.name == names[position]);
            let first = found.next()?;
            found.next().is_none().then_some(first)
        }
        None => {
            let field = &fields[position];
            let numbered = field.name == (position + 1).to_string();
            let is_plain = fields.iter().all(|field| !field.name.starts_with(|first: char| first.is_ascii_digit()));
            (numbered || is_plain).then_some(field)
        }
    }
}

/// Checks that NULL lists are empty: ClickHouse reads a NULL list as an empty one, unless it has elements.
fn check_null_rows_are_empty(ends: &[u64], nulls: Option<&[u8]>) -> Result<(), NotParsedReason> {
    let Some(nulls) = nulls else { return Ok(()) };
    let mut start = 0;
    for (end, null) in ends.iter().zip(nulls) {
        if *null == 1 && *end != start {
            return Err(NotParsedReason::Null);
        }
        start = *end;
    }
    Ok(())
}
