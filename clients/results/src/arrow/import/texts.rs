//! Texts and binaries as `String` and `FixedString`.

use super::field::{Field, Layout};
use super::numbers::key;
use super::view::View;
use super::writer::Piece;
use super::Unsuited;
use windrow_columns::wire::write_varint;

pub(super) fn put_strings(field: &Field, pieces: &[Piece<'_>], out: &mut Vec<u8>) -> Result<(), Unsuited> {
    for piece in pieces {
        match field.layout {
            Layout::Bytes { large: false } if !piece.view.may_have_nulls() => put_run::<i32>(piece, out)?,
            Layout::Bytes { large: true } if !piece.view.may_have_nulls() => put_run::<i64>(piece, out)?,
            _ => {
                for row in piece.rows.clone() {
                    put_string(text_of(field, &piece.view, row)?, out);
                }
            }
        }
    }
    Ok(())
}

/// Writes texts without NULLs, one behind the other.
fn put_run<T: Copy + Into<i64>>(piece: &Piece<'_>, out: &mut Vec<u8>) -> Result<(), Unsuited> {
    let offsets = piece.view.values::<T>(1, piece.rows.start, piece.rows.len() + 1);
    if offsets.len() <= piece.rows.len() {
        return Err(Unsuited);
    }
    let bytes = offsets[offsets.len() - 1].into() - offsets[0].into();
    out.reserve(usize::try_from(bytes).map_err(|_| Unsuited)? + 2 * offsets.len());
    for pair in offsets.windows(2) {
        put_string(between(&piece.view, pair[0].into(), pair[1].into())?, out);
    }
    Ok(())
}

fn put_string(text: &[u8], out: &mut Vec<u8>) {
    write_varint(out, text.len() as u64);
    out.extend_from_slice(text);
}

/// Writes texts of `width` bytes. Shorter ones are filled up with zeros.
pub(super) fn put_fixed_strings(
    field: &Field,
    pieces: &[Piece<'_>],
    width: usize,
    out: &mut Vec<u8>,
) -> Result<(), Unsuited> {
    for piece in pieces {
        for row in piece.rows.clone() {
            let text = text_of(field, &piece.view, row)?;
            if text.len() > width {
                return Err(Unsuited);
            }
            let end = out.len() + width;
            out.extend_from_slice(text);
            out.resize(end, 0);
        }
    }
    Ok(())
}

/// Returns the bytes of a row's text; empty where it is NULL.
pub(super) fn text_of<'a>(field: &Field, view: &View<'a>, row: usize) -> Result<&'a [u8], Unsuited> {
    if field.layout == Layout::Null || !view.is_valid(row) {
        return Ok(&[]);
    }
    if let (Some(values), Some(dictionary)) = (&field.dictionary, view.dictionary()) {
        let key = key(field, view, row).filter(|key| *key < dictionary.length()).ok_or(Unsuited)?;
        return text_of(values, &dictionary, key);
    }
    match field.layout {
        Layout::Bytes { large: false } => match view.values::<i32>(1, row, 2) {
            [start, end] => between(view, i64::from(*start), i64::from(*end)),
            _ => Err(Unsuited),
        },
        Layout::Bytes { large: true } => match view.values::<i64>(1, row, 2) {
            [start, end] => between(view, *start, *end),
            _ => Err(Unsuited),
        },
        Layout::BytesView => viewed(view, row),
        Layout::FixedBytes { width } => Ok(view.bytes(1, width, row, 1)),
        _ => Err(Unsuited),
    }
}

fn between<'a>(view: &View<'a>, start: i64, end: i64) -> Result<&'a [u8], Unsuited> {
    if start < 0 || end < start {
        return Err(Unsuited);
    }
    Ok(view.data(2, start as usize, (end - start) as usize))
}

/// Returns the text of a view. Up to twelve bytes stand in the view itself; for a longer text the view has
/// the buffer and the place in it.
fn viewed<'a>(view: &View<'a>, row: usize) -> Result<&'a [u8], Unsuited> {
    let bytes = view.bytes(1, 16, row, 1);
    let number = |at: usize| bytes.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map(i32::from_le_bytes);
    let number = |at: usize| number(at).and_then(|number| usize::try_from(number).ok()).ok_or(Unsuited);
    match number(0)? {
        length @ 0..=12 => Ok(&bytes[4..4 + length]),
        length => Ok(view.data(2 + number(8)?, number(12)?, length)),
    }
}
