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

/// The whole numbers of an array, of whatever width.
#[derive(Clone, Copy)]
pub(super) struct Integers<'a> {
    values: &'a [u8],
    /// The place of the first row among them.
    first: usize,
    /// The size of a value in bytes; 0 for bits.
    width: usize,
    signed: bool,
}

impl<'a> Integers<'a> {
    /// Returns `None` for arrays of other kinds.
    pub(super) fn of(view: &View<'a>) -> Option<Integers<'a>> {
        use ArrowType::*;
        let (width, signed) = match view.data_type() {
            Boolean => (0, false),
            Dictionary(keys, _) => integer_type(keys)?,
            of @ (Date32 | Date64 | Time32(_) | Time64(_) | Timestamp(..) | Duration(_)) => {
                (of.primitive_width()?, true)
            }
            of @ (Decimal32(..) | Decimal64(..) | Decimal128(..)) => (of.primitive_width()?, true),
            of => integer_type(of)?,
        };
        let (values, first) = view.values();
        Some(Integers { values, first, width, signed })
    }

    pub(super) fn get(&self, row: usize) -> Option<i128> {
        let place = self.first + row;
        if self.width == 0 {
            return self.values.get(place / 8).map(|byte| i128::from(byte >> (place % 8) & 1));
        }
        let start = place * self.width;
        let bytes = self.values.get(start..start + self.width)?;
        Some(match (bytes.len(), self.signed) {
            (1, true) => i128::from(bytes[0] as i8),
            (1, false) => i128::from(bytes[0]),
            (2, true) => i128::from(i16::from_le_bytes(bytes.try_into().ok()?)),
            (2, false) => i128::from(u16::from_le_bytes(bytes.try_into().ok()?)),
            (4, true) => i128::from(i32::from_le_bytes(bytes.try_into().ok()?)),
            (4, false) => i128::from(u32::from_le_bytes(bytes.try_into().ok()?)),
            (8, true) => i128::from(i64::from_le_bytes(bytes.try_into().ok()?)),
            (8, false) => i128::from(u64::from_le_bytes(bytes.try_into().ok()?)),
            _ => i128::from_le_bytes(bytes.try_into().ok()?),
        })
    }

    /// Returns a number that is a position in a dictionary.
    pub(super) fn key(&self, row: usize) -> Option<usize> {
        usize::try_from(self.get(row)?).ok()
    }
}

pub(super) fn float(view: &View<'_>, row: usize) -> Option<f64> {
    match view.data_type() {
        ArrowType::Float32 => Some(f64::from(f32::from_le_bytes(view.bytes(4, row, 1)?.try_into().ok()?))),
        ArrowType::Float64 => Some(f64::from_le_bytes(view.bytes(8, row, 1)?.try_into().ok()?)),
        // Larger ones would be rounded.
        of if of.is_integer() => {
            let number = Integers::of(view)?.get(row).filter(|number| number.unsigned_abs() <= 1 << 53)?;
            Some(number as f64)
        }
        _ => None,
    }
}

/// Returns the position of a row's value in the dictionary.
pub(super) fn key(view: &View<'_>, row: usize) -> Option<usize> {
    Integers::of(view)?.key(row)
}
