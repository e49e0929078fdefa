//! Reads rows of a data block, value by value, into columns.

use windrow_columns::{DataType, NotParsedReason};

use super::schema::{Kind, Logical, Type};
use crate::budget::Budget;
use crate::column::{Column, Field as StructField, Strings, Values};
use crate::input::Input;

/// A column that grows.
pub(super) struct Growing {
    kind: GrowingKind,
    logical: Option<Logical>,
    number: Number,
    rows: usize,
}

enum GrowingKind {
    Bool(Vec<u8>),
    Int(Vec<u8>),
    Long(Vec<u8>),
    Float(Vec<u8>),
    Double(Vec<u8>),
    Strings { ends: Vec<usize>, data: Vec<u8> },
    Fixed { width: usize, data: Vec<u8> },
    Enum { symbols: Vec<String>, ends: Vec<usize>, data: Vec<u8> },
    Array { ends: Vec<u64>, inner: Box<Growing> },
    Map { ends: Vec<u64>, keys: Box<Growing>, values: Box<Growing> },
    Record(Vec<GrowingField>),
    Nullable { null_branch: u64, nulls: Vec<u8>, inner: Box<Growing> },
}

struct GrowingField {
    name: String,
    values: Growing,
}

const BROKEN: NotParsedReason = NotParsedReason::Syntax;
type Read<T> = Result<T, NotParsedReason>;

impl Growing {
    /// Makes a column for values of a type that become values of another. `None` stands for a field that no
    /// column takes.
    pub(super) fn new(data_type: &Type, wanted: Option<&DataType>) -> Self {
        let wanted = wanted.map(unwrapped);
        let boxed = |data_type: &Type, wanted: Option<&DataType>| Box::new(Growing::new(data_type, wanted));
        let kind = match &data_type.kind {
            // In the schemas of messages only; nothing is read into it.
            Kind::Null | Kind::Union(_) => {
                GrowingKind::Enum { symbols: Vec::new(), ends: Vec::new(), data: Vec::new() }
            }
            Kind::Bool => GrowingKind::Bool(Vec::new()),
            Kind::Int => GrowingKind::Int(Vec::new()),
            Kind::Long => GrowingKind::Long(Vec::new()),
            Kind::Float => GrowingKind::Float(Vec::new()),
            Kind::Double => GrowingKind::Double(Vec::new()),
            Kind::Bytes | Kind::String => GrowingKind::Strings { ends: Vec::new(), data: Vec::new() },
            Kind::Fixed(width) => GrowingKind::Fixed { width: *width, data: Vec::new() },
            Kind::Enum(symbols) => GrowingKind::Enum { symbols: symbols.clone(), ends: Vec::new(), data: Vec::new() },
            Kind::Array(inner) => GrowingKind::Array { ends: Vec::new(), inner: boxed(inner, element(wanted)) },
            Kind::Map(inner) => GrowingKind::Map {
                ends: Vec::new(),
                keys: Box::new(Growing::strings()),
                values: boxed(inner, element(wanted)),
            },
            Kind::Record(fields) => GrowingKind::Record(
                fields
                    .iter()
                    .map(|field| GrowingField {
                        name: field.name.clone(),
                        values: Growing::new(&field.data_type, wanted.and_then(|wanted| member(wanted, &field.name))),
                    })
                    .collect(),
            ),
            Kind::Nullable { null_branch, inner } => {
                GrowingKind::Nullable { null_branch: *null_branch, nulls: Vec::new(), inner: boxed(inner, wanted) }
            }
        };
        Growing { kind, logical: data_type.logical, number: Number::wanted(data_type, wanted), rows: 0 }
    }

    fn strings() -> Self {
        let kind = GrowingKind::Strings { ends: Vec::new(), data: Vec::new() };
        Growing { kind, logical: None, number: Number::Signed, rows: 0 }
    }

    /// Reads the next value. Every value takes a byte at least, so a payload can't stand for more of them
    /// than it has bytes.
    pub(super) fn read(&mut self, input: &mut Input<'_>, budget: &mut Budget) -> Read<()> {
        self.rows += 1;
        match &mut self.kind {
            GrowingKind::Bool(data) => {
                let byte = input.byte().filter(|byte| *byte <= 1).ok_or(BROKEN)?;
                data.push(byte);
            }
            GrowingKind::Int(data) => {
                let number = input.zigzag().and_then(|number| i32::try_from(number).ok()).ok_or(BROKEN)?;
                data.extend_from_slice(&number.to_le_bytes());
            }
            GrowingKind::Long(data) => data.extend_from_slice(&input.zigzag().ok_or(BROKEN)?.to_le_bytes()),
            GrowingKind::Float(data) => data.extend_from_slice(input.take(4).ok_or(BROKEN)?),
            GrowingKind::Double(data) => data.extend_from_slice(input.take(8).ok_or(BROKEN)?),
            GrowingKind::Strings { ends, data } => {
                let length = input.zigzag().and_then(|length| usize::try_from(length).ok()).ok_or(BROKEN)?;
                if length == 0 && matches!(self.logical, Some(Logical::Decimal { .. })) {
                    return Err(NotParsedReason::Value);
                }
                data.extend_from_slice(input.take(length).ok_or(BROKEN)?);
                ends.push(data.len());
            }
            GrowingKind::Fixed { width, data } => data.extend_from_slice(input.take(*width).ok_or(BROKEN)?),
            GrowingKind::Enum { symbols, ends, data } => {
                let index = input.zigzag().and_then(|index| usize::try_from(index).ok()).ok_or(BROKEN)?;
                let symbol = symbols.get(index).ok_or(BROKEN)?;
                budget.take(symbol.len())?;
                data.extend_from_slice(symbol.as_bytes());
                ends.push(data.len());
            }
            GrowingKind::Array { ends, inner } => {
                read_blocks(input, |input| inner.read(input, budget))?;
                ends.push(inner.rows as u64);
            }
            GrowingKind::Map { ends, keys, values } => {
                read_blocks(input, |input| {
                    keys.read(input, budget)?;
                    values.read(input, budget)
                })?;
                ends.push(values.rows as u64);
            }
            GrowingKind::Record(fields) => {
                fields.iter_mut().try_for_each(|field| field.values.read(input, budget))?;
            }
            GrowingKind::Nullable { null_branch, nulls, inner } => {
                let branch = input.zigzag().and_then(|branch| u64::try_from(branch).ok()).filter(|branch| *branch <= 1);
                if branch.ok_or(BROKEN)? == *null_branch {
                    nulls.push(1);
                    inner.pad(budget)?;
                } else {
                    nulls.push(0);
                    inner.read(input, budget)?;
                }
            }
        }
        Ok(())
    }

    /// Adds a placeholder for a row that is NULL.
    fn pad(&mut self, budget: &mut Budget) -> Read<()> {
        self.rows += 1;
        match &mut self.kind {
            GrowingKind::Bool(data) => data.push(0),
            GrowingKind::Int(data) | GrowingKind::Float(data) => data.extend_from_slice(&[0; 4]),
            GrowingKind::Long(data) | GrowingKind::Double(data) => data.extend_from_slice(&[0; 8]),
            GrowingKind::Strings { ends, data } | GrowingKind::Enum { ends, data, .. } => ends.push(data.len()),
            GrowingKind::Fixed { width, data } => {
                budget.take(*width)?;
                data.resize(data.len() + *width, 0);
            }
            GrowingKind::Array { ends, inner } => ends.push(inner.rows as u64),
            GrowingKind::Map { ends, values, .. } => ends.push(values.rows as u64),
            GrowingKind::Record(_) | GrowingKind::Nullable { .. } => return Err(NotParsedReason::Null),
        }
        Ok(())
    }

    pub(super) fn finish(self) -> Option<Column<'static>> {
        let (rows, mut nulls) = (self.rows, None);
        let values = match self.kind {
            GrowingKind::Bool(data) => Values::Bool(data),
            GrowingKind::Int(data) if self.logical == Some(Logical::Date) => Values::Date(data.into()),
            GrowingKind::Int(data) => {
                Values::Int { width: 4, signed: self.number == Number::Signed, data: data.into() }
            }
            GrowingKind::Long(data) => match self.number {
                Number::Ticks { power } => Values::Timestamp { power, data: data.into() },
                number => Values::Int { width: 8, signed: number == Number::Signed, data: data.into() },
            },
            GrowingKind::Float(data) => Values::Float { width: 4, data: data.into() },
            GrowingKind::Double(data) => Values::Float { width: 8, data: data.into() },
            GrowingKind::Strings { ends, data } => {
                let strings = Strings { ends, data: data.into() };
                match self.logical {
                    Some(Logical::Decimal { precision, scale }) => {
                        Values::big_endian(strings.iter(), decimal_width(precision)?, i32::from(scale))?
                    }
                    _ => Values::Strings(strings),
                }
            }
            GrowingKind::Enum { ends, data, .. } => Values::Strings(Strings { ends, data: data.into() }),
            GrowingKind::Fixed { width, data } => match self.logical {
                Some(Logical::Decimal { precision, scale }) => {
                    Values::big_endian(data.chunks_exact(width), decimal_width(precision)?, i32::from(scale))?
                }
                _ => Values::FixedBytes { width, data: data.into() },
            },
            GrowingKind::Array { ends, inner } => Values::List { ends, inner: Box::new(inner.finish()?) },
            GrowingKind::Map { ends, keys, values } => {
                Values::Map { ends, key: Box::new(keys.finish()?), value: Box::new(values.finish()?) }
            }
            GrowingKind::Record(fields) => {
                let fields = fields
                    .into_iter()
                    .map(|field| Some(StructField { name: field.name, column: field.values.finish()? }));
                Values::Struct(fields.collect::<Option<_>>()?)
            }
            GrowingKind::Nullable { nulls: marks, inner, .. } => {
                nulls = marks.contains(&1).then_some(marks);
                inner.finish()?.values
            }
        };
        Some(Column { rows, nulls, values })
    }
}

/// The meaning of an integer's bits. Avro has no integers without a sign, so ClickHouse writes and reads
/// unsigned ones of the same width bit by bit.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Number {
    Signed,
    Unsigned,
    /// Ticks since 1970, `10^power` a second.
    Ticks {
        power: u32,
    },
}

impl Number {
    fn wanted(from: &Type, wanted: Option<&DataType>) -> Self {
        match (&from.kind, wanted) {
            (Kind::Int, Some(DataType::UInt32 | DataType::DateTime { .. } | DataType::Ipv4)) => Number::Unsigned,
            (Kind::Long, Some(DataType::UInt64)) => Number::Unsigned,
            (Kind::Long, Some(DataType::DateTime64 { precision, .. })) => {
                Number::Ticks { power: u32::from(*precision) }
            }
            _ => Number::Signed,
        }
    }
}

fn unwrapped(data_type: &DataType) -> &DataType {
    match data_type {
        DataType::LowCardinality(inner) | DataType::Nullable(inner) => unwrapped(inner),
        other => other,
    }
}

/// Returns the type of an Array's elements or a Map's values.
fn element(wanted: Option<&DataType>) -> Option<&DataType> {
    match wanted {
        Some(DataType::Array(inner) | DataType::Map(_, inner)) => Some(inner),
        _ => None,
    }
}

/// Returns the type of a Tuple's element by its name, or by its number if the elements have no names.
fn member<'t>(wanted: &'t DataType, name: &str) -> Option<&'t DataType> {
    let DataType::Tuple(tuple) = wanted else { return None };
    let position = match &tuple.names {
        Some(names) => names.iter().position(|known| known == name)?,
        None => name.parse::<usize>().ok()?.checked_sub(1)?,
    };
    tuple.elements.get(position)
}

/// Reads elements, which come in blocks. Each block has its count first; a count of zero is the end. A
/// negative count, after which the block's size follows, is left to ClickHouse.
fn read_blocks(input: &mut Input<'_>, mut read: impl FnMut(&mut Input<'_>) -> Read<()>) -> Read<()> {
    loop {
        let count = input.zigzag().ok_or(BROKEN)?;
        if count == 0 {
            return Ok(());
        }
        if count < 0 {
            return Err(NotParsedReason::Value);
        }
        for _ in 0..count {
            read(input)?;
        }
    }
}

fn decimal_width(precision: u8) -> Option<usize> {
    match precision {
        1..=9 => Some(4),
        10..=18 => Some(8),
        19..=38 => Some(16),
        39..=76 => Some(32),
        _ => None,
    }
}
