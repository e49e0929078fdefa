//! `Enum`: names for numbers; and what types are called, without their arguments.

use std::collections::HashMap;
use std::ops::Range;

use pyo3::prelude::*;
use pyo3::types::PyString;
use windrow_columns::results::Column;
use windrow_columns::{DataType, IntervalUnit};

use super::cells::Cells;
use super::options::{ColumnOptions, Format};
use super::reader::fixed;

pub struct EnumReader {
    wide: bool,
    numbers: bool,
    names: HashMap<i16, Py<PyAny>>,
    /// A number without a name; servers don't send one.
    unnamed: Py<PyAny>,
}

impl EnumReader {
    pub fn new(py: Python<'_>, scalar: &DataType, options: &ColumnOptions<'_>) -> EnumReader {
        let (wide, values) = match scalar {
            DataType::Enum16(values) => (true, values.as_slice()),
            DataType::Enum8(values) => (false, values.as_slice()),
            _ => (false, &[][..]),
        };
        let names = values.iter().map(|value| (value.value, PyString::new(py, &value.name).into_any().unbind()));
        let numbers = options.format(base_name(scalar)) == Format::Int;
        EnumReader { wide, numbers, names: names.collect(), unnamed: py.None() }
    }

    pub fn read(&self, py: Python<'_>, column: &Column, rows: Range<usize>, out: &mut Cells) -> PyResult<()> {
        match self.wide {
            true => fixed(column, rows)?.try_for_each(|v| self.push(py, i16::from_le_bytes(v), out)),
            false => fixed(column, rows)?.try_for_each(|v| self.push(py, i8::from_le_bytes(v).into(), out)),
        }
    }

    fn push(&self, py: Python<'_>, number: i16, out: &mut Cells) -> PyResult<()> {
        if self.numbers {
            return out.push_signed(py, number.into());
        }
        out.push_shared(py, self.names.get(&number).unwrap_or(&self.unnamed));
        Ok(())
    }
}

/// The name under which formats of the type are asked for.
pub fn base_name(scalar: &DataType) -> &'static str {
    match scalar {
        DataType::UInt8 => "UInt8",
        DataType::UInt16 => "UInt16",
        DataType::UInt32 => "UInt32",
        DataType::UInt64 => "UInt64",
        DataType::UInt128 => "UInt128",
        DataType::UInt256 => "UInt256",
        DataType::Int8 => "Int8",
        DataType::Int16 => "Int16",
        DataType::Int32 => "Int32",
        DataType::Int64 => "Int64",
        DataType::Int128 => "Int128",
        DataType::Int256 => "Int256",
        DataType::Float32 => "Float32",
        DataType::Float64 => "Float64",
        DataType::BFloat16 => "BFloat16",
        DataType::Bool => "Bool",
        DataType::String => "String",
        DataType::FixedString(_) => "FixedString",
        DataType::Date => "Date",
        DataType::Date32 => "Date32",
        DataType::DateTime { .. } => "DateTime",
        DataType::DateTime64 { .. } => "DateTime64",
        DataType::Time => "Time",
        DataType::Time64 { .. } => "Time64",
        DataType::Interval(unit) => interval_name(*unit),
        DataType::Decimal { .. } => "Decimal",
        DataType::Uuid => "UUID",
        DataType::Ipv4 => "IPv4",
        DataType::Ipv6 => "IPv6",
        DataType::Enum8(_) => "Enum8",
        DataType::Enum16(_) => "Enum16",
        DataType::Nullable(_) => "Nullable",
        DataType::LowCardinality(_) => "LowCardinality",
        DataType::Array(_) => "Array",
        DataType::Map(..) => "Map",
        DataType::Tuple(_) => "Tuple",
        DataType::Variant(_) => "Variant",
        DataType::Custom(custom) => base_name(&custom.inner),
    }
}

fn interval_name(unit: IntervalUnit) -> &'static str {
    match unit {
        IntervalUnit::Nanosecond => "IntervalNanosecond",
        IntervalUnit::Microsecond => "IntervalMicrosecond",
        IntervalUnit::Millisecond => "IntervalMillisecond",
        IntervalUnit::Second => "IntervalSecond",
        IntervalUnit::Minute => "IntervalMinute",
        IntervalUnit::Hour => "IntervalHour",
        IntervalUnit::Day => "IntervalDay",
        IntervalUnit::Week => "IntervalWeek",
        IntervalUnit::Month => "IntervalMonth",
        IntervalUnit::Quarter => "IntervalQuarter",
        IntervalUnit::Year => "IntervalYear",
    }
}

/// Bytes of a value. Zero for types whose values differ.
pub fn width(scalar: &DataType) -> usize {
    match scalar {
        DataType::UInt8 | DataType::Int8 | DataType::Bool | DataType::Enum8(_) => 1,
        DataType::UInt16 | DataType::Int16 | DataType::Date | DataType::Enum16(_) | DataType::BFloat16 => 2,
        DataType::UInt64
        | DataType::Int64
        | DataType::Float64
        | DataType::DateTime64 { .. }
        | DataType::Time64 { .. }
        | DataType::Interval(_) => 8,
        DataType::UInt128 | DataType::Int128 | DataType::Uuid | DataType::Ipv6 => 16,
        DataType::UInt256 | DataType::Int256 => 32,
        DataType::FixedString(width) => *width,
        DataType::Decimal { precision, .. } => match precision {
            0..=9 => 4,
            10..=18 => 8,
            19..=38 => 16,
            _ => 32,
        },
        DataType::UInt32
        | DataType::Int32
        | DataType::Float32
        | DataType::Date32
        | DataType::DateTime { .. }
        | DataType::Time
        | DataType::Ipv4 => 4,
        _ => 0,
    }
}
