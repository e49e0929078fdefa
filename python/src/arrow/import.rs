//! Columns to insert out of any object that hands out Arrow (pyarrow, polars, pandas, DuckDB).

use std::ops::Range;

use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyTuple};
use windrow_columns::DataType;
use windrow_results::{ArrowArray, ArrowArrayStream, ArrowSchema};

use super::capsules::{ARRAY, SCHEMA, STREAM};

/// One column or a whole table; made by [`columns_of`].
#[pyclass(frozen, module = "windrow._core")]
pub struct ArrowColumns {
    pub column: windrow_results::ArrowColumn,
}

/// Imports the Arrow data of an object with `__arrow_c_stream__` or `__arrow_c_array__`. Returns `None` if
/// the object has neither, or its types are unknown here.
///
/// # Errors
/// Fails where the object's method raises, hands out something else, or its stream can't be read.
pub fn columns_of(given: &Bound<'_, PyAny>) -> PyResult<Option<windrow_results::ArrowColumn>> {
    let py = given.py();
    if let Some(method) = given.getattr_opt(intern!(py, "__arrow_c_stream__"))? {
        return of_stream(&method.call0()?.cast_into::<PyCapsule>()?);
    }
    match given.getattr_opt(intern!(py, "__arrow_c_array__"))? {
        Some(method) => of_array(&method.call0()?.cast_into::<PyTuple>()?),
        None => Ok(None),
    }
}

fn of_stream(capsule: &Bound<'_, PyCapsule>) -> PyResult<Option<windrow_results::ArrowColumn>> {
    let stream = capsule.pointer_checked(Some(STREAM))?.cast::<ArrowArrayStream>();
    // SAFETY: a capsule of this name holds a stream, which is read by the one who got it. The capsule releases it.
    let column = unsafe { windrow_results::ArrowColumn::of_stream(&mut *stream.as_ptr()) };
    Ok(column.map_err(PyValueError::new_err)?.ok())
}

fn of_array(capsules: &Bound<'_, PyTuple>) -> PyResult<Option<windrow_results::ArrowColumn>> {
    let (schema, array): (Bound<'_, PyCapsule>, Bound<'_, PyCapsule>) = capsules.extract()?;
    let schema = schema.pointer_checked(Some(SCHEMA))?.cast::<ArrowSchema>();
    let array = array.pointer_checked(Some(ARRAY))?.cast::<ArrowArray>();
    // SAFETY: capsules of these names hold a schema and an array; the array is moved out of its capsule, the schema stays.
    let column = unsafe {
        let array = ArrowArray::taken_from(array.as_ptr());
        windrow_results::ArrowColumn::of_array(&*schema.as_ptr(), array)
    };
    Ok(column.ok())
}

#[pymethods]
impl ArrowColumns {
    /// Makes columns of an object. Returns None if it holds no Arrow, or Arrow of types that are not known here.
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
