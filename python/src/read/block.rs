//! A block of a result as it was decoded, for those who want its memory rather than objects: NumPy, pandas, Arrow.

use std::sync::Arc;

use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyTuple};
use windrow_results::{ArrowOptions, Column};

use super::options::{ColumnOptions, ReadOptions};
use super::pace::Pace;
use super::reader::{unfit, Reader, Reading};
use super::rows::column_list;
use crate::arrow;

#[pyclass(frozen, module = "windrow._core")]
pub struct Block {
    pub block: Arc<windrow_results::Block>,
    options: Py<ReadOptions>,
}

impl Block {
    pub fn new(block: windrow_results::Block, options: Py<ReadOptions>) -> Block {
        Block { block: Arc::new(block), options }
    }

    fn column_at(&self, index: usize) -> PyResult<&Column> {
        self.block.columns.get(index).ok_or_else(|| PyIndexError::new_err("no such column"))
    }

    fn column_options(&self, index: usize) -> ColumnOptions<'_> {
        self.options.get().column(&self.block.header.names[index])
    }
}

#[pymethods]
impl Block {
    #[getter]
    fn rows(&self) -> usize {
        self.block.rows
    }

    #[getter]
    fn names<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.block.header.names)
    }

    #[getter]
    fn type_names<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.block.header.types.iter().map(ToString::to_string).collect::<Vec<_>>())
    }

    /// Returns the values of a column as Python objects.
    fn column<'py>(&self, py: Python<'py>, index: usize) -> PyResult<Bound<'py, PyAny>> {
        let column = self.column_at(index)?;
        let options = self.column_options(index);
        let mut reader = Reader::new(py, &self.block.header.types[index], &options)?;
        let mut pace = Pace::start();
        let mut reading = Reading { py, options, pace: &mut pace };
        column_list(&mut reader, &mut reading, column, 0..self.block.rows)
    }

    /// Returns the memory of a column, as far as its layout is one of flat arrays.
    fn parts(&self, index: usize) -> PyResult<Parts> {
        let mut parts = Parts::default();
        let mut column = self.column_at(index)?;
        if let Column::Nullable { nulls, inner } = column {
            parts.nulls = Some(self.buffer(nulls));
            column = inner;
        }
        if let Column::LowCardinality { indices, dictionary, nullable } = column {
            parts.indices = Some(self.buffer(indices));
            parts.first_is_null = *nullable;
            column = dictionary;
        }
        match column {
            Column::Fixed { data, .. } => parts.data = Some(self.buffer(data)),
            Column::Strings { offsets, data } => {
                parts.data = Some(self.buffer(data));
                parts.offsets = Some(self.buffer(offsets));
            }
            _ => {}
        }
        Ok(parts)
    }

    /// Says whether all texts of a column of `String` are valid UTF-8, and to be read as that.
    fn is_utf8(&self, py: Python<'_>, index: usize) -> PyResult<bool> {
        let mut column = self.column_at(index)?;
        if self.options.get().encoding.is_some() {
            return Ok(false);
        }
        loop {
            column = match column {
                Column::Nullable { inner, .. } => inner,
                Column::LowCardinality { dictionary, .. } => dictionary,
                Column::Strings { offsets, data } => return Ok(py.detach(|| is_text(offsets, data))),
                _ => return Err(unfit()),
            }
        }
    }

    /// Returns the format that was asked for values of a type in this column, `"native"` if none was.
    fn format(&self, index: usize, type_name: &str) -> PyResult<&'static str> {
        self.column_at(index)?;
        Ok(self.column_options(index).format(type_name).word())
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        arrow::block_schema(py, &self.block.header, &ArrowOptions::default())
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        // A wish that may be left unheard: consumers cast.
        drop(requested_schema);
        arrow::block_array(py, &self.block, &ArrowOptions::default())
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        arrow::block_stream(py, &self.block.header, vec![self.block.clone()], ArrowOptions::default())
    }

    /// Returns the zone that times of this column are shown in, None for naive ones in UTC.
    #[pyo3(signature = (index, type_zone=None))]
    fn zone(&self, py: Python<'_>, index: usize, type_zone: Option<&str>) -> PyResult<Option<Py<PyAny>>> {
        self.column_at(index)?;
        self.column_options(index).zone(py, type_zone)
    }
}

impl Block {
    fn buffer<T>(&self, values: &[T]) -> Buffer {
        Buffer {
            address: values.as_ptr() as usize,
            bytes: std::mem::size_of_val(values),
            _owner: Arc::clone(&self.block),
        }
    }
}

/// Says whether each text for itself is UTF-8. If all of them together are, a character may still be cut by a
/// text's end.
fn is_text(offsets: &[i32], data: &[u8]) -> bool {
    if data.is_ascii() {
        return true;
    }
    let Ok(text) = std::str::from_utf8(data) else { return false };
    offsets.iter().all(|offset| usize::try_from(*offset).is_ok_and(|offset| text.is_char_boundary(offset)))
}

/// The flat arrays that a column consists of. Arrays that it does not have are None.
#[derive(Default)]
#[pyclass(frozen, module = "windrow._core")]
pub struct Parts {
    /// One byte a row, 1 where the value is NULL.
    nulls: Option<Buffer>,
    /// Four bytes a row: the number of its value in the dictionary.
    indices: Option<Buffer>,
    /// Values of fixed width, or the bytes of texts.
    data: Option<Buffer>,
    /// Offsets in `data` where texts begin and end: four bytes each, one more than texts.
    offsets: Option<Buffer>,
    first_is_null: bool,
}

#[pymethods]
impl Parts {
    #[getter]
    fn nulls(&self) -> Option<Buffer> {
        self.nulls.clone()
    }

    #[getter]
    fn indices(&self) -> Option<Buffer> {
        self.indices.clone()
    }

    #[getter]
    fn data(&self) -> Option<Buffer> {
        self.data.clone()
    }

    #[getter]
    fn offsets(&self) -> Option<Buffer> {
        self.offsets.clone()
    }

    /// Says whether the first value of the dictionary stands for NULL.
    #[getter]
    fn first_is_null(&self) -> bool {
        self.first_is_null
    }
}

/// Bytes of a block, which live as long as this object. Read-only.
#[derive(Clone)]
#[pyclass(frozen, module = "windrow._core")]
pub struct Buffer {
    address: usize,
    bytes: usize,
    _owner: Arc<windrow_results::Block>,
}

#[pymethods]
impl Buffer {
    #[getter]
    fn address(&self) -> usize {
        self.address
    }

    fn __len__(&self) -> usize {
        self.bytes
    }

    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let interface = PyDict::new(py);
        interface.set_item("data", (self.address, true))?;
        interface.set_item("shape", (self.bytes,))?;
        interface.set_item("typestr", "|u1")?;
        interface.set_item("version", 3)?;
        Ok(interface)
    }
}
