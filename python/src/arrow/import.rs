//! Columns to insert out of any object that hands out Arrow (pyarrow, polars, pandas, DuckDB).

use std::ffi::CStr;
use std::ops::Range;
use std::panic::{catch_unwind, AssertUnwindSafe};

use arrow_array::ffi::{from_ffi_and_data_type, FFI_ArrowArray, FFI_ArrowSchema};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_schema::DataType as ArrowType;
use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyTuple};
use windrow_columns::DataType;
use windrow_results::ArrowColumn;

use super::capsules::{ARRAY, SCHEMA, STREAM};

/// Deepest nesting that is followed. Arrow's own types are seldom nested deeper than a few.
const MAX_DEPTH: usize = 64;

/// One column or a whole table; made by [`columns_of`].
#[pyclass(frozen, module = "windrow._core")]
pub struct ArrowColumns {
    pub column: ArrowColumn,
}

/// Imports the Arrow data of an object with `__arrow_c_stream__` or `__arrow_c_array__`. Returns `None` if
/// the object has neither, or Arrow that is not read here.
///
/// # Errors
/// Fails where the object's method raises, hands out something else or what was taken already, or its stream
/// can't be read.
pub fn columns_of(given: &Bound<'_, PyAny>) -> PyResult<Option<ArrowColumn>> {
    let py = given.py();
    if let Some(method) = given.getattr_opt(intern!(py, "__arrow_c_stream__"))? {
        return of_stream(&method.call0()?.cast_into::<PyCapsule>()?);
    }
    match given.getattr_opt(intern!(py, "__arrow_c_array__"))? {
        Some(method) => of_array(&method.call0()?.cast_into::<PyTuple>()?),
        None => Ok(None),
    }
}

fn of_stream(capsule: &Bound<'_, PyCapsule>) -> PyResult<Option<ArrowColumn>> {
    let stream = capsule.pointer_checked(Some(STREAM))?.cast::<FFI_ArrowArrayStream>();
    // SAFETY: a capsule of this name holds a stream, which is moved out of it; the capsule then has nothing to release.
    let mut stream = unsafe { FFI_ArrowArrayStream::from_raw(stream.as_ptr()) };
    let (mut schema, mut arrays) = (FFI_ArrowSchema::empty(), Vec::new());
    let (Some(get_schema), Some(get_next)) = (stream.get_schema(), stream.get_next()) else { return Err(released()) };
    // SAFETY: the functions are the stream's own, called one after the other, with room for what they write.
    unsafe {
        match get_schema(&mut stream, &mut schema) {
            0 => {}
            code => return Err(broken(&mut stream, code)),
        }
        loop {
            let mut array = FFI_ArrowArray::empty();
            match get_next(&mut stream, &mut array) {
                0 if array.is_released() => return Ok(imported(&schema, arrays)),
                0 => arrays.push(array),
                code => return Err(broken(&mut stream, code)),
            }
        }
    }
}

fn of_array(capsules: &Bound<'_, PyTuple>) -> PyResult<Option<ArrowColumn>> {
    let (schema, array): (Bound<'_, PyCapsule>, Bound<'_, PyCapsule>) = capsules.extract()?;
    let schema = schema.pointer_checked(Some(SCHEMA))?.cast::<FFI_ArrowSchema>();
    let array = array.pointer_checked(Some(ARRAY))?.cast::<FFI_ArrowArray>();
    // SAFETY: capsules of these names hold a schema and an array of it; the array is moved out of its capsule, the schema stays.
    let (schema, array) = unsafe { (schema.as_ref(), FFI_ArrowArray::from_raw(array.as_ptr())) };
    match schema.release().is_none() || array.is_released() {
        true => Err(released()),
        // SAFETY: both are as their maker left them.
        false => Ok(unsafe { imported(schema, vec![array]) }),
    }
}

/// Takes arrays of a schema. Returns `None` where Arrow's own library doesn't: it knows no types of others'
/// invention, and takes some liberties of other libraries for a mistake, at which it may panic.
///
/// # Safety
/// Both are as Arrow's C data interface says, and neither was released.
unsafe fn imported(schema: &FFI_ArrowSchema, arrays: Vec<FFI_ArrowArray>) -> Option<ArrowColumn> {
    let import = || {
        let data_type = is_flat(schema, 0).then(|| ArrowType::try_from(schema))?.ok()?;
        let arrays = arrays.into_iter().map(|array| {
            // SAFETY: by this function's own contract.
            unsafe { from_ffi_and_data_type(array, data_type.clone()) }
        });
        Some(ArrowColumn::new(data_type.clone(), arrays.collect::<Result<_, _>>().ok()?))
    };
    catch_unwind(AssertUnwindSafe(import)).ok().flatten()
}

/// Says whether types are nested so little that recursion can follow them.
fn is_flat(schema: &FFI_ArrowSchema, depth: usize) -> bool {
    depth <= MAX_DEPTH && schema.children().chain(schema.dictionary()).all(|child| is_flat(child, depth + 1))
}

fn released() -> PyErr {
    PyValueError::new_err("What was given as Arrow was taken by somebody else before")
}

/// Returns the error that a stream tells of itself.
///
/// # Safety
/// The last call of one of the stream's functions returned this code.
unsafe fn broken(stream: &mut FFI_ArrowArrayStream, code: i32) -> PyErr {
    let said = stream.get_last_error().and_then(|get_last_error| {
        // SAFETY: by this function's own contract; it is null, or a text that ends with a zero.
        unsafe {
            let text = get_last_error(stream);
            (!text.is_null()).then(|| CStr::from_ptr(text).to_string_lossy().into_owned())
        }
    });
    PyValueError::new_err(said.unwrap_or_else(|| format!("error {code} of the Arrow stream")))
}

#[pymethods]
impl ArrowColumns {
    /// Makes columns of an object. Returns None if it holds no Arrow, or Arrow that is not read here.
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
