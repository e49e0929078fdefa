//! Columns as a payload has them, before they are converted to the table's types.

use std::borrow::Cow;

use windrow_columns::NotParsedReason;

use crate::budget::Budget;

/// The rows of one field.
#[derive(Clone, Debug)]
pub(crate) struct Column<'a> {
    pub(crate) rows: usize,
    /// A byte for each row, 1 for NULL. `None`: no row is NULL. The value of a NULL row in `values` means nothing.
    pub(crate) nulls: Option<Vec<u8>>,
    pub(crate) values: Values<'a>,
}

/// Values of a column. Numbers are little-endian.
#[derive(Clone, Debug)]
pub(crate) enum Values<'a> {
    /// One byte for each row, 0 or 1.
    Bool(Vec<u8>),
    Int {
        width: usize,
        signed: bool,
        data: Cow<'a, [u8]>,
    },
    Float {
        width: usize,
        data: Cow<'a, [u8]>,
    },
    /// Days since 1970 in 32 bits.
    Date(Cow<'a, [u8]>),
    /// Ticks since 1970 in 64 bits, `10^power` a second.
    Timestamp {
        power: u32,
        data: Cow<'a, [u8]>,
    },
    /// Ticks since midnight in 64 bits, `10^power` a second.
    TimeOfDay {
        power: u32,
        data: Cow<'a, [u8]>,
    },
    Decimal {
        scale: i32,
        width: usize,
        data: Cow<'a, [u8]>,
    },
    Strings(Strings<'a>),
    /// Sixteen bytes each, in the order in which they are written.
    Uuid(Cow<'a, [u8]>),
    FixedBytes {
        width: usize,
        data: Cow<'a, [u8]>,
    },
    List {
        ends: Vec<u64>,
        inner: Box<Column<'a>>,
    },
    Map {
        ends: Vec<u64>,
        key: Box<Column<'a>>,
        value: Box<Column<'a>>,
    },
    Struct(Vec<Field<'a>>),
}

#[derive(Clone, Debug)]
pub(crate) struct Field<'a> {
    pub(crate) name: String,
    pub(crate) column: Column<'a>,
}

/// Strings, one after the other.
#[derive(Clone, Debug)]
pub(crate) struct Strings<'a> {
    /// The end of each string in `data`; the first begins at 0. The ends ascend and lie within `data`.
    pub(crate) ends: Vec<usize>,
    pub(crate) data: Cow<'a, [u8]>,
}

impl Strings<'_> {
    #[inline]
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let mut start = 0;
        self.ends.iter().map(move |&end| &self.data[std::mem::replace(&mut start, end)..end])
    }

    fn get(&self, row: usize) -> &[u8] {
        let start = if row == 0 { 0 } else { self.ends[row - 1] };
        &self.data[start..self.ends[row]]
    }
}

impl Values<'_> {
    /// Makes decimals of `width` bytes from big-endian numbers of any length.
    pub(crate) fn big_endian<'v>(
        numbers: impl Iterator<Item = &'v [u8]>,
        width: usize,
        scale: i32,
    ) -> Option<Values<'static>> {
        let mut data = Vec::new();
        for number in numbers {
            data.extend_from_slice(&little_endian(number, width)?[..width]);
        }
        Some(Values::Decimal { scale, width, data: data.into() })
    }
}

impl<'a> Column<'a> {
    pub(crate) fn has_nulls(&self) -> bool {
        self.nulls.is_some()
    }

    /// Returns the rows at `indices`, in that order; each index is below the number of rows. Rows that
    /// `nulls` marks are NULL, whatever their index is.
    pub(crate) fn at<'b>(
        &self,
        indices: &[u32],
        nulls: Option<Vec<u8>>,
        budget: &mut Budget,
    ) -> Result<Column<'b>, NotParsedReason> {
        if self.rows == 0 && !indices.is_empty() || self.nulls.is_some() {
            return Err(NotParsedReason::Value);
        }
        let fixed = |data: &[u8], width: usize, budget: &mut Budget| {
            budget.take_values(indices.len(), width)?;
            Ok::<_, NotParsedReason>(take_fixed(data, width, indices))
        };
        let values = match &self.values {
            Values::Bool(data) => Values::Bool(fixed(data, 1, budget)?),
            Values::Int { width, signed, data } => {
                Values::Int { width: *width, signed: *signed, data: fixed(data, *width, budget)?.into() }
            }
            Values::Float { width, data } => Values::Float { width: *width, data: fixed(data, *width, budget)?.into() },
            Values::Date(data) => Values::Date(fixed(data, 4, budget)?.into()),
            Values::Uuid(data) => Values::Uuid(fixed(data, 16, budget)?.into()),
            Values::Timestamp { power, data } => {
                Values::Timestamp { power: *power, data: fixed(data, 8, budget)?.into() }
            }
            Values::TimeOfDay { power, data } => {
                Values::TimeOfDay { power: *power, data: fixed(data, 8, budget)?.into() }
            }
            Values::Decimal { scale, width, data } => {
                Values::Decimal { scale: *scale, width: *width, data: fixed(data, *width, budget)?.into() }
            }
            Values::FixedBytes { width, data } => {
                Values::FixedBytes { width: *width, data: fixed(data, *width, budget)?.into() }
            }
            Values::Strings(strings) => Values::Strings(strings_at(strings, indices, budget)?),
            Values::List { .. } | Values::Map { .. } | Values::Struct(_) => return Err(NotParsedReason::Value),
        };
        Ok(Column { rows: indices.len(), nulls, values })
    }
}

fn take_fixed(data: &[u8], width: usize, indices: &[u32]) -> Vec<u8> {
    let mut taken = Vec::with_capacity(indices.len() * width);
    for &index in indices {
        let start = index as usize * width;
        taken.extend_from_slice(&data[start..start + width]);
    }
    taken
}

fn strings_at<'b>(strings: &Strings<'_>, indices: &[u32], budget: &mut Budget) -> Result<Strings<'b>, NotParsedReason> {
    let mut bytes = 0usize;
    for &index in indices {
        bytes = bytes.checked_add(strings.get(index as usize).len()).ok_or(NotParsedReason::Value)?;
    }
    budget.take(bytes)?;
    budget.take_values(indices.len(), 8)?;
    let mut data = Vec::with_capacity(bytes);
    let ends = indices.iter().map(|&index| {
        data.extend_from_slice(strings.get(index as usize));
        data.len()
    });
    let ends = ends.collect();
    Ok(Strings { ends, data: data.into() })
}

/// Converts a big-endian number to `width` bytes, if it fits. The first `width` of the 32 bytes are the number.
pub(crate) fn little_endian(value: &[u8], width: usize) -> Option<[u8; 32]> {
    let sign = if value.first().is_some_and(|first| first & 0x80 != 0) { 0xFF } else { 0 };
    let mut number = [sign; 32];
    for (place, byte) in number.iter_mut().zip(value.iter().rev()) {
        *place = *byte;
    }
    let is_whole = value.len() <= 32 && number[width..].iter().all(|byte| *byte == sign);
    (is_whole && (number[width - 1] & 0x80 != 0) == (sign != 0)).then_some(number)
}
