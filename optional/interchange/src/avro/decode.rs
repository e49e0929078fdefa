//! Decodes a datum's values straight into a table's columns, by steps that are made once for a schema.
//!
//! A value goes into a column if the column's type has it: integers that fit, times in their unit. Other
//! values are refused, though ClickHouse would convert them (integers that wrap, milliseconds taken for
//! seconds): no user means that.

use std::sync::Arc;

use windrow_columns::{ColumnData, DataType, NotParsedReason, TextValues};

use super::schema::{Field, Kind, Logical, Type};
use super::BROKEN;
use crate::budget::Budget;
use crate::column::little_endian;
use crate::growing::{layout_of, push_zero};
use crate::input::Input;
use crate::number_form::NumberForm;

type Read<T> = Result<T, NotParsedReason>;

/// A step that turns a value of the schema into one of a column.
pub(super) enum Value {
    Bool(NumberForm),
    /// An integer of 32 bits.
    Int(NumberForm),
    Long(NumberForm),
    /// The bits of an integer as they are, for types without a sign.
    LongBits,
    IntBits,
    /// A point in time in ticks of another unit than the column's.
    Ticks {
        factor: i64,
        divisor: i64,
        form: NumberForm,
    },
    Float(NumberForm),
    Double(NumberForm),
    Text,
    Padded(usize),
    /// A text of fixed length, or one that has its length before it.
    Spelled {
        length: Option<usize>,
        values: Box<TextValues>,
    },
    Fixed(usize),
    FixedText(usize),
    Uuid,
    Decimal {
        length: Option<usize>,
        precision: u8,
        width: usize,
    },
    Name(Vec<String>),
    Enum {
        values: Vec<Option<i16>>,
        width: usize,
    },
    Array(Box<Value>),
    Map {
        /// The form of keys that are not Strings.
        key: Option<Box<TextValues>>,
        value: Box<Value>,
    },
    Record(Vec<Member>),
    /// A value for a column that accepts NULL.
    Nullable {
        null_branch: Option<u64>,
        inner: Box<Value>,
    },
    /// A value of a union that has only this type.
    Only(Box<Value>),
    /// A value that is always NULL, which becomes the type's zero.
    Nothing(DataType),
    /// A value whose NULL becomes the type's zero.
    NullAsZero {
        null_branch: u64,
        inner: Box<Value>,
        wanted: DataType,
    },
}

pub(super) enum Member {
    /// A value that becomes an element of a Tuple.
    Element(usize, Value),
    Skip(Arc<Type>),
}

impl Value {
    /// Makes the step for a pair of types. Returns `None` where values of one type are none of the other.
    pub(super) fn new(from: &Type, wanted: &DataType, null_as_default: bool) -> Option<Value> {
        if let Kind::Union(branches) = &from.kind {
            return match branches.as_slice() {
                [only] => Some(Value::Only(Box::new(Value::new(only, wanted, null_as_default)?))),
                _ => None,
            };
        }
        let wanted = layout_of(wanted);
        if let Kind::Null = from.kind {
            let is_read = null_as_default || matches!(wanted, DataType::Nullable(_));
            return is_read.then(|| Value::Nothing(wanted.clone()));
        }
        let (null_branch, plain) = match &from.kind {
            Kind::Nullable { null_branch, inner } => (Some(*null_branch), &**inner),
            _ => (None, from),
        };
        if let DataType::Nullable(inner) = wanted {
            let inner = Box::new(Value::plain(plain, inner.plain(), null_as_default)?);
            return Some(Value::Nullable { null_branch, inner });
        }
        let value = Value::plain(plain, wanted, null_as_default)?;
        match null_branch {
            None => Some(value),
            Some(_) if !null_as_default => None,
            Some(null_branch) => {
                Some(Value::NullAsZero { null_branch, inner: Box::new(value), wanted: wanted.clone() })
            }
        }
    }

    fn plain(from: &Type, wanted: &DataType, null_as_default: bool) -> Option<Value> {
        use DataType as T;
        let integer =
            || NumberForm::integer(wanted, false).filter(|_| !matches!(wanted, T::Enum8(_) | T::Enum16(_) | T::Ipv4));
        let raw = || integer().filter(|_| !matches!(wanted, T::Decimal { .. } | T::DateTime64 { .. }));
        Some(match (&from.kind, from.logical) {
            (Kind::Bool, _) => match wanted {
                T::Bool => Value::Bool(NumberForm::integer(wanted, false)?),
                _ => Value::Bool(raw().filter(|_| !matches!(wanted, T::Date | T::Date32 | T::DateTime { .. }))?),
            },
            (Kind::Int, None) if matches!(wanted, T::UInt32 | T::Ipv4) => Value::IntBits,
            (Kind::Int, Some(Logical::Date)) if matches!(wanted, T::DateTime { .. }) => return None,
            (Kind::Int, _) => Value::Int(raw()?),
            (Kind::Long, Some(Logical::Timestamp { power })) => ticks(power, wanted)?,
            (Kind::Long, _) if *wanted == T::UInt64 => Value::LongBits,
            (Kind::Long, _) if matches!(wanted, T::DateTime64 { .. }) => Value::Long(NumberForm::Integer {
                low: i64::MIN.into(),
                high: i64::MAX.into(),
                width: 8,
                is_sure: false,
            }),
            (Kind::Long, _) => Value::Long(raw().filter(|_| !matches!(wanted, T::Date | T::Date32))?),
            (Kind::Float, _) => Value::Float(NumberForm::float(wanted, false)?),
            (Kind::Double, _) => Value::Double(NumberForm::float(wanted, false)?),
            (Kind::Bytes, Some(Logical::Decimal { precision, scale })) if is_decimal(wanted) => {
                decimal(None, precision, scale, wanted)?
            }
            (Kind::Fixed(length), Some(Logical::Decimal { precision, scale })) if is_decimal(wanted) => {
                decimal(Some(*length), precision, scale, wanted)?
            }
            (Kind::String | Kind::Bytes, _) => match wanted {
                T::String => Value::Text,
                T::FixedString(width) => Value::Padded(*width),
                T::Uuid => Value::Spelled { length: None, values: Box::new(spelled(wanted)?) },
                _ => return None,
            },
            (Kind::Fixed(width), _) => match wanted {
                T::String => Value::FixedText(*width),
                T::FixedString(wanted) if wanted == width => Value::Fixed(*width),
                T::Ipv6 | T::UInt128 | T::Int128 if *width == 16 => Value::Fixed(16),
                T::UInt256 | T::Int256 if *width == 32 => Value::Fixed(32),
                T::Uuid if *width == 16 => Value::Uuid,
                T::Uuid if *width == 36 => Value::Spelled { length: Some(36), values: Box::new(spelled(wanted)?) },
                _ => return None,
            },
            (Kind::Enum(symbols), _) => match wanted {
                T::String => Value::Name(symbols.clone()),
                T::Enum8(values) | T::Enum16(values) => {
                    let value =
                        |symbol: &String| values.iter().find(|entry| entry.name == *symbol).map(|entry| entry.value);
                    Value::Enum { values: symbols.iter().map(value).collect(), width: wanted.fixed_width()? }
                }
                _ => return None,
            },
            (Kind::Array(inner), _) => match wanted {
                T::Array(wanted) => Value::Array(Box::new(Value::new(inner, wanted, null_as_default)?)),
                _ => return None,
            },
            (Kind::Map(inner), _) => match wanted {
                T::Map(key, value) => {
                    let key = match layout_of(key) {
                        T::String => None,
                        key => Some(Box::new(spelled(key)?)),
                    };
                    Value::Map { key, value: Box::new(Value::new(inner, value, null_as_default)?) }
                }
                _ => return None,
            },
            (Kind::Record(fields), _) => match wanted {
                T::Tuple(tuple) => {
                    let numbered = || (1..=tuple.elements.len()).map(|number| number.to_string()).collect();
                    let names: Vec<String> = tuple.names.clone().unwrap_or_else(numbered);
                    Value::Record(members(fields, &names, &tuple.elements, null_as_default)?)
                }
                _ => return None,
            },
            // What is null can't be null in itself; the others are looked at before.
            (Kind::Nullable { .. } | Kind::Union(_) | Kind::Null, _) => return None,
        })
    }

    /// Reads the next value. Elements of lists take a byte each at least, so a payload can't stand for more
    /// of them than it has bytes.
    pub(super) fn read(&self, input: &mut Input<'_>, out: &mut ColumnData, budget: &mut Budget) -> Read<()> {
        match (self, out) {
            (Value::Int(form), ColumnData::Fixed(data)) => push(form, int(input)?.into(), data)?,
            (Value::Long(form), ColumnData::Fixed(data)) => push(form, long(input)?.into(), data)?,
            (Value::Text, ColumnData::Strings(texts)) => texts.push(bytes(input)?),
            (Value::Double(form), ColumnData::Fixed(data)) => {
                let value = f64::from_le_bytes(input.array().ok_or(BROKEN)?);
                form.push_float(value, data).map_err(|_| NotParsedReason::Value)?;
            }
            (Value::Nullable { null_branch, inner }, ColumnData::Nullable { nulls, inner: values }) => {
                match null_branch {
                    Some(null_branch) if branch(input)? == *null_branch => {
                        nulls.push(1);
                        inner.pad(values, budget)?;
                    }
                    _ => {
                        nulls.push(0);
                        inner.read(input, values, budget)?;
                    }
                }
            }
            (Value::NullAsZero { null_branch, inner, wanted }, out) => match branch(input)? == *null_branch {
                true => zero(wanted, out, budget)?,
                false => inner.read(input, out, budget)?,
            },
            (Value::Bool(form), ColumnData::Fixed(data)) => {
                let byte = input.byte().filter(|byte| *byte <= 1).ok_or(BROKEN)?;
                push(form, byte.into(), data)?;
            }
            (Value::IntBits, ColumnData::Fixed(data)) => data.extend_from_slice(&int(input)?.to_le_bytes()),
            (Value::LongBits, ColumnData::Fixed(data)) => data.extend_from_slice(&long(input)?.to_le_bytes()),
            (Value::Ticks { factor, divisor, form }, ColumnData::Fixed(data)) => {
                let ticks = long(input)?.checked_mul(*factor).ok_or(NotParsedReason::Value)?.div_euclid(*divisor);
                push(form, ticks.into(), data)?;
            }
            (Value::Float(form), ColumnData::Fixed(data)) => {
                let value = f32::from_le_bytes(input.array().ok_or(BROKEN)?);
                form.push_float(value.into(), data).map_err(|_| NotParsedReason::Value)?;
            }
            (Value::Padded(width), ColumnData::Fixed(data)) => {
                let text = bytes(input)?;
                let padding = width.checked_sub(text.len()).ok_or(NotParsedReason::Value)?;
                budget.take(padding)?;
                data.extend_from_slice(text);
                data.resize(data.len() + padding, 0);
            }
            (Value::Spelled { length, values }, ColumnData::Fixed(data)) => {
                let text = match length {
                    Some(length) => input.take(*length).ok_or(BROKEN)?,
                    None => bytes(input)?,
                };
                values.push(text, data)?;
            }
            (Value::FixedText(width), ColumnData::Strings(texts)) => texts.push(input.take(*width).ok_or(BROKEN)?),
            (Value::Fixed(width), ColumnData::Fixed(data)) => data.extend_from_slice(input.take(*width).ok_or(BROKEN)?),
            (Value::Uuid, ColumnData::Fixed(data)) => {
                let value = input.array::<16>().ok_or(BROKEN)?;
                data.extend(value[..8].iter().rev());
                data.extend(value[8..].iter().rev());
            }
            (Value::Decimal { length, precision, width }, ColumnData::Fixed(data)) => {
                let number = match length {
                    Some(length) => input.take(*length).ok_or(BROKEN)?,
                    None => bytes(input)?,
                };
                // Of no bytes there is no number.
                let number = Some(number).filter(|number| !number.is_empty());
                let number = number.and_then(|number| little_endian(number, *width));
                let number = number.filter(|number| has_digits(number, *precision));
                data.extend_from_slice(&number.ok_or(NotParsedReason::Value)?[..*width]);
            }
            (Value::Name(symbols), ColumnData::Strings(texts)) => {
                let symbol = symbols.get(index(input)?).ok_or(BROKEN)?;
                budget.take(symbol.len())?;
                texts.push(symbol.as_bytes());
            }
            (Value::Enum { values, width }, ColumnData::Fixed(data)) => {
                let value = values.get(index(input)?).ok_or(BROKEN)?.ok_or(NotParsedReason::Value)?;
                data.extend_from_slice(&value.to_le_bytes()[..*width]);
            }
            (Value::Array(value), ColumnData::Array { offsets, inner }) => {
                let mut end = offsets.last().copied().unwrap_or(0);
                blocks(input, |input| {
                    end += 1;
                    value.read(input, inner, budget)
                })?;
                offsets.push(end);
            }
            (Value::Map { key, value }, ColumnData::Array { offsets, inner }) => {
                let ColumnData::Tuple(pair) = &mut **inner else { return Err(NotParsedReason::Value) };
                let [keys, values] = pair.as_mut_slice() else { return Err(NotParsedReason::Value) };
                let mut end = offsets.last().copied().unwrap_or(0);
                blocks(input, |input| {
                    end += 1;
                    match (key, &mut *keys) {
                        (None, ColumnData::Strings(keys)) => keys.push(bytes(input)?),
                        (Some(key), ColumnData::Fixed(keys)) => key.push(bytes(input)?, keys)?,
                        _ => return Err(NotParsedReason::Value),
                    }
                    value.read(input, values, budget)
                })?;
                offsets.push(end);
            }
            (Value::Only(value), out) => match index(input)? {
                0 => value.read(input, out, budget)?,
                _ => return Err(BROKEN),
            },
            (Value::Nothing(wanted), out) => zero(wanted, out, budget)?,
            (Value::Record(members), ColumnData::Tuple(elements)) => {
                for member in members {
                    match member {
                        Member::Element(index, value) => value.read(input, &mut elements[*index], budget)?,
                        Member::Skip(data_type) => skip(data_type, input)?,
                    }
                }
            }
            _ => return Err(NotParsedReason::Value),
        }
        Ok(())
    }

    /// Adds a placeholder for a row that is NULL.
    fn pad(&self, out: &mut ColumnData, budget: &mut Budget) -> Read<()> {
        let width = match self {
            Value::Bool(form) | Value::Int(form) | Value::Long(form) | Value::Float(form) | Value::Double(form) => {
                form.width()
            }
            Value::Ticks { form, .. } => form.width(),
            Value::IntBits => 4,
            Value::LongBits => 8,
            Value::Spelled { .. } | Value::Uuid => 16,
            Value::Only(inner) => return inner.pad(out, budget),
            Value::Padded(width) | Value::Fixed(width) | Value::Decimal { width, .. } | Value::Enum { width, .. } => {
                *width
            }
            _ => 1,
        };
        budget.take(width)?;
        match out {
            ColumnData::Fixed(data) => data.resize(data.len() + width, 0),
            ColumnData::Strings(texts) => texts.push(b""),
            // No other type can be Nullable.
            _ => return Err(NotParsedReason::Null),
        }
        Ok(())
    }
}

/// Adds the type's zero for a NULL that the type does not have.
fn zero(wanted: &DataType, out: &mut ColumnData, budget: &mut Budget) -> Read<()> {
    budget.take(wanted.fixed_width().unwrap_or(8))?;
    push_zero(out, wanted);
    Ok(())
}

fn spelled(wanted: &DataType) -> Option<TextValues> {
    TextValues::new(wanted, &windrow_columns::ReadSettings::default())
}

fn is_decimal(wanted: &DataType) -> bool {
    matches!(wanted, DataType::Decimal { .. })
}

/// Makes the step for a point in time in the column's own unit. Seconds before 1970 are rounded down, as
/// ClickHouse does.
fn ticks(power: u32, wanted: &DataType) -> Option<Value> {
    let scaled = |to: u32, form: NumberForm| Value::Ticks {
        factor: 10i64.pow(to.saturating_sub(power)),
        divisor: 10i64.pow(power.saturating_sub(to)),
        form,
    };
    Some(match wanted {
        DataType::DateTime64 { precision, .. } => {
            let form = NumberForm::Integer { low: i64::MIN.into(), high: i64::MAX.into(), width: 8, is_sure: false };
            scaled(u32::from(*precision), form)
        }
        DataType::DateTime { .. } => scaled(0, NumberForm::integer(wanted, false)?),
        DataType::UInt64 => Value::LongBits,
        DataType::Int64 => Value::Long(NumberForm::integer(wanted, false)?),
        _ => return None,
    })
}

fn decimal(length: Option<usize>, precision: u8, scale: u8, wanted: &DataType) -> Option<Value> {
    match wanted {
        DataType::Decimal { precision: p, scale: s } if *p == precision && *s == scale => {
            Some(Value::Decimal { length, precision, width: wanted.fixed_width()? })
        }
        _ => None,
    }
}

/// Says whether a little-endian number has at most `precision` digits.
fn has_digits(number: &[u8; 32], precision: u8) -> bool {
    let (low, high) = number.split_at(16);
    let value = i128::from_le_bytes(low.try_into().expect("sixteen bytes"));
    let sign = if value < 0 { 0xFF } else { 0 };
    match 10u128.checked_pow(u32::from(precision)) {
        Some(limit) if precision <= 38 => high.iter().all(|byte| *byte == sign) && value.unsigned_abs() < limit,
        // 252 bits are less than 76 digits, which only the widest decimal has.
        _ => precision < 76 || matches!(number[31], 0..=0x0F | 0xF0..),
    }
}

fn members(fields: &[Field], names: &[String], wanted: &[DataType], null_as_default: bool) -> Option<Vec<Member>> {
    let is_there = |name: &String| fields.iter().any(|field| field.name == *name);
    if !names.iter().all(is_there) {
        return None;
    }
    let member = |field: &Field| match names.iter().position(|name| *name == field.name) {
        Some(index) => Some(Member::Element(index, Value::new(&field.data_type, &wanted[index], null_as_default)?)),
        None => Some(Member::Skip(field.data_type.clone())),
    };
    fields.iter().map(member).collect()
}

#[inline]
fn push(form: &NumberForm, value: i128, data: &mut Vec<u8>) -> Read<()> {
    form.push_integer(value, data).map_err(|_| NotParsedReason::Value)
}

#[inline]
fn int(input: &mut Input<'_>) -> Read<i32> {
    input.zigzag().and_then(|number| i32::try_from(number).ok()).ok_or(BROKEN)
}

#[inline]
fn long(input: &mut Input<'_>) -> Read<i64> {
    input.zigzag().ok_or(BROKEN)
}

#[inline]
fn bytes<'a>(input: &mut Input<'a>) -> Read<&'a [u8]> {
    let length = index(input)?;
    input.take(length).ok_or(BROKEN)
}

#[inline]
fn index(input: &mut Input<'_>) -> Read<usize> {
    input.zigzag().and_then(|index| usize::try_from(index).ok()).ok_or(BROKEN)
}

/// Reads the branch of a union of two.
#[inline]
pub(super) fn branch(input: &mut Input<'_>) -> Read<u64> {
    input.zigzag().and_then(|branch| u64::try_from(branch).ok()).filter(|branch| *branch <= 1).ok_or(BROKEN)
}

/// Reads elements, which come in blocks. Each block has its count first, negative if the block's size
/// follows; a count of zero is the end.
pub(super) fn blocks(input: &mut Input<'_>, mut read: impl FnMut(&mut Input<'_>) -> Read<()>) -> Read<()> {
    loop {
        let count = input.zigzag().ok_or(BROKEN)?;
        if count == 0 {
            return Ok(());
        }
        if count < 0 {
            input.zigzag().ok_or(BROKEN)?;
        }
        for _ in 0..count.unsigned_abs() {
            read(input)?;
        }
    }
}

/// Skips a value that no column takes. Types are not deeper than their schema, whose depth is limited.
pub(super) fn skip(data_type: &Type, input: &mut Input<'_>) -> Read<()> {
    match &data_type.kind {
        Kind::Null => Ok(()),
        Kind::Bool => input.byte().map(drop).ok_or(BROKEN),
        Kind::Int | Kind::Long | Kind::Enum(_) => long(input).map(drop),
        Kind::Float => input.take(4).map(drop).ok_or(BROKEN),
        Kind::Double => input.take(8).map(drop).ok_or(BROKEN),
        Kind::Bytes | Kind::String => bytes(input).map(drop),
        Kind::Fixed(width) => input.take(*width).map(drop).ok_or(BROKEN),
        Kind::Array(inner) => blocks(input, |input| skip(inner, input)),
        Kind::Map(inner) => blocks(input, |input| {
            bytes(input)?;
            skip(inner, input)
        }),
        Kind::Record(fields) => fields.iter().try_for_each(|field| skip(&field.data_type, input)),
        Kind::Nullable { null_branch, inner } => match branch(input)? == *null_branch {
            true => Ok(()),
            false => skip(inner, input),
        },
        Kind::Union(branches) => skip(branches.get(index(input)?).ok_or(BROKEN)?, input),
    }
}
