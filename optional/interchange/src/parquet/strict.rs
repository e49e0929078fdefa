//! Checks metadata as strictly as ClickHouse, which decodes all of a metadata struct, so that a broken field
//! fails there even if it is not needed. A struct is compared with Parquet's definition: a field that has
//! another type or is missing makes it invalid. Fields of later versions of Parquet are skipped, as Thrift
//! does, except for members of a union, which decide about meaning.

use crate::input::Input;

pub(super) type Struct = &'static [Field];

pub(super) struct Field {
    id: i16,
    kind: Kind,
    required: bool,
}

#[derive(Clone, Copy)]
enum Kind {
    Bool,
    Byte,
    I16,
    I32,
    I64,
    Bytes,
    List(&'static Kind),
    Struct(Struct),
    /// A struct with exactly one of these fields.
    Union(Struct),
}

use Kind::{Bool, Byte, Bytes, List, Union, I16, I32, I64};

const fn must(id: i16, kind: Kind) -> Field {
    Field { id, kind, required: true }
}

const fn may(id: i16, kind: Kind) -> Field {
    Field { id, kind, required: false }
}

const EMPTY: Kind = Kind::Struct(&[]);
const STATISTICS: Kind = Kind::Struct(&[
    may(1, Bytes),
    may(2, Bytes),
    may(3, I64),
    may(4, I64),
    may(5, Bytes),
    may(6, Bytes),
    may(7, Bool),
    may(8, Bool),
]);
pub(super) const PAGE_HEADER: Struct = &[
    must(1, I32),
    must(2, I32),
    must(3, I32),
    may(4, I32),
    may(5, Kind::Struct(&[must(1, I32), must(2, I32), must(3, I32), must(4, I32), may(5, STATISTICS)])),
    may(7, Kind::Struct(&[must(1, I32), must(2, I32), may(3, Bool)])),
    may(
        8,
        Kind::Struct(&[
            must(1, I32),
            must(2, I32),
            must(3, I32),
            must(4, I32),
            must(5, I32),
            must(6, I32),
            may(7, Bool),
            may(8, STATISTICS),
        ]),
    ),
];
pub(super) const OFFSET_INDEX: Struct =
    &[must(1, List(&Kind::Struct(&[must(1, I64), must(2, I32), must(3, I64)]))), may(2, List(&I64))];
const UNIT: Kind = Union(&[may(1, EMPTY), may(2, EMPTY), may(3, EMPTY)]);
const LOGICAL: Kind = Union(&[
    may(1, EMPTY),
    may(2, EMPTY),
    may(3, EMPTY),
    may(4, EMPTY),
    may(5, Kind::Struct(&[must(1, I32), must(2, I32)])),
    may(6, EMPTY),
    may(7, Kind::Struct(&[must(1, Bool), must(2, UNIT)])),
    may(8, Kind::Struct(&[must(1, Bool), must(2, UNIT)])),
    may(10, Kind::Struct(&[must(1, Byte), must(2, Bool)])),
    may(11, EMPTY),
    may(12, EMPTY),
    may(13, EMPTY),
    may(14, EMPTY),
    may(15, EMPTY),
]);
const SCHEMA_ELEMENT: Kind = Kind::Struct(&[
    may(1, I32),
    may(2, I32),
    may(3, I32),
    must(4, Bytes),
    may(5, I32),
    may(6, I32),
    may(7, I32),
    may(8, I32),
    may(9, I32),
    may(10, LOGICAL),
]);
const KEY_VALUE: Kind = Kind::Struct(&[must(1, Bytes), may(2, Bytes)]);
const SIZES: Kind = Kind::Struct(&[may(1, I64), may(2, List(&I64)), may(3, List(&I64))]);
const COLUMN: Kind = Kind::Struct(&[
    must(1, I32),
    must(2, List(&I32)),
    must(3, List(&Bytes)),
    must(4, I32),
    must(5, I64),
    must(6, I64),
    must(7, I64),
    may(8, List(&KEY_VALUE)),
    must(9, I64),
    may(10, I64),
    may(11, I64),
    may(12, STATISTICS),
    may(13, List(&Kind::Struct(&[must(1, I32), must(2, I32), must(3, I32)]))),
    may(14, I64),
    may(15, I32),
    may(16, SIZES),
]);
const CHUNK: Kind = Kind::Struct(&[must(2, I64), must(3, COLUMN), may(4, I64), may(5, I32), may(6, I64), may(7, I32)]);
const ROW_GROUP: Kind = Kind::Struct(&[
    must(1, List(&CHUNK)),
    must(2, I64),
    must(3, I64),
    may(4, List(&Kind::Struct(&[must(1, I32), must(2, Bool), must(3, Bool)]))),
    may(5, I64),
    may(6, I64),
    may(7, I16),
]);
pub(super) const FILE: Struct = &[
    must(1, I32),
    must(2, List(&SCHEMA_ELEMENT)),
    must(3, I64),
    must(4, List(&ROW_GROUP)),
    may(5, List(&KEY_VALUE)),
    may(6, Bytes),
    // By the type, or as IEEE 754 orders all floats: what bounds say is not asked for.
    may(7, List(&Union(&[may(1, EMPTY), may(2, EMPTY)]))),
];

/// Checks a struct and returns the bytes that it takes.
pub(super) fn sound(bytes: &[u8], of: Struct) -> Option<&[u8]> {
    let mut input = Input::new(bytes);
    walk(&mut input, of, false)?;
    bytes.get(..bytes.len() - input.rest().len())
}

fn walk(input: &mut Input<'_>, of: Struct, is_union: bool) -> Option<()> {
    let (mut id, mut seen) = (0i16, 0u64);
    loop {
        let head = input.byte()?;
        if head == 0 {
            break;
        }
        id = match head >> 4 {
            0 => i16::try_from(input.zigzag()?).ok()?,
            delta => id.checked_add(i16::from(delta))?,
        };
        let Some(at) = of.iter().position(|field| field.id == id) else {
            if is_union {
                return None;
            }
            skip(input, head & 0x0F, MAX_SKIPPED_DEPTH)?;
            continue;
        };
        if seen >> at & 1 == 1 {
            return None;
        }
        seen |= 1 << at;
        value(input, of[at].kind, head & 0x0F)?;
    }
    let is_whole = of.iter().enumerate().all(|(at, field)| !field.required || seen >> at & 1 == 1);
    (is_whole && (!is_union || seen.count_ones() == 1)).then_some(())
}

fn value(input: &mut Input<'_>, kind: Kind, code: u8) -> Option<()> {
    let expected = match kind {
        Bool => return matches!(code, 1 | 2).then_some(()),
        Byte => 3,
        I16 => 4,
        I32 => 5,
        I64 => 6,
        Bytes => 8,
        List(_) => 9,
        Kind::Struct(_) | Union(_) => 12,
    };
    (code == expected).then_some(())?;
    match kind {
        Bool => {}
        Byte => drop(input.byte()?),
        I16 => drop(i16::try_from(input.zigzag()?).ok()?),
        I32 => drop(i32::try_from(input.zigzag()?).ok()?),
        I64 => drop(input.zigzag()?),
        Bytes => {
            let length = usize::try_from(input.varint()?).ok()?;
            input.take(length)?;
        }
        List(element) => list(input, *element)?,
        Kind::Struct(fields) => walk(input, fields, false)?,
        Union(fields) => walk(input, fields, true)?,
    }
    Some(())
}

fn list(input: &mut Input<'_>, element: Kind) -> Option<()> {
    let (count, code) = list_head(input)?;
    (0..count).try_for_each(|_| value(input, element, code))
}

fn list_head(input: &mut Input<'_>) -> Option<(u64, u8)> {
    let head = input.byte()?;
    let count = match head >> 4 {
        15 => input.varint()?,
        count => u64::from(count),
    };
    Some((count, head & 0x0F))
}

/// The deepest nesting of structs, lists and maps in an unknown field.
const MAX_SKIPPED_DEPTH: u32 = 16;

/// Skips the value of a field, by Thrift's own types.
fn skip(input: &mut Input<'_>, code: u8, depth: u32) -> Option<()> {
    match code {
        1 | 2 => {}
        7 => drop(input.take(8)?),
        8 => {
            let length = usize::try_from(input.varint()?).ok()?;
            input.take(length)?;
        }
        12 => {
            let depth = depth.checked_sub(1)?;
            loop {
                let head = input.byte()?;
                if head == 0 {
                    break;
                }
                if head >> 4 == 0 {
                    i16::try_from(input.zigzag()?).ok()?;
                }
                skip(input, head & 0x0F, depth)?;
            }
        }
        9 | 10 => {
            let (count, code) = list_head(input)?;
            (0..count).try_for_each(|_| skip_element(input, code, depth.checked_sub(1)?))?;
        }
        11 => {
            let count = input.varint()?;
            let codes = if count == 0 { 0 } else { input.byte()? };
            let depth = depth.checked_sub(1)?;
            (0..count).try_for_each(|_| {
                skip_element(input, codes >> 4, depth)?;
                skip_element(input, codes & 0x0F, depth)
            })?;
        }
        13 => drop(input.take(16)?),
        3 => drop(input.byte()?),
        4..=6 => drop(input.varint()?),
        _ => return None,
    }
    Some(())
}

/// Skips an element of a list or map, where a boolean has a byte of its own.
fn skip_element(input: &mut Input<'_>, code: u8, depth: u32) -> Option<()> {
    match code {
        1 | 2 => drop(input.byte()?),
        code => skip(input, code, depth)?,
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::{sound, Struct, EMPTY, I32};

    const KNOWN: Struct = &[super::must(1, I32), super::may(9, EMPTY)];
    /// Makes a struct: field 1 is an i32, field 2 a value of the type, then comes the end.
    fn with_field(code: u8, value: &[u8]) -> Vec<u8> {
        [&[0x15, 2, 0x10 | code], value, &[0]].concat()
    }

    #[test]
    fn unknown_fields_of_every_type_are_skipped() {
        let struct_of_all = [&[0x11, 0x13, 7, 0x16, 0x80, 1, 0x18, 1, b'a'][..], &[0]].concat();
        let values: [(u8, &[u8]); 14] = [
            (1, &[]),
            (2, &[]),
            (3, &[0xFF]),
            (4, &[0x80, 1]),
            (5, &[3]),
            (6, &[0xFF, 0xFF, 3]),
            (7, &[0; 8]),
            (8, &[2, b'x', b'y']),
            (9, &[0x21, 1, 2]),
            (10, &[0x18, 1, b'z']),
            (11, &[0]),
            (11, &[1, 0x81, 1, b'k', 1]),
            (12, &struct_of_all),
            (13, &[0; 16]),
        ];
        for (code, value) in values {
            let whole = with_field(code, value);
            assert_eq!(sound(&whole, KNOWN), Some(&whole[..]), "type {code}");
            for end in 0..whole.len() {
                assert_eq!(sound(&whole[..end], KNOWN), None, "type {code}, {end} bytes");
            }
        }
        assert_eq!(sound(&with_field(14, &[0]), KNOWN), None);
    }

    #[test]
    fn what_nests_without_an_end_is_unsound() {
        let lists = with_field(9, &[0x19; 10_000]);
        assert_eq!(sound(&lists, KNOWN), None);
        let structs = with_field(12, &[0x1C; 10_000]);
        assert_eq!(sound(&structs, KNOWN), None);
    }
}
