//! Single numbers out of arrays.

use arrow_schema::{DataType as ArrowType, TimeUnit};

use super::view::View;

/// Returns the width of whole numbers in bytes, and whether they have a sign.
fn integer_type(of: &ArrowType) -> Option<(usize, bool)> {
    let width = of.is_integer().then(|| of.primitive_width()).flatten()?;
    Some((width, of.is_signed_integer()))
}

/// Returns how many ticks of a unit make a second.
pub(super) fn per_second(unit: &TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    }
}

/// Returns a whole number, of whatever width; `None` for other kinds of arrays.
pub(super) fn integer(view: &View<'_>, row: usize) -> Option<i128> {
    use ArrowType::*;
    let (width, signed) = match view.data_type() {
        Boolean => return view.bit(row).map(i128::from),
        Dictionary(keys, _) => integer_type(keys)?,
        of @ (Date32 | Date64 | Time32(_) | Time64(_) | Timestamp(..) | Duration(_)) => (of.primitive_width()?, true),
        of @ (Decimal32(..) | Decimal64(..) | Decimal128(..)) => (of.primitive_width()?, true),
        of => integer_type(of)?,
    };
    let bytes = view.bytes(width, row, 1)?;
    let negative = signed && bytes.last()? & 0x80 != 0;
    let mut wide = if negative { [0xFF; 16] } else { [0; 16] };
    wide[..width].copy_from_slice(bytes);
    Some(i128::from_le_bytes(wide))
}

pub(super) fn float(view: &View<'_>, row: usize) -> Option<f64> {
    match view.data_type() {
        ArrowType::Float32 => Some(f64::from(f32::from_le_bytes(view.bytes(4, row, 1)?.try_into().ok()?))),
        ArrowType::Float64 => Some(f64::from_le_bytes(view.bytes(8, row, 1)?.try_into().ok()?)),
        // Larger ones would be rounded.
        of if of.is_integer() => {
            integer(view, row).filter(|number| number.unsigned_abs() <= 1 << 53).map(|number| number as f64)
        }
        _ => None,
    }
}

/// Returns the position of a row's value in the dictionary.
pub(super) fn key(view: &View<'_>, row: usize) -> Option<usize> {
    integer(view, row).and_then(|key| usize::try_from(key).ok())
}
