//! The choice of a Python value for each ClickHouse type. A [`Reader`] is made once for a column of a result and
//! then turns ranges of rows into objects. The kind of value is decided once for a range, not once for a value.

use std::ops::Range;

use pyo3::prelude::*;
use pyo3::types::PyString;
use windrow_columns::{DataType, TupleType};
use windrow_results::Column;

use super::cells::Cells;
use super::containers::{ArrayReader, MapReader, TupleReader};
use super::dates::{DateReader, DateTimeReader, TimeReader};
use super::decimals::DecimalReader;
use super::names::EnumReader;
use super::network::{AddressReader, UuidReader};
use super::numbers::NumberReader;
use super::options::{ColumnOptions, Format};
use super::pace::Pace;
use super::text::{FixedTextReader, TextReader};
use super::variants::{JsonReader, VariantReader};
use super::wrappers::{LowCardinalityReader, NullableReader};

pub enum Reader {
    Number(NumberReader),
    Text(TextReader),
    FixedText(FixedTextReader),
    Date(DateReader),
    DateTime(DateTimeReader),
    Time(TimeReader),
    Decimal(DecimalReader),
    Enum(EnumReader),
    Uuid(UuidReader),
    Address(AddressReader),
    Nullable(NullableReader),
    LowCardinality(LowCardinalityReader),
    Array(ArrayReader),
    Map(MapReader),
    Tuple(TupleReader),
    Variant(VariantReader),
    Json(JsonReader),
    Nothing(Py<PyAny>),
}

/// The state that is passed to all readers of a column while they read.
pub struct Reading<'a, 'py> {
    pub py: Python<'py>,
    pub options: ColumnOptions<'a>,
    pub pace: &'a mut Pace,
}

impl Reader {
    pub fn new(py: Python<'_>, data_type: &DataType, options: &ColumnOptions<'_>) -> PyResult<Reader> {
        Ok(match data_type {
            DataType::Nullable(inner) => {
                let null = null_value(py, inner, options)?;
                Reader::Nullable(NullableReader::new(Self::new(py, inner, options)?, null))
            }
            DataType::LowCardinality(inner) => {
                let (inner, null) = match &**inner {
                    DataType::Nullable(inner) => (inner, Some(null_value(py, inner, options)?)),
                    _ => (inner, None),
                };
                Reader::LowCardinality(LowCardinalityReader::new(Self::new(py, inner, options)?, null))
            }
            DataType::Array(element) => Reader::Array(ArrayReader::new(Self::new(py, element, options)?)),
            DataType::Map(key, value) => {
                let (key, value) = (Self::new(py, key, options)?, Self::new(py, value, options)?);
                Reader::Map(MapReader::new(key, value, options.format("Map") == Format::Pairs))
            }
            DataType::Tuple(TupleType { names, elements }) => {
                let format = options.format("Tuple");
                Reader::Tuple(TupleReader::new(py, names.as_deref(), elements, format, options)?)
            }
            DataType::Variant(_) => Reader::Variant(VariantReader::new(options.format("Variant") == Format::Typed)),
            DataType::Dynamic => Reader::Variant(VariantReader::new(false)),
            DataType::Json { typed_paths } => {
                Reader::Json(JsonReader::new(typed_paths, options.format("JSON") == Format::String))
            }
            DataType::QBit { array, .. } => Self::new(py, array, options)?,
            DataType::Nothing => Reader::Nothing(null_value(py, data_type, options)?),
            DataType::Custom(custom) if custom.name.starts_with("Nested(") => {
                Self::of_nested(py, &custom.inner, options)?
            }
            DataType::Custom(custom) => Self::new(py, &custom.inner, options)?,
            scalar => Self::of_scalar(py, scalar, options)?,
        })
    }

    /// Makes a reader of a `Nested`. Its rows are dictionaries, whatever form is asked for tuples.
    fn of_nested(py: Python<'_>, inner: &DataType, options: &ColumnOptions<'_>) -> PyResult<Reader> {
        let DataType::Array(element) = inner else { return Self::new(py, inner, options) };
        let DataType::Tuple(TupleType { names, elements }) = &**element else { return Self::new(py, inner, options) };
        let element = TupleReader::new(py, names.as_deref(), elements, Format::Native, options)?;
        Ok(Reader::Array(ArrayReader::new(Reader::Tuple(element))))
    }

    fn of_scalar(py: Python<'_>, scalar: &DataType, options: &ColumnOptions<'_>) -> PyResult<Reader> {
        if let Some(number) = NumberReader::new(scalar, options) {
            return Ok(Reader::Number(number));
        }
        Ok(match scalar {
            DataType::String => Reader::Text(TextReader::new(options)),
            DataType::FixedString(_) => Reader::FixedText(FixedTextReader::new(options)),
            DataType::Date | DataType::Date32 => Reader::Date(DateReader::new(scalar, options)),
            DataType::DateTime { .. } | DataType::DateTime64 { .. } => {
                Reader::DateTime(DateTimeReader::new(py, scalar, options)?)
            }
            DataType::Time | DataType::Time64 { .. } => Reader::Time(TimeReader::new(scalar, options)),
            DataType::Decimal { scale, .. } => Reader::Decimal(DecimalReader::new(py, *scale)?),
            DataType::Enum8(_) | DataType::Enum16(_) => Reader::Enum(EnumReader::new(py, scalar, options)),
            DataType::Uuid => Reader::Uuid(UuidReader::new(py, options)?),
            DataType::Ipv4 | DataType::Ipv6 => Reader::Address(AddressReader::new(py, scalar, options)?),
            other => {
                let text = format!("values of {other} can't be read; cast them in the query");
                return Err(super::errors::not_supported(py, text));
            }
        })
    }

    /// Appends the values of `rows`.
    pub fn read(
        &mut self,
        reading: &mut Reading<'_, '_>,
        column: &Column,
        rows: Range<usize>,
        out: &mut Cells,
    ) -> PyResult<()> {
        let py = reading.py;
        match self {
            Reader::Number(reader) => reader.read(py, column, rows, out),
            Reader::Text(reader) => reader.read(reading, column, rows, out),
            Reader::FixedText(reader) => reader.read(reading, column, rows, out),
            Reader::Date(reader) => reader.read(py, column, rows, out),
            Reader::DateTime(reader) => reader.read(py, column, rows, out),
            Reader::Time(reader) => reader.read(py, column, rows, out),
            Reader::Decimal(reader) => reader.read(py, column, rows, out),
            Reader::Enum(reader) => reader.read(py, column, rows, out),
            Reader::Uuid(reader) => reader.read(py, column, rows, out),
            Reader::Address(reader) => reader.read(py, column, rows, out),
            Reader::Nullable(reader) => reader.read(reading, column, rows, out),
            Reader::LowCardinality(reader) => reader.read(reading, column, rows, out),
            Reader::Array(reader) => reader.read(reading, column, rows, out),
            Reader::Map(reader) => reader.read(reading, column, rows, out),
            Reader::Tuple(reader) => reader.read(reading, column, rows, out),
            Reader::Variant(reader) => reader.read(reading, column, rows, out),
            Reader::Json(reader) => reader.read(reading, column, rows, out),
            Reader::Nothing(null) => {
                rows.for_each(|_| out.push_shared(py, null));
                Ok(())
            }
        }
    }

    /// Forgets the objects that were kept of the block before.
    pub fn start_block(&mut self) {
        match self {
            Reader::Nullable(reader) => reader.start_block(),
            Reader::LowCardinality(reader) => reader.start_block(),
            Reader::Array(reader) => reader.start_block(),
            Reader::Map(reader) => reader.start_block(),
            Reader::Tuple(reader) => reader.start_block(),
            Reader::Variant(reader) => reader.start_block(),
            Reader::Json(reader) => reader.start_block(),
            _ => {}
        }
    }

    /// Says whether the reader's values refer to no other object that could refer back: then the garbage
    /// collector need not know the tuple that holds them.
    pub fn is_atomic(&self) -> bool {
        match self {
            Reader::Nullable(reader) => reader.is_atomic(),
            Reader::Tuple(reader) => reader.is_atomic(),
            Reader::Array(_) | Reader::Map(_) | Reader::Variant(_) | Reader::Json(_) => false,
            _ => true,
        }
    }
}

/// Returns the object that stands for NULL in values of `inner`: None, or the type's empty value if the
/// caller doesn't want None.
fn null_value(py: Python<'_>, inner: &DataType, options: &ColumnOptions<'_>) -> PyResult<Py<PyAny>> {
    if options.options().use_none {
        return Ok(py.None());
    }
    let scalar = match inner {
        DataType::Nothing => return Ok(0_i32.into_pyobject(py)?.into_any().unbind()),
        scalar if scalar.is_scalar() => scalar,
        _ => return Ok(py.None()),
    };
    Ok(match scalar {
        DataType::Bool
        | DataType::Int128
        | DataType::Int256
        | DataType::UInt128
        | DataType::UInt256
        | DataType::Uuid
        | DataType::Enum8(_)
        | DataType::Enum16(_) => py.None(),
        DataType::FixedString(width) if options.format("FixedString") == Format::Native => {
            pyo3::types::PyBytes::new(py, &vec![0; *width]).into_any().unbind()
        }
        DataType::FixedString(_) => PyString::new(py, "").into_any().unbind(),
        DataType::DateTime { .. } | DataType::DateTime64 { .. } => {
            if options.format(scalar.family()) == Format::Int {
                0_i32.into_pyobject(py)?.into_any().unbind()
            } else {
                super::calendar::Calendar::get(py)?.datetime.bind(py).call1((1970, 1, 1))?.unbind()
            }
        }
        DataType::Time | DataType::Time64 { .. } => match options.format(scalar.family()) {
            Format::Int => 0_i32.into_pyobject(py)?.into_any().unbind(),
            Format::String => PyString::new(py, "00:00:00").into_any().unbind(),
            _ => super::calendar::Calendar::get(py)?.timedelta.bind(py).call0()?.unbind(),
        },
        DataType::Ipv4 => match options.format("IPv4") {
            Format::String => PyString::new(py, "0.0.0.0").into_any().unbind(),
            Format::Int => 0_i32.into_pyobject(py)?.into_any().unbind(),
            _ => py.None(),
        },
        DataType::Ipv6 => match options.format("IPv6") {
            Format::String => PyString::new(py, "::").into_any().unbind(),
            _ => pyo3::types::PyBytes::new(py, &[0; 16]).into_any().unbind(),
        },
        _ => zero(py, scalar, options)?,
    })
}

/// Returns the value of a row that is all zero bytes, or of an empty text.
fn zero(py: Python<'_>, scalar: &DataType, options: &ColumnOptions<'_>) -> PyResult<Py<PyAny>> {
    let column = match scalar {
        DataType::String => Column::Strings { offsets: vec![0, 0], data: Vec::new() },
        _ => {
            let width = scalar.fixed_width().unwrap_or(0);
            Column::Fixed { width, data: vec![0; width] }
        }
    };
    let mut reader = Reader::of_scalar(py, scalar, options)?;
    let mut cells = Cells::with_capacity(1);
    let mut pace = Pace::start();
    let mut reading = Reading { py, options: *options, pace: &mut pace };
    reader.read(&mut reading, &column, 0..1, &mut cells)?;
    cells.object(py, 0).map(Bound::unbind).ok_or_else(super::cells::too_few)
}

/// Makes the error of a column of another layout. The decoder makes columns as their types say; another one
/// is refused rather than misread.
pub fn unfit() -> PyErr {
    pyo3::exceptions::PyRuntimeError::new_err("a column of the result is not laid out as its type says")
}

/// Returns the bytes of each of `rows`, `WIDTH` of them.
pub fn fixed<const WIDTH: usize>(
    column: &Column,
    rows: Range<usize>,
) -> PyResult<impl Iterator<Item = [u8; WIDTH]> + '_> {
    let bytes = match column {
        Column::Fixed { width, data } if *width == WIDTH => data.get(rows.start * WIDTH..rows.end * WIDTH),
        _ => None,
    };
    let values = bytes.ok_or_else(unfit)?.chunks_exact(WIDTH);
    Ok(values.map(|value| {
        let mut bytes = [0; WIDTH];
        bytes.copy_from_slice(value);
        bytes
    }))
}

/// Returns the ends of `rows` in the elements of an array or a map: one more than rows.
pub fn ends(offsets: &[i32], rows: &Range<usize>) -> PyResult<Vec<usize>> {
    let offsets = offsets.get(rows.start..=rows.end).ok_or_else(unfit)?;
    let ends: Vec<usize> = offsets.iter().map(|end| usize::try_from(*end).unwrap_or(0)).collect();
    match ends.is_sorted() {
        true => Ok(ends),
        false => Err(unfit()),
    }
}
