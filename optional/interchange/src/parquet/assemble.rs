//! Assembles columns from levels and values, in the way of Dremel.
//!
//! An entry's definition level says how much of the path from the row to the value is there; its repetition
//! level says which list goes on with it. A field's *slots* are the entries at which one of its values
//! begins: all rows at the top, the elements of its lists further down. A struct's leaves have entries of
//! their own, so slots are kept for each leaf, and the leaves have to agree about the struct.

use windrow_columns::NotParsedReason;

use super::pages::{LeafData, Levels};
use super::schema::{Field, Kind, Leaf, Meaning};
use super::values::LeafValues;
use crate::column::{Column, Field as StructField, Strings, Values};

const BROKEN: NotParsedReason = NotParsedReason::Syntax;
type Read<T> = Result<T, NotParsedReason>;

/// Returns the leaves below a field, with the highest levels of each.
pub(super) fn leaves(field: &Field) -> Vec<(usize, Leaf, Levels)> {
    let mut found = Vec::new();
    collect(field, Levels { definition: 0, repetition: 0 }, &mut found);
    found
}

fn collect(field: &Field, above: Levels, found: &mut Vec<(usize, Leaf, Levels)>) {
    let here = Levels { definition: above.definition + u8::from(field.optional), ..above };
    let inside = Levels { definition: here.definition + 1, repetition: here.repetition + 1 };
    match &field.kind {
        Kind::Leaf { index, leaf } => found.push((*index, *leaf, here)),
        Kind::List(inner) => collect(inner, inside, found),
        Kind::Map { key, value } => [key, value].into_iter().for_each(|field| collect(field, inside, found)),
        Kind::Struct(fields) => fields.iter().for_each(|field| collect(field, here, found)),
    }
}

/// A leaf, and the part of it that belongs to the present field.
pub(super) struct Part {
    data: LeafData,
    slots: ValueSlots,
}

enum ValueSlots {
    /// Every entry is a slot.
    All,
    At(Vec<u32>),
}

impl Part {
    pub(super) fn new(data: LeafData, rows: usize) -> Read<Self> {
        let slots = match data.repetitions.is_empty() {
            true => ValueSlots::All,
            false => {
                if data.repetitions.len() > u32::MAX as usize {
                    return Err(NotParsedReason::Value);
                }
                ValueSlots::At(starts(&data.repetitions))
            }
        };
        let part = Part { data, slots };
        (part.count() == rows).then_some(part).ok_or(BROKEN)
    }

    fn count(&self) -> usize {
        match &self.slots {
            ValueSlots::All => self.data.entries,
            ValueSlots::At(slots) => slots.len(),
        }
    }

    fn slot(&self, index: usize) -> usize {
        match &self.slots {
            ValueSlots::All => index,
            ValueSlots::At(slots) => slots[index] as usize,
        }
    }

    /// Returns which slots are missing at this level, or `None` if none is.
    fn missing(&self, level: u8) -> Option<Vec<u8>> {
        let missing: Vec<u8> =
            (0..self.count()).map(|index| u8::from(self.data.definitions[self.slot(index)] < level)).collect();
        missing.contains(&1).then_some(missing)
    }

    /// Goes one list down. Returns where each slot's elements end; the elements become the slots.
    fn descend(&mut self, inside: Levels) -> Vec<u64> {
        let (mut ends, mut slots) = (Vec::with_capacity(self.count()), Vec::new());
        for index in 0..self.count() {
            let first = self.slot(index);
            if self.data.definitions[first] >= inside.definition {
                slots.push(first as u32);
                let more = (first + 1..self.data.entries)
                    .take_while(|entry| self.data.repetitions[*entry] >= inside.repetition)
                    .filter(|entry| self.data.repetitions[*entry] == inside.repetition);
                slots.extend(more.map(|entry| entry as u32));
            }
            ends.push(slots.len() as u64);
        }
        self.slots = ValueSlots::At(slots);
        ends
    }
}

/// Returns the entries that begin a row, or none if the first entry doesn't.
fn starts(repetitions: &[u8]) -> Vec<u32> {
    match repetitions.first() {
        Some(0) => (0..repetitions.len() as u32).filter(|entry| repetitions[*entry as usize] == 0).collect(),
        _ => Vec::new(),
    }
}

/// Makes a field's column from its leaves, in their order.
pub(super) fn column(field: &Field, above: Levels, parts: Vec<Part>) -> Read<Column<'static>> {
    let here = Levels { definition: above.definition + u8::from(field.optional), ..above };
    let rows = parts.first().ok_or(BROKEN)?.count();
    let nulls = if field.optional { agreed(parts.iter().map(|part| part.missing(here.definition)))? } else { None };
    let values = match &field.kind {
        Kind::Leaf { leaf, .. } => {
            let part = parts.into_iter().next().ok_or(BROKEN)?;
            return leaf_column(part, *leaf, here, nulls);
        }
        Kind::Struct(fields) => Values::Struct(children(fields.iter(), here, parts)?),
        Kind::List(inner) => {
            let (ends, parts, inside) = descended(here, parts)?;
            Values::List { ends, inner: Box::new(column(inner, inside, parts)?) }
        }
        Kind::Map { key, value } => {
            let (ends, parts, inside) = descended(here, parts)?;
            let pair = children([&**key, &**value].into_iter(), inside, parts)?;
            let [key, value] = <[StructField; 2]>::try_from(pair).map_err(|_| BROKEN)?;
            Values::Map { ends, key: Box::new(key.column), value: Box::new(value.column) }
        }
    };
    Ok(Column { rows, nulls, values })
}

fn children<'f>(
    fields: impl Iterator<Item = &'f Field>,
    above: Levels,
    parts: Vec<Part>,
) -> Read<Vec<StructField<'static>>> {
    let mut parts = parts.into_iter();
    let fields = fields.map(|field| {
        let own = parts.by_ref().take(leaves(field).len()).collect();
        Ok(StructField { name: field.name.clone(), column: column(field, above, own)? })
    });
    let fields: Vec<StructField> = fields.collect::<Read<_>>()?;
    let rows = fields.first().map(|field| field.column.rows);
    fields.iter().all(|field| Some(field.column.rows) == rows).then_some(fields).ok_or(BROKEN)
}

fn descended(here: Levels, mut parts: Vec<Part>) -> Read<(Vec<u64>, Vec<Part>, Levels)> {
    let inside = Levels { definition: here.definition + 1, repetition: here.repetition + 1 };
    let ends = agreed(parts.iter_mut().map(|part| part.descend(inside)))?;
    Ok((ends, parts, inside))
}

/// Returns the value that all agree about.
fn agreed<T: PartialEq>(mut told: impl Iterator<Item = T>) -> Read<T> {
    let first = told.next().ok_or(BROKEN)?;
    told.all(|other| other == first).then_some(first).ok_or(BROKEN)
}

fn leaf_column(part: Part, leaf: Leaf, here: Levels, nulls: Option<Vec<u8>>) -> Read<Column<'static>> {
    let rows = part.count();
    let present = match here.definition {
        0 => None,
        highest => {
            let missing = part.missing(highest);
            missing.map(|missing| missing.iter().map(|missing| 1 - missing).collect::<Vec<u8>>())
        }
    };
    let values = match &present {
        Some(present) => spread(part.data.values, present)?,
        None => (part.data.values.len() == rows).then_some(part.data.values).ok_or(BROKEN)?,
    };
    let nulls = nulls.or_else(|| present.map(|present| present.iter().map(|present| 1 - present).collect()));
    Ok(Column { rows, nulls, values: meant(values, leaf).ok_or(NotParsedReason::Value)? })
}

/// Puts values into the rows that have one, and zeros into the others.
fn spread(values: LeafValues, present: &[u8]) -> Read<LeafValues> {
    if values.len() != present.iter().filter(|present| **present == 1).count() {
        return Err(BROKEN);
    }
    Ok(match values {
        LeafValues::Bools(data) => LeafValues::Bools(spread_fixed(&data, 1, present)),
        LeafValues::Fixed { width, data } => LeafValues::Fixed { width, data: spread_fixed(&data, width, present) },
        LeafValues::Strings { ends, data } => {
            let (mut next, mut end) = (ends.into_iter(), 0);
            let ends = present.iter().map(|present| {
                if *present == 1 {
                    end = next.next().unwrap_or(end);
                }
                end
            });
            LeafValues::Strings { ends: ends.collect(), data }
        }
    })
}

fn spread_fixed(data: &[u8], width: usize, present: &[u8]) -> Vec<u8> {
    let mut out = vec![0; present.len() * width];
    let places = out.chunks_exact_mut(width).zip(present).filter(|(_, present)| **present == 1);
    for ((place, _), value) in places.zip(data.chunks_exact(width)) {
        place.copy_from_slice(value);
    }
    out
}

/// Converts physical values to the values that they stand for.
fn meant(values: LeafValues, leaf: Leaf) -> Option<Values<'static>> {
    use super::schema::Physical::{Double, FixedBytes, Float};
    Some(match (values, leaf.meaning) {
        (LeafValues::Bools(data), Meaning::Plain) => Values::Bool(data),
        (LeafValues::Strings { ends, data }, Meaning::Plain) => Values::Strings(Strings { ends, data: data.into() }),
        (LeafValues::Fixed { width, data }, meaning) => match (meaning, leaf.physical) {
            (Meaning::Plain, Float | Double) => Values::Float { width, data: data.into() },
            (Meaning::Plain, FixedBytes(_)) => Values::FixedBytes { width, data: data.into() },
            (Meaning::Int { width: wanted, signed }, _) => {
                Values::Int { width: wanted, signed, data: narrowed(data, width, wanted, signed)?.into() }
            }
            (Meaning::Date, _) => Values::Date(data.into()),
            (Meaning::Uuid, _) => Values::Uuid(data.into()),
            (Meaning::TimeOfDay { power }, _) => Values::TimeOfDay { power, data: data.into() },
            (Meaning::Timestamp { power }, _) => Values::Timestamp { power, data: data.into() },
            (Meaning::Decimal { scale, width: wanted }, FixedBytes(_)) => {
                Values::big_endian(data.chunks_exact(width), wanted, scale)?
            }
            (Meaning::Decimal { scale, .. }, _) => Values::Decimal { scale, width, data: data.into() },
            _ => return None,
        },
        (LeafValues::Strings { ends, data }, Meaning::Decimal { scale, width }) => {
            Values::big_endian(Strings { ends, data: data.into() }.iter(), width, scale)?
        }
        _ => return None,
    })
}

/// Narrows integers of 8 or 16 bits, which are stored in 32, and checks that all of them fit.
fn narrowed(data: Vec<u8>, width: usize, wanted: usize, signed: bool) -> Option<Vec<u8>> {
    if width == wanted {
        return Some(data);
    }
    let mut out = Vec::with_capacity(data.len() / width * wanted);
    for value in data.chunks_exact(width) {
        let sign = if signed && value[wanted - 1] & 0x80 != 0 { 0xFF } else { 0 };
        if value[wanted..].iter().any(|byte| *byte != sign) {
            return None;
        }
        out.extend_from_slice(&value[..wanted]);
    }
    Some(out)
}
