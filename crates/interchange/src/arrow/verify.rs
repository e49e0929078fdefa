//! ClickHouse looks at the whole of a message before it reads any of it, and refuses one that is broken in a place that
//! nobody needs. So does this: every field of every table is followed, read or not.

use super::flatbuffer::Table;

/// What a field of a table is.
#[derive(Clone, Copy)]
enum Kind {
    /// A number of so many bytes.
    Number(usize),
    Text,
    /// Elements of so many bytes.
    Elements(usize),
    Table(&'static [Kind]),
    Tables(&'static [Kind]),
    /// Tables of `FIELD`, which can't name itself.
    Fields,
    /// A table whose kind is told by the field before.
    Union(fn(u8) -> Option<&'static [Kind]>),
}

use Kind::{Elements, Fields, Number, Tables, Text, Union};

const MESSAGE: &[Kind] = &[Number(2), Number(1), Union(header), Number(8), Tables(KEY_VALUE)];
const FOOTER: &[Kind] = &[Number(2), Kind::Table(SCHEMA), Elements(24), Elements(24), Tables(KEY_VALUE)];
const SCHEMA: &[Kind] = &[Number(2), Fields, Tables(KEY_VALUE), Elements(8)];
const FIELD: &[Kind] =
    &[Text, Number(1), Number(1), Union(data_type), Kind::Table(ENCODING), Fields, Tables(KEY_VALUE)];
const ENCODING: &[Kind] = &[Number(8), Kind::Table(INT), Number(1), Number(2)];
const INT: &[Kind] = &[Number(4), Number(1)];
const KEY_VALUE: &[Kind] = &[Text, Text];
const BATCH: &[Kind] = &[Number(8), Elements(16), Elements(16), Kind::Table(&[Number(1), Number(1)]), Elements(8)];
const DICTIONARY: &[Kind] = &[Number(8), Kind::Table(BATCH), Number(1)];

/// No sound message is deeper: schemas are read to less.
const MAX_DEPTH: usize = 60;

fn header(kind: u8) -> Option<&'static [Kind]> {
    match kind {
        1 => Some(SCHEMA),
        2 => Some(DICTIONARY),
        3 => Some(BATCH),
        _ => None,
    }
}

fn data_type(kind: u8) -> Option<&'static [Kind]> {
    match kind {
        2 => Some(INT),
        3 | 8 | 11 | 18 => Some(&[Number(2)]),
        7 => Some(&[Number(4), Number(4), Number(4)]),
        9 => Some(&[Number(2), Number(4)]),
        10 => Some(&[Number(2), Text]),
        14 => Some(&[Number(2), Elements(4)]),
        15 | 16 => Some(&[Number(4)]),
        17 => Some(&[Number(1)]),
        1 | 4..=6 | 12 | 13 | 19..=26 => Some(&[]),
        _ => None,
    }
}

pub(super) fn is_sound_message(message: &Table<'_>) -> bool {
    follow(message, MESSAGE, 0).is_some()
}

pub(super) fn is_sound_footer(footer: &Table<'_>) -> bool {
    follow(footer, FOOTER, 0).is_some()
}

fn follow(table: &Table<'_>, kinds: &[Kind], depth: usize) -> Option<()> {
    if depth > MAX_DEPTH {
        return None;
    }
    for (field, kind) in kinds.iter().enumerate() {
        match kind {
            Number(1) => drop(table.u8(field, 0)?),
            Number(2) => drop(table.i16(field, 0)?),
            Number(4) => drop(table.i32(field, 0)?),
            Number(_) => drop(table.i64(field, 0)?),
            Text => drop(table.text(field)?),
            Elements(width) => drop(table.vector(field, *width)?),
            Kind::Table(inner) => {
                if let Some(target) = table.table(field)? {
                    follow(&target, inner, depth + 1)?
                }
            }
            Tables(inner) => follow_all(table, field, inner, depth)?,
            Fields => follow_all(table, field, FIELD, depth)?,
            Union(inner) => {
                let inner = inner(table.u8(field - 1, 0)?)?;
                follow(&table.table(field)??, inner, depth + 1)?;
            }
        }
    }
    Some(())
}

fn follow_all(table: &Table<'_>, field: usize, kinds: &[Kind], depth: usize) -> Option<()> {
    let Some(vector) = table.vector(field, 4)? else { return Some(()) };
    (0..vector.len()).try_for_each(|index| follow(&vector.table(index)?, kinds, depth + 1))
}
