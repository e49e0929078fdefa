//! A reader of `Enum`: names for numbers.

use std::collections::HashMap;
use std::ops::Range;

use pyo3::prelude::*;
use pyo3::types::PyString;
use windrow_columns::DataType;
use windrow_results::Column;

use super::cells::Cells;
use super::options::{ColumnOptions, Format};
use super::reader::fixed;

pub struct EnumReader {
    wide: bool,
    numbers: bool,
    names: HashMap<i16, Py<PyAny>>,
    /// The value for a number without a name; servers don't send one.
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
        let numbers = options.format(scalar.family()) == Format::Int;
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
