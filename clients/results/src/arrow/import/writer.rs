//! Writes the data of a column of a type: NULLs first, ends of arrays before elements, tuples element by
//! element.

use std::ops::Range;

use super::field::{Field, Layout};
use super::view::View;
use super::{fixed, texts, Unsuited};
use windrow_columns::{DataType, TupleType};

/// Some rows of an array.
#[derive(Clone)]
pub(super) struct Piece<'a> {
    pub(super) view: View<'a>,
    pub(super) rows: Range<usize>,
}

pub(super) fn put(field: &Field, pieces: &[Piece<'_>], of: &DataType, out: &mut Vec<u8>) -> Result<(), Unsuited> {
    match of {
        DataType::Custom(custom) => return put(field, pieces, &custom.inner, out),
        DataType::LowCardinality(inner) => return put(field, pieces, inner, out),
        DataType::Nullable(inner) => {
            put_nulls(field, pieces, out)?;
            return put_values(field, pieces, inner, out);
        }
        DataType::Array(_) | DataType::Map(..) => {}
        _ if has_nulls(field, pieces) => return Err(Unsuited),
        _ => {}
    }
    put_values(field, pieces, of, out)
}

/// Writes the values of a column. The value in the place of a NULL doesn't matter.
fn put_values(field: &Field, pieces: &[Piece<'_>], of: &DataType, out: &mut Vec<u8>) -> Result<(), Unsuited> {
    match of.plain() {
        DataType::String => texts::put_strings(field, pieces, out),
        DataType::FixedString(width) => texts::put_fixed_strings(field, pieces, *width, out),
        DataType::Array(inner) => {
            let elements = put_ends(field, pieces, out)?;
            put(field.children.first().ok_or(Unsuited)?, &elements, inner, out)
        }
        DataType::Map(key, value) if field.layout == Layout::Map => {
            let entries = put_ends(field, pieces, out)?;
            let [key_field, value_field] = field.children.first().ok_or(Unsuited)?.children.as_slice() else {
                return Err(Unsuited);
            };
            put(key_field, &fields_of(&entries, 0)?, key, out)?;
            put(value_field, &fields_of(&entries, 1)?, value, out)
        }
        DataType::Tuple(TupleType { names, elements }) if field.is_struct() && !elements.is_empty() => {
            if field.children.len() != elements.len() {
                return Err(Unsuited);
            }
            for (index, element) in elements.iter().enumerate() {
                // Named elements are found by their names, in whatever order they are.
                let found = match names {
                    Some(names) => {
                        field.children.iter().position(|child| child.name == names[index]).ok_or(Unsuited)?
                    }
                    None => index,
                };
                put(&field.children[found], &fields_of(pieces, found)?, element, out)?;
            }
            Ok(())
        }
        scalar if scalar.is_scalar() => fixed::put(field, pieces, scalar, out),
        _ => Err(Unsuited),
    }
}

fn fields_of<'a>(pieces: &[Piece<'a>], index: usize) -> Result<Vec<Piece<'a>>, Unsuited> {
    let of_field = |piece: &Piece<'a>| {
        let view = piece.view.field(index).ok_or(Unsuited)?;
        Ok(Piece { view, rows: piece.rows.clone() })
    };
    pieces.iter().map(of_field).collect()
}

fn is_null(field: &Field, view: &View<'_>, row: usize) -> bool {
    if field.layout == Layout::Null || !view.is_valid(row) {
        return true;
    }
    match (&field.dictionary, view.dictionary()) {
        (Some(values), Some(dictionary)) if dictionary.may_have_nulls() => {
            let key = super::numbers::key(field, view, row);
            key.is_some_and(|key| key < dictionary.length() && is_null(values, &dictionary, key))
        }
        _ => false,
    }
}

fn may_have_nulls(field: &Field, view: &View<'_>) -> bool {
    field.layout == Layout::Null
        || view.may_have_nulls()
        || view.dictionary().is_some_and(|dictionary| dictionary.may_have_nulls())
}

fn has_nulls(field: &Field, pieces: &[Piece<'_>]) -> bool {
    pieces.iter().any(|piece| {
        may_have_nulls(field, &piece.view) && piece.rows.clone().any(|row| is_null(field, &piece.view, row))
    })
}

fn put_nulls(field: &Field, pieces: &[Piece<'_>], out: &mut Vec<u8>) -> Result<(), Unsuited> {
    for piece in pieces {
        if may_have_nulls(field, &piece.view) {
            out.extend(piece.rows.clone().map(|row| u8::from(is_null(field, &piece.view, row))));
        } else {
            out.resize(out.len() + piece.rows.len(), 0);
        }
    }
    Ok(())
}

/// Writes the ends of the rows of a list; returns the rows of its child that belong to them. A list that is
/// NULL is empty, as ClickHouse reads it.
fn put_ends<'a>(field: &Field, pieces: &[Piece<'a>], out: &mut Vec<u8>) -> Result<Vec<Piece<'a>>, Unsuited> {
    let mut elements: Vec<Piece<'a>> = Vec::new();
    let mut end = 0_u64;
    for piece in pieces {
        let child = piece.view.child(0).ok_or(Unsuited)?;
        // Rows that lie one behind the other, as they nearly always do.
        let mut run = 0..0;
        for row in piece.rows.clone() {
            let range = match piece.view.is_valid(row) {
                true => range_of(field.layout, &piece.view, row)?,
                false => run.end..run.end,
            };
            if range.end > child.length() {
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

fn range_of(layout: Layout, view: &View<'_>, row: usize) -> Result<Range<usize>, Unsuited> {
    let (start, end) = match layout {
        Layout::List { large: false } | Layout::Map => match view.values::<i32>(1, row, 2) {
            [start, end] => (i64::from(*start), i64::from(*end)),
            _ => return Err(Unsuited),
        },
        Layout::List { large: true } => match view.values::<i64>(1, row, 2) {
            [start, end] => (*start, *end),
            _ => return Err(Unsuited),
        },
        Layout::FixedList { length } => {
            let start = view.fixed_start(row, length);
            return Ok(start..start + length);
        }
        _ => return Err(Unsuited),
    };
    if start < 0 || end < start {
        return Err(Unsuited);
    }
    Ok(start as usize..end as usize)
}
