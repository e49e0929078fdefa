//! The values that every message has beside its fields, as columns. A value is computed once for a message
//! and repeated for each of its rows.

use windrow_columns::{ColumnData, DataType, StringData};

use crate::messages::mapping::Virtual;
use crate::messages::message::Message;

/// The form in which the values of one virtual column are written.
#[derive(Clone, Debug)]
pub(crate) struct VirtualColumn {
    /// Index of the column in the table.
    pub(crate) index: usize,
    source: Virtual,
    form: Form,
    nullable: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Form {
    Integer {
        width: usize,
    },
    /// Seconds since 1970.
    DateTime,
    /// Ticks since 1970, `10^precision` of them in a second.
    DateTime64 {
        precision: u8,
    },
    /// Days since 1970.
    Date {
        width: usize,
    },
    Text,
    Texts,
}

/// The rows of one virtual column so far.
pub(crate) struct VirtualRows<'p> {
    column: &'p VirtualColumn,
    values: Growing,
    nulls: Vec<u8>,
}

enum Growing {
    Fixed(Vec<u8>),
    Text(StringData),
    Texts { offsets: Vec<u64>, texts: StringData },
}

const MS_PER_SECOND: i64 = 1000;
const MS_PER_DAY: i64 = 86_400_000;

impl VirtualColumn {
    /// Makes the column, or returns `None` if no value of this source has a place in a column of this type.
    pub(crate) fn new(index: usize, source: &Virtual, data_type: &DataType) -> Option<Self> {
        let (plain, nullable) = unwrapped(data_type);
        let form = match source {
            Virtual::Topic | Virtual::Key | Virtual::Header(_) | Virtual::RawMessage => text(plain)?,
            Virtual::HeaderNames | Virtual::HeaderValues => match plain {
                DataType::Array(inner) if text(unwrapped_low_cardinality(inner)).is_some() => Form::Texts,
                _ => return None,
            },
            Virtual::Partition => integer(plain, 4)?,
            Virtual::Offset => integer(plain, 8)?,
            Virtual::Timestamp => time(plain).or_else(|| integer(plain, 8)).or_else(|| unsigned_seconds(plain))?,
            Virtual::TimestampMs => time(plain).or_else(|| integer(plain, 8))?,
        };
        Some(VirtualColumn { index, source: source.clone(), form, nullable })
    }

    pub(crate) fn rows(&self) -> VirtualRows<'_> {
        let values = match self.form {
            Form::Text => Growing::Text(StringData::default()),
            Form::Texts => Growing::Texts { offsets: Vec::new(), texts: StringData::default() },
            _ => Growing::Fixed(Vec::new()),
        };
        VirtualRows { column: self, values, nulls: Vec::new() }
    }

    /// Returns a number as it is stored. A time that the type can't hold becomes the nearest one that it can.
    fn number(&self, message: &Message<'_>, partition: i32) -> Option<i64> {
        let ms = message.timestamp_ms;
        match self.source {
            Virtual::Partition => return Some(partition.into()),
            Virtual::Offset => return Some(message.offset),
            _ if ms < 0 => return None,
            _ => {}
        }
        let is_in_seconds = self.source == Virtual::Timestamp;
        Some(match self.form {
            Form::Integer { .. } if is_in_seconds => ms / MS_PER_SECOND,
            Form::DateTime => (ms / MS_PER_SECOND).min(u32::MAX.into()),
            Form::Date { width: 2 } => (ms / MS_PER_DAY).min(u16::MAX.into()),
            Form::Date { .. } => (ms / MS_PER_DAY).min(i32::MAX.into()),
            Form::DateTime64 { precision } => {
                let ms = if is_in_seconds { ms / MS_PER_SECOND * MS_PER_SECOND } else { ms };
                match precision {
                    0..=3 => ms / 10i64.pow(3 - u32::from(precision)),
                    _ => ms.saturating_mul(10i64.pow(u32::from(precision) - 3)),
                }
            }
            _ => ms,
        })
    }

    fn text<'t>(&self, topic: &'t [u8], message: &Message<'t>) -> Option<&'t [u8]> {
        match &self.source {
            Virtual::Topic => Some(topic),
            Virtual::Key => message.key,
            Virtual::RawMessage => message.value,
            Virtual::Header(wanted) => {
                let mut last = None;
                message.headers.each(|key, value| {
                    if key == wanted.as_bytes() {
                        last = value;
                    }
                });
                last
            }
            _ => None,
        }
    }
}

impl VirtualRows<'_> {
    /// Adds the message's value for this number of rows.
    pub(crate) fn push(&mut self, topic: &[u8], partition: i32, message: &Message<'_>, rows: usize) {
        let column = self.column;
        let is_null = match &mut self.values {
            Growing::Fixed(data) => {
                let number = column.number(message, partition);
                push_number(column.form, number.unwrap_or(0), rows, data);
                number.is_none()
            }
            Growing::Text(texts) => {
                let text = column.text(topic, message);
                (0..rows).for_each(|_| texts.push(text.unwrap_or_default()));
                text.is_none()
            }
            Growing::Texts { offsets, texts } => {
                for _ in 0..rows {
                    message.headers.each(|key, value| match column.source {
                        Virtual::HeaderNames => texts.push(key),
                        _ => texts.push(value.unwrap_or_default()),
                    });
                    offsets.push(texts.rows() as u64);
                }
                false
            }
        };
        if column.nullable {
            self.nulls.resize(self.nulls.len() + rows, is_null.into());
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        let values = match &self.values {
            Growing::Fixed(data) => data.len(),
            Growing::Text(texts) => texts.bytes(),
            Growing::Texts { offsets, texts } => 8 * offsets.len() + texts.bytes(),
        };
        values + self.nulls.len()
    }

    /// Returns the rows and begins anew.
    pub(crate) fn take(&mut self) -> ColumnData {
        let values = match &mut self.values {
            Growing::Fixed(data) => ColumnData::Fixed(std::mem::take(data)),
            Growing::Text(texts) => ColumnData::Strings(std::mem::take(texts)),
            Growing::Texts { offsets, texts } => ColumnData::Array {
                offsets: std::mem::take(offsets),
                inner: Box::new(ColumnData::Strings(std::mem::take(texts))),
            },
        };
        match self.column.nullable {
            true => ColumnData::Nullable { nulls: std::mem::take(&mut self.nulls), inner: Box::new(values) },
            false => values,
        }
    }
}

fn push_number(form: Form, number: i64, rows: usize, data: &mut Vec<u8>) {
    let width = match form {
        Form::Integer { width } | Form::Date { width } => width,
        Form::DateTime => 4,
        _ => 8,
    };
    let bytes = number.to_le_bytes();
    for _ in 0..rows {
        match width {
            4 => data.extend_from_slice(&bytes[..4]),
            8 => data.extend_from_slice(&bytes),
            2 => data.extend_from_slice(&bytes[..2]),
            // What is numbered here is never negative.
            width => {
                data.extend_from_slice(&bytes);
                data.resize(data.len() + width - 8, 0);
            }
        }
    }
}

fn text(plain: &DataType) -> Option<Form> {
    (*plain == DataType::String).then_some(Form::Text)
}

/// Returns the form of an integer type that has this number of bytes or more.
fn integer(plain: &DataType, at_least: usize) -> Option<Form> {
    use DataType as T;
    let is_integer =
        matches!(plain, T::UInt32 | T::Int32 | T::UInt64 | T::Int64 | T::UInt128 | T::Int128 | T::UInt256 | T::Int256);
    let width = plain.fixed_width().filter(|width| is_integer && *width >= at_least)?;
    Some(Form::Integer { width })
}

fn time(plain: &DataType) -> Option<Form> {
    Some(match plain {
        DataType::DateTime { .. } => Form::DateTime,
        DataType::DateTime64 { precision, .. } => Form::DateTime64 { precision: *precision },
        DataType::Date => Form::Date { width: 2 },
        DataType::Date32 => Form::Date { width: 4 },
        _ => return None,
    })
}

/// Returns the form of a DateTime, which is seconds in four bytes, for the type UInt32.
fn unsigned_seconds(plain: &DataType) -> Option<Form> {
    (*plain == DataType::UInt32).then_some(Form::DateTime)
}

/// Returns the type inside, and says whether NULL is one of its values.
fn unwrapped(data_type: &DataType) -> (&DataType, bool) {
    match data_type.plain() {
        DataType::Nullable(inner) => (inner.plain(), true),
        DataType::LowCardinality(inner) => unwrapped(inner),
        plain => (plain, false),
    }
}

fn unwrapped_low_cardinality(data_type: &DataType) -> &DataType {
    match data_type.plain() {
        DataType::LowCardinality(inner) => inner.plain(),
        plain => plain,
    }
}
