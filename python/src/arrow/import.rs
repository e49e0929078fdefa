//! Columns to insert out of any object that hands out Arrow (pyarrow, polars, pandas, DuckDB).

use std::ops::Range;

use arrow_array::ffi::{from_ffi, FFI_ArrowArray, FFI_ArrowSchema};
use arrow_array::ffi_stream::{ArrayStreamReader, FFI_ArrowArrayStream};
use arrow_array::{Array, ArrayReader};
use arrow_schema::ArrowError;
use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyTuple};
use windrow_columns::DataType;
use windrow_results::ArrowColumn;

use super::capsules::{ARRAY, SCHEMA, STREAM};

/// One column or a whole table; made by [`columns_of`].
#[pyclass(frozen, module = "windrow._core")]
pub struct ArrowColumns {
    pub column: ArrowColumn,
}

/// Imports the Arrow data of an object with `__arrow_c_stream__` or `__arrow_c_array__`. Returns `None` if
/// the object has neither.
///
/// # Errors
/// Fails where the object's method raises, hands out something else, or what it hands out can't be read.
pub fn columns_of(given: &Bound<'_, PyAny>) -> PyResult<Option<ArrowColumn>> {
    let py = given.py();
    if let Some(method) = given.getattr_opt(intern!(py, "__arrow_c_stream__"))? {
        return of_stream(&method.call0()?.cast_into::<PyCapsule>()?).map(Some);
    }
    match given.getattr_opt(intern!(py, "__arrow_c_array__"))? {
        Some(method) => of_array(&method.call0()?.cast_into::<PyTuple>()?).map(Some),
        None => Ok(None),
    }
}

fn of_stream(capsule: &Bound<'_, PyCapsule>) -> PyResult<ArrowColumn> {
    let stream = capsule.pointer_checked(Some(STREAM))?.cast::<FFI_ArrowArrayStream>();
    // SAFETY: a capsule of this name holds a stream, which is moved out of it; the capsule then has nothing to release.
    let reader = unsafe { ArrayStreamReader::from_raw(stream.as_ptr()) }.map_err(unreadable)?;
    let data_type = reader.field().data_type().clone();
    let arrays = reader.map(|array| array.map(|array| array.to_data())).collect::<Result<_, _>>();
    Ok(ArrowColumn::new(data_type, arrays.map_err(unreadable)?))
}

fn of_array(capsules: &Bound<'_, PyTuple>) -> PyResult<ArrowColumn> {
    let (schema, array): (Bound<'_, PyCapsule>, Bound<'_, PyCapsule>) = capsules.extract()?;
    let schema = schema.pointer_checked(Some(SCHEMA))?.cast::<FFI_ArrowSchema>();
    let array = array.pointer_checked(Some(ARRAY))?.cast::<FFI_ArrowArray>();
    // SAFETY: capsules of these names hold a schema and an array of it; the array is moved out of its capsule, the schema stays.
    let array = unsafe { from_ffi(FFI_ArrowArray::from_raw(array.as_ptr()), schema.as_ref()) };
    let array = array.map_err(unreadable)?;
    Ok(ArrowColumn::new(array.data_type().clone(), vec![array]))
}

fn unreadable(error: ArrowError) -> PyErr {
    PyValueError::new_err(format!("What was given as Arrow can't be read: {error}"))
}

#[pymethods]
impl ArrowColumns {
    /// Makes columns of an object. Returns None if it holds no Arrow.
    #[staticmethod]
    fn of(given: &Bound<'_, PyAny>) -> PyResult<Option<ArrowColumns>> {
        Ok(columns_of(given)?.map(|column| ArrowColumns { column }))
    }

    #[getter]
    fn rows(&self) -> usize {
        self.column.rows()
    }

    /// Returns the names of a table's columns; None for a single column.
    #[getter]
    fn names(&self) -> Option<Vec<String>> {
        self.column.names()
    }

    /// Returns a column of a table.
    fn column(&self, index: usize) -> Option<ArrowColumns> {
        self.column.column(index).map(|column| ArrowColumns { column })
    }

    /// Returns the data of the rows in a Native block. Returns None if only a look at every value can tell
    /// whether they fit.
    fn data<'py>(
        &self,
        py: Python<'py>,
        type_name: &str,
        start: usize,
        stop: usize,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let of = DataType::parse_result(type_name).map_err(|error| PyValueError::new_err(error.to_string()))?;
        let rows: Range<usize> = start..stop;
        let data = py.detach(|| {
            let mut data = Vec::new();
            self.column.put(&of, rows, &mut data).map(|()| data)
        });
        Ok(data.ok().map(|data| PyBytes::new(py, &data)))
    }
}
