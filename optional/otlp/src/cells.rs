//! A column while it is being filled, in the layout that a block has.

use windrow_columns::{ColumnData, StringData, StringsEnd};

use crate::json_text::{write_json_map, JsonFor};
use crate::target::{Target, NANOSECONDS};
use crate::value::{AnyValue, Attribute};

/// A value for a column, as the request has it.
#[derive(Clone, Copy)]
pub(crate) enum Value<'a> {
    Text(&'a [u8]),
    Any(AnyValue<'a>),
    /// Bytes that are written as hexadecimal digits.
    Hex(&'a [u8]),
    /// A time in nanoseconds since 1970.
    Time(u64),
    Integer(u64),
    Float(f64),
    Attributes(&'a [Attribute<'a>]),
}

pub(crate) enum Cells {
    Fixed(Vec<u8>),
    Strings(StringData),
    Map { offsets: Vec<u64>, keys: StringData, values: StringData },
    List { offsets: Vec<u64>, inner: Box<Cells> },
}

pub(crate) struct Column<'l> {
    target: &'l Target,
    cells: Cells,
    /// A buffer in which texts are made.
    scratch: Vec<u8>,
}

/// The end of a column at some moment, to repeat what is added after it.
pub(crate) enum End {
    Fixed(usize),
    Strings(StringsEnd),
    Map { rows: usize, keys: StringsEnd, values: StringsEnd },
    List { rows: usize, inner: Box<End> },
}

/// Bytes of an expected text: attributes, names and ids are about as long.
const BYTES_OF_A_TEXT: usize = 16;

impl Cells {
    /// Makes cells with room for the expected rows.
    fn for_target(target: &Target, rows: usize) -> Self {
        let strings = || StringData::with_capacity(rows, rows * BYTES_OF_A_TEXT);
        let offsets = Vec::with_capacity(rows);
        match target {
            Target::Text | Target::Json => Cells::Strings(strings()),
            Target::Map => Cells::Map { offsets, keys: strings(), values: strings() },
            Target::List(inner) => Cells::List { offsets, inner: Box::new(Cells::for_target(inner, 0)) },
            Target::Integer(_) | Target::Float32 | Target::Float64 | Target::Seconds | Target::Ticks { .. } => {
                Cells::Fixed(Vec::with_capacity(rows * 8))
            }
        }
    }

    #[inline]
    fn push(&mut self, target: &Target, value: Value<'_>, scratch: &mut Vec<u8>) {
        match self {
            Cells::Fixed(data) => push_fixed(data, target, value),
            Cells::Strings(strings) => push_text(strings, value, scratch),
            Cells::Map { offsets, keys, values } => {
                let Value::Attributes(attributes) = value else { return };
                for attribute in attributes {
                    keys.push(attribute.key);
                    push_any(values, &attribute.value, scratch);
                }
                offsets.push(keys.rows() as u64);
            }
            Cells::List { .. } => {}
        }
    }

    fn end(&self) -> End {
        match self {
            Cells::Fixed(data) => End::Fixed(data.len()),
            Cells::Strings(strings) => End::Strings(strings.end()),
            Cells::Map { offsets, keys, values } => {
                End::Map { rows: offsets.len(), keys: keys.end(), values: values.end() }
            }
            Cells::List { offsets, inner } => End::List { rows: offsets.len(), inner: Box::new(inner.end()) },
        }
    }

    fn repeat(&mut self, start: &End, times: usize) {
        match (self, start) {
            (Cells::Fixed(data), End::Fixed(start)) => {
                let value = data[*start..].to_vec();
                data.reserve(times * value.len());
                (0..times).for_each(|_| data.extend_from_slice(&value));
            }
            (Cells::Strings(strings), End::Strings(start)) => strings.repeat_from(*start, times),
            (Cells::Map { offsets, keys, values }, End::Map { rows, keys: first_key, values: first_value }) => {
                keys.repeat_from(*first_key, times);
                values.repeat_from(*first_value, times);
                repeat_offset(offsets, *rows, times);
            }
            (Cells::List { offsets, inner }, End::List { rows, inner: start }) => {
                inner.repeat(start, times);
                repeat_offset(offsets, *rows, times);
            }
            _ => {}
        }
    }

    fn into_data(self) -> ColumnData {
        match self {
            Cells::Fixed(data) => ColumnData::Fixed(data),
            Cells::Strings(strings) => ColumnData::Strings(strings),
            Cells::Map { offsets, keys, values } => {
                let pairs = vec![ColumnData::Strings(keys), ColumnData::Strings(values)];
                ColumnData::Array { offsets, inner: Box::new(ColumnData::Tuple(pairs)) }
            }
            Cells::List { offsets, inner } => ColumnData::Array { offsets, inner: Box::new(inner.into_data()) },
        }
    }
}

impl<'l> Column<'l> {
    pub(crate) fn new(target: &'l Target, rows: usize) -> Self {
        Column { target, cells: Cells::for_target(target, rows), scratch: Vec::new() }
    }

    #[inline]
    pub(crate) fn push(&mut self, value: Value<'_>) {
        self.cells.push(self.target, value, &mut self.scratch);
    }

    /// Adds the list of one row.
    pub(crate) fn push_list<'a>(&mut self, values: impl Iterator<Item = Value<'a>>) {
        let (Cells::List { offsets, inner }, Target::List(target)) = (&mut self.cells, self.target) else { return };
        let mut end = offsets.last().copied().unwrap_or(0);
        for value in values {
            inner.push(target, value, &mut self.scratch);
            end += 1;
        }
        offsets.push(end);
    }

    pub(crate) fn end(&self) -> End {
        self.cells.end()
    }

    /// Repeats the one row after `start`, `times` times more.
    pub(crate) fn repeat(&mut self, start: &End, times: usize) {
        self.cells.repeat(start, times);
    }

    pub(crate) fn into_data(self) -> ColumnData {
        self.cells.into_data()
    }
}

fn repeat_offset(offsets: &mut Vec<u64>, row: usize, times: usize) {
    let end_of = |rows: usize| if rows == 0 { 0 } else { offsets[rows - 1] };
    let (before, end) = (end_of(row), end_of(row + 1));
    offsets.extend((1..=times as u64).map(|time| end + time * (end - before)));
}

#[inline]
fn push_fixed(data: &mut Vec<u8>, target: &Target, value: Value<'_>) {
    match (target, value) {
        (Target::Integer(1), Value::Integer(integer)) => data.push(integer as u8),
        (Target::Integer(width), Value::Integer(integer)) => data.extend_from_slice(&integer.to_le_bytes()[..*width]),
        (Target::Float64, Value::Float(float)) => data.extend_from_slice(&float.to_le_bytes()),
        (Target::Float32, Value::Float(float)) => data.extend_from_slice(&(float as f32).to_le_bytes()),
        (Target::Seconds, Value::Time(time)) => {
            data.extend_from_slice(&(time.cast_signed().div_euclid(NANOSECONDS) as u32).to_le_bytes());
        }
        (Target::Ticks { per_second: NANOSECONDS }, Value::Time(time)) => data.extend_from_slice(&time.to_le_bytes()),
        (Target::Ticks { per_second }, Value::Time(time)) => {
            data.extend_from_slice(&(time.cast_signed() / (NANOSECONDS / per_second)).to_le_bytes());
        }
        _ => {}
    }
}

#[inline]
fn push_text(strings: &mut StringData, value: Value<'_>, scratch: &mut Vec<u8>) {
    match value {
        Value::Text(text) => strings.push(text),
        Value::Any(any) => push_any(strings, &any, scratch),
        Value::Hex(id) => push_hex(strings, id),
        Value::Attributes(attributes) => {
            scratch.clear();
            // Rows that JSON has no form for are made only to be kept as they are.
            if write_json_map(attributes, JsonFor::Column, scratch).is_err() {
                scratch.clear();
                let _ = write_json_map(attributes, JsonFor::Repair, scratch);
            }
            strings.push(scratch);
        }
        Value::Time(_) | Value::Integer(_) | Value::Float(_) => {}
    }
}

#[inline]
fn push_any(strings: &mut StringData, value: &AnyValue<'_>, scratch: &mut Vec<u8>) {
    match value {
        AnyValue::Text(text) => strings.push(text),
        AnyValue::Empty => strings.push(b""),
        other => {
            scratch.clear();
            other.write_text(scratch);
            strings.push(scratch);
        }
    }
}

/// Adds an id as hexadecimal digits. Ids have at most 16 bytes.
fn push_hex(strings: &mut StringData, id: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut digits = [0; 32];
    for (pair, byte) in digits.chunks_exact_mut(2).zip(id) {
        pair[0] = DIGITS[usize::from(byte >> 4)];
        pair[1] = DIGITS[usize::from(byte & 15)];
    }
    strings.push(&digits[..2 * id.len().min(16)]);
}
