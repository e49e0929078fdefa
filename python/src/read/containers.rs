//! Readers of `Array`, `Map` and `Tuple`.

use std::ops::Range;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use windrow_columns::DataType;
use windrow_results::Column;

use super::cells::{list_of, too_few, Cells, Tuples};
use super::options::{ColumnOptions, Format};
use super::reader::{ends, unfit, Reader, Reading};

/// The number of elements that are made before the interpreter may be given up.
const ELEMENTS_AT_ONCE: usize = 2048;

pub struct ArrayReader {
    element: Box<Reader>,
}

impl ArrayReader {
    pub fn new(element: Reader) -> ArrayReader {
        ArrayReader { element: Box::new(element) }
    }

    pub fn read(
        &mut self,
        reading: &mut Reading<'_, '_>,
        column: &Column,
        rows: Range<usize>,
        out: &mut Cells,
    ) -> PyResult<()> {
        let Column::Array { offsets, inner } = column else { return Err(unfit()) };
        let ends = ends(offsets, &rows)?;
        let elements = read_elements(&mut self.element, reading, inner, ends[0]..ends[rows.len()])?;
        let mut elements = elements.take_from(0);
        for bounds in ends.windows(2) {
            out.push(list_of(reading.py, &mut elements, bounds[1] - bounds[0])?);
        }
        Ok(())
    }

    pub fn start_block(&mut self) {
        self.element.start_block();
    }
}

fn read_elements(
    reader: &mut Reader,
    reading: &mut Reading<'_, '_>,
    column: &Column,
    elements: Range<usize>,
) -> PyResult<Cells> {
    let mut made = Cells::with_capacity(elements.len());
    let mut start = elements.start;
    while start < elements.end {
        let end = elements.end.min(start + ELEMENTS_AT_ONCE);
        reader.read(reading, column, start..end, &mut made)?;
        reading.pace.breathe(reading.py)?;
        start = end;
    }
    Ok(made)
}

pub struct MapReader {
    key: Box<Reader>,
    value: Box<Reader>,
    pairs: bool,
}

impl MapReader {
    pub fn new(key: Reader, value: Reader, pairs: bool) -> MapReader {
        MapReader { key: Box::new(key), value: Box::new(value), pairs }
    }

    pub fn read(
        &mut self,
        reading: &mut Reading<'_, '_>,
        column: &Column,
        rows: Range<usize>,
        out: &mut Cells,
    ) -> PyResult<()> {
        let Column::Map { offsets, keys, values } = column else { return Err(unfit()) };
        let py = reading.py;
        let ends = ends(offsets, &rows)?;
        let elements = ends[0]..ends[rows.len()];
        let mut keys = read_elements(&mut self.key, reading, keys, elements.clone())?.take_from(0);
        let mut values = read_elements(&mut self.value, reading, values, elements)?.take_from(0);
        for bounds in ends.windows(2) {
            let dict = PyDict::new(py);
            let mut pairs = Cells::with_capacity(if self.pairs { bounds[1] - bounds[0] } else { 0 });
            for _ in bounds[0]..bounds[1] {
                let key = keys.next_object(py).ok_or_else(too_few)?;
                let value = values.next_object(py).ok_or_else(too_few)?;
                if self.pairs {
                    pairs.push(PyTuple::new(py, [key, value])?.into_any());
                } else {
                    dict.set_item(key, value)?;
                }
            }
            out.push(if self.pairs { pairs.into_list(py)? } else { dict.into_any() });
        }
        Ok(())
    }

    pub fn start_block(&mut self) {
        self.key.start_block();
        self.value.start_block();
    }
}

enum TupleForm {
    Tuple,
    Dict(Vec<Py<PyString>>),
    Json(Vec<Py<PyString>>),
}

pub struct TupleReader {
    elements: Vec<Reader>,
    form: TupleForm,
}

impl TupleReader {
    /// Makes a reader. Elements with names make a dictionary, unless tuples are asked for.
    pub fn new(
        py: Python<'_>,
        names: Option<&[String]>,
        elements: &[DataType],
        format: Format,
        options: &ColumnOptions<'_>,
    ) -> PyResult<TupleReader> {
        let elements =
            elements.iter().map(|element| Reader::new(py, element, options)).collect::<PyResult<Vec<_>>>()?;
        let keys = || names.unwrap_or_default().iter().map(|name| PyString::intern(py, name).unbind()).collect();
        let form = match (names, format) {
            (None, _) | (_, Format::Tuple) => TupleForm::Tuple,
            (_, Format::Json) => TupleForm::Json(keys()),
            _ => TupleForm::Dict(keys()),
        };
        Ok(TupleReader { elements, form })
    }

    pub fn read(
        &mut self,
        reading: &mut Reading<'_, '_>,
        column: &Column,
        rows: Range<usize>,
        out: &mut Cells,
    ) -> PyResult<()> {
        let Column::Tuple { elements, .. } = column else { return Err(unfit()) };
        if elements.len() != self.elements.len() {
            return Err(unfit());
        }
        let py = reading.py;
        if let TupleForm::Tuple = self.form {
            let mut tuples = Tuples::new(py, rows.len(), elements.len())?;
            for (place, (reader, column)) in self.elements.iter_mut().zip(elements).enumerate() {
                let mut cells = Cells::with_capacity(rows.len());
                reader.read(reading, column, rows.clone(), &mut cells)?;
                tuples.fill(place, cells)?;
            }
            tuples.finish(self.is_atomic(), out);
            return Ok(());
        }
        let mut columns = Vec::with_capacity(elements.len());
        for (reader, column) in self.elements.iter_mut().zip(elements) {
            let mut cells = Cells::with_capacity(rows.len());
            reader.read(reading, column, rows.clone(), &mut cells)?;
            columns.push(cells.take_from(0));
        }
        for _ in rows {
            let dict = PyDict::new(py);
            let (TupleForm::Dict(keys) | TupleForm::Json(keys)) = &self.form else { return Err(unfit()) };
            for (key, values) in keys.iter().zip(&mut columns) {
                dict.set_item(key.bind(py), values.next_object(py).ok_or_else(too_few)?)?;
            }
            out.push(match self.form {
                TupleForm::Json(_) => super::variants::to_json(&dict)?,
                _ => dict.into_any(),
            });
        }
        Ok(())
    }

    pub fn start_block(&mut self) {
        self.elements.iter_mut().for_each(Reader::start_block);
    }

    pub fn is_atomic(&self) -> bool {
        matches!(self.form, TupleForm::Tuple) && self.elements.iter().all(Reader::is_atomic)
    }
}
