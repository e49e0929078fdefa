//! Writes the data of a column of a type: NULLs first, ends of arrays before elements, tuples element by
//! element.

use std::ops::Range;

use arrow_schema::{DataType as ArrowType, FieldRef, Fields};
use windrow_columns::{DataType, TupleType};

use super::view::View;
use super::{fixed, texts, Unsuited};

/// Some rows of an array.
#[derive(Clone)]
pub(super) struct Piece<'a> {
    pub(super) view: View<'a>,
    pub(super) rows: Range<usize>,
}

pub(super) fn put(arrow: &ArrowType, pieces: &[Piece<'_>], of: &DataType, out: &mut Vec<u8>) -> Result<(), Unsuited> {
    match of {
        DataType::Custom(custom) => return put(arrow, pieces, &custom.inner, out),
        DataType::LowCardinality(inner) => return put(arrow, pieces, inner, out),
        DataType::Nullable(inner) => {
            put_nulls(pieces, out);
            return put_values(arrow, pieces, inner, out);
        }
        DataType::Array(_) | DataType::Map(..) => {}
        _ if has_nulls(pieces) => return Err(Unsuited),
        _ => {}
    }
    put_values(arrow, pieces, of, out)
}

/// Writes the values of a column. The value in the place of a NULL doesn't matter.
fn put_values(arrow: &ArrowType, pieces: &[Piece<'_>], of: &DataType, out: &mut Vec<u8>) -> Result<(), Unsuited> {
    match (of.plain(), arrow) {
        (DataType::String, _) => texts::put_strings(arrow, pieces, out),
        (DataType::FixedString(width), _) => texts::put_fixed_strings(pieces, *width, out),
        (DataType::Array(inner), _) => {
            let elements = put_ends(pieces, out)?;
            put(element_of(arrow)?.data_type(), &elements, inner, out)
        }
        (DataType::Map(key, value), ArrowType::Map(entries, _)) => {
            let ArrowType::Struct(fields) = entries.data_type() else { return Err(Unsuited) };
            let [key_field, value_field] = &fields[..] else { return Err(Unsuited) };
            let entries = put_ends(pieces, out)?;
            put(key_field.data_type(), &fields_of(&entries, 0)?, key, out)?;
            put(value_field.data_type(), &fields_of(&entries, 1)?, value, out)
        }
        (DataType::Tuple(tuple), ArrowType::Struct(fields)) if !tuple.elements.is_empty() => {
            put_tuple(fields, pieces, tuple, out)
        }
        (scalar, _) if scalar.is_scalar() => fixed::put(arrow, pieces, scalar, out),
        _ => Err(Unsuited),
    }
}

/// Returns the field of a list's elements.
fn element_of(list: &ArrowType) -> Result<&FieldRef, Unsuited> {
    match list {
        ArrowType::List(element) | ArrowType::LargeList(element) | ArrowType::FixedSizeList(element, _) => Ok(element),
        // As an Array of pairs.
        ArrowType::Map(entries, _) => Ok(entries),
        _ => Err(Unsuited),
    }
}

/// Writes a tuple element by element. Named elements are found by their names, in whatever order they are.
fn put_tuple(fields: &Fields, pieces: &[Piece<'_>], tuple: &TupleType, out: &mut Vec<u8>) -> Result<(), Unsuited> {
    if fields.len() != tuple.elements.len() {
        return Err(Unsuited);
    }
    for (index, element) in tuple.elements.iter().enumerate() {
        let found = match &tuple.names {
            Some(names) => fields.iter().position(|field| *field.name() == names[index]).ok_or(Unsuited)?,
            None => index,
        };
        put(fields[found].data_type(), &fields_of(pieces, found)?, element, out)?;
    }
    Ok(())
}

fn fields_of<'a>(pieces: &[Piece<'a>], index: usize) -> Result<Vec<Piece<'a>>, Unsuited> {
    let of_field = |piece: &Piece<'a>| {
        let view = piece.view.field(index).ok_or(Unsuited)?;
        Ok(Piece { view, rows: piece.rows.clone() })
    };
    pieces.iter().map(of_field).collect()
}

fn is_null(view: &View<'_>, row: usize) -> bool {
    if view.data_type().is_null() || !view.is_valid(row) {
        return true;
    }
    match view.dictionary() {
        Some(values) if values.may_have_nulls() => {
            let key = super::numbers::key(view, row);
            key.is_some_and(|key| key < values.length() && is_null(&values, key))
        }
        _ => false,
    }
}

fn may_have_nulls(view: &View<'_>) -> bool {
    view.data_type().is_null()
        || view.may_have_nulls()
        || view.dictionary().is_some_and(|values| values.may_have_nulls())
}

fn has_nulls(pieces: &[Piece<'_>]) -> bool {
    pieces.iter().any(|piece| may_have_nulls(&piece.view) && piece.rows.clone().any(|row| is_null(&piece.view, row)))
}

fn put_nulls(pieces: &[Piece<'_>], out: &mut Vec<u8>) {
    for piece in pieces {
        if may_have_nulls(&piece.view) {
            out.extend(piece.rows.clone().map(|row| u8::from(is_null(&piece.view, row))));
        } else {
            out.resize(out.len() + piece.rows.len(), 0);
        }
    }
}

/// Writes the ends of the rows of a list; returns the rows of its child that belong to them. A list that is
/// NULL is empty, as ClickHouse reads it.
fn put_ends<'a>(pieces: &[Piece<'a>], out: &mut Vec<u8>) -> Result<Vec<Piece<'a>>, Unsuited> {
    let mut elements: Vec<Piece<'a>> = Vec::new();
    let mut end = 0_u64;
    for piece in pieces {
        let child = piece.view.child().ok_or(Unsuited)?;
        // Rows that lie one behind the other, as they nearly always do.
        let mut run = 0..0;
        for row in piece.rows.clone() {
            let range = match piece.view.is_valid(row) {
                true => range_of(&piece.view, row).ok_or(Unsuited)?,
                false => run.end..run.end,
            };
            if range.end > child.length() || range.start > range.end {
                return Err(Unsuited);
            }
            end += range.len() as u64;
            out.extend(end.to_le_bytes());
            if range.start != run.end {
                elements.push(Piece { view: child, rows: std::mem::replace(&mut run, range.start..range.start) });
            }
            run.end = range.end;
        }
        elements.push(Piece { view: child, rows: run });
    }
    elements.retain(|piece| !piece.rows.is_empty());
    Ok(elements)
}

fn range_of(view: &View<'_>, row: usize) -> Option<Range<usize>> {
    let (start, end) = match view.data_type() {
        ArrowType::List(_) | ArrowType::Map(..) => view.ends(4, row)?,
        ArrowType::LargeList(_) => view.ends(8, row)?,
        ArrowType::FixedSizeList(_, length) => {
            let length = usize::try_from(*length).ok()?;
            let start = view.fixed_start(row, length);
            (start, start + length)
        }
        _ => return None,
    };
    Some(start..end)
}
