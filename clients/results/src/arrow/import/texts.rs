//! Texts and binaries as `String` and `FixedString`.

use arrow_buffer::ArrowNativeType;
use arrow_schema::DataType as ArrowType;
use windrow_columns::wire::write_varint;

use super::numbers::{key, Integers};
use super::view::View;
use super::writer::Piece;
use super::Unsuited;

pub(super) fn put_strings(arrow: &ArrowType, pieces: &[Piece<'_>], out: &mut Vec<u8>) -> Result<(), Unsuited> {
    for piece in pieces {
        match arrow {
            ArrowType::Utf8 | ArrowType::Binary if !piece.view.may_have_nulls() => put_run::<i32>(piece, out),
            ArrowType::LargeUtf8 | ArrowType::LargeBinary if !piece.view.may_have_nulls() => put_run::<i64>(piece, out),
            ArrowType::Dictionary(..) => put_chosen(piece, out),
            _ => piece.rows.clone().try_for_each(|row| {
                put_string(text_of(&piece.view, row)?, out);
                Some(())
            }),
        }
        .ok_or(Unsuited)?;
    }
    Ok(())
}

/// Writes texts without NULLs, one behind the other.
fn put_run<T: ArrowNativeType>(piece: &Piece<'_>, out: &mut Vec<u8>) -> Option<()> {
    let offsets = piece.view.offsets::<T>(piece.rows.start, piece.rows.len())?;
    let bytes = offsets[offsets.len() - 1].to_usize()?.checked_sub(offsets[0].to_usize()?)?;
    out.reserve(bytes + 2 * offsets.len());
    for pair in offsets.windows(2) {
        put_string(between(&piece.view, (pair[0].to_usize()?, pair[1].to_usize()?))?, out);
    }
    Some(())
}

/// Writes texts out of a dictionary.
fn put_chosen(piece: &Piece<'_>, out: &mut Vec<u8>) -> Option<()> {
    let (texts, keys) = (piece.view.dictionary()?, Integers::of(&piece.view)?);
    for row in piece.rows.clone() {
        let text = match piece.view.is_valid(row) {
            true => text_of(&texts, keys.key(row).filter(|key| *key < texts.length())?)?,
            false => &[],
        };
        put_string(text, out);
    }
    Some(())
}

fn put_string(text: &[u8], out: &mut Vec<u8>) {
    write_varint(out, text.len() as u64);
    out.extend_from_slice(text);
}

/// Writes texts of `width` bytes. Shorter ones are filled up with zeros.
pub(super) fn put_fixed_strings(pieces: &[Piece<'_>], width: usize, out: &mut Vec<u8>) -> Result<(), Unsuited> {
    for piece in pieces {
        for row in piece.rows.clone() {
            let text = text_of(&piece.view, row).filter(|text| text.len() <= width).ok_or(Unsuited)?;
            let end = out.len() + width;
            out.extend_from_slice(text);
            out.resize(end, 0);
        }
    }
    Ok(())
}

/// Returns the bytes of a row's text; empty where it is NULL. `None` for other kinds of arrays.
pub(super) fn text_of<'a>(view: &View<'a>, row: usize) -> Option<&'a [u8]> {
    if view.data_type().is_null() || !view.is_valid(row) {
        return Some(&[]);
    }
    if let Some(values) = view.dictionary() {
        let key = key(view, row).filter(|key| *key < values.length())?;
        return text_of(&values, key);
    }
    match view.data_type() {
        ArrowType::Utf8 | ArrowType::Binary => between(view, view.ends(4, row)?),
        ArrowType::LargeUtf8 | ArrowType::LargeBinary => between(view, view.ends(8, row)?),
        ArrowType::Utf8View | ArrowType::BinaryView => viewed(view, row),
        ArrowType::FixedSizeBinary(width) => view.bytes(usize::try_from(*width).ok()?, row, 1),
        _ => None,
    }
}

fn between<'a>(view: &View<'a>, (start, end): (usize, usize)) -> Option<&'a [u8]> {
    view.data(1, start, end.checked_sub(start)?)
}

/// Returns the text of a view. Up to twelve bytes stand in the view itself; for a longer text the view has
/// the buffer and the place in it.
fn viewed<'a>(view: &View<'a>, row: usize) -> Option<&'a [u8]> {
    let bytes = view.bytes(16, row, 1)?;
    let number = |at: usize| usize::try_from(i32::from_le_bytes(bytes[at..at + 4].try_into().ok()?)).ok();
    match number(0)? {
        length @ 0..=12 => Some(&bytes[4..4 + length]),
        length => view.data(1 + number(8)?, number(12)?, length),
    }
}
