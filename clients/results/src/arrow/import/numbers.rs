//! Single numbers out of arrays.

use super::field::{Field, Layout};
use super::view::View;

/// Returns a whole number, of whatever width; `None` for other kinds of arrays.
pub(super) fn integer(layout: Layout, view: &View<'_>, row: usize) -> Option<i128> {
    let (width, signed) = match layout {
        Layout::Int { width, signed } => (width, signed),
        Layout::Bool => return Some(i128::from(view.bit(1, row))),
        Layout::Date { width } | Layout::TimeOfDay { width, .. } => (width, true),
        Layout::Timestamp { .. } | Layout::Duration { .. } => (8, true),
        Layout::Decimal { width: width @ ..=16, .. } => (width, true),
        _ => return None,
    };
    let bytes = view.bytes(1, width, row, 1);
    let negative = signed && bytes.last()? & 0x80 != 0;
    let mut wide = if negative { [0xFF; 16] } else { [0; 16] };
    wide[..width].copy_from_slice(bytes);
    Some(i128::from_le_bytes(wide))
}

pub(super) fn float(layout: Layout, view: &View<'_>, row: usize) -> Option<f64> {
    match layout {
        Layout::Float { width: 4 } => Some(f64::from(f32::from_le_bytes(view.bytes(1, 4, row, 1).try_into().ok()?))),
        Layout::Float { .. } => Some(f64::from_le_bytes(view.bytes(1, 8, row, 1).try_into().ok()?)),
        // Larger ones would be rounded.
        Layout::Int { .. } => {
            integer(layout, view, row).filter(|number| number.unsigned_abs() <= 1 << 53).map(|number| number as f64)
        }
        _ => None,
    }
}

/// Returns the position of a row's value in its dictionary.
pub(super) fn key(field: &Field, view: &View<'_>, row: usize) -> Option<usize> {
    integer(field.layout, view, row).and_then(|key| usize::try_from(key).ok())
}
