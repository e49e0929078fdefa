//! Arrow data of other libraries, taken over Arrow's C data interface as a source of record batches.

use arrow_array::ffi::{from_ffi_and_data_type, FFI_ArrowArray, FFI_ArrowSchema};
use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use arrow_array::{RecordBatch, RecordBatchOptions, StructArray};
use arrow_schema::{ArrowError, DataType, SchemaRef};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};
use windrow_appender::{BatchesSource, ReaderSource, Source, SourceError};

use super::errors::{data_error, source_error};
use crate::arrow::{ARRAY, SCHEMA, STREAM};

/// The number of pieces that are cut in some microseconds.
const FEW_BATCHES: usize = 256;

pub(super) struct Given {
    pub(super) source: Box<dyn Source>,
    /// True if all rows are there, in few pieces.
    pub(super) is_quick: bool,
}

/// Makes a source of `given`, which has `__arrow_c_stream__` or `__arrow_c_array__`. Rows that are in memory as a
/// whole are taken at once, so that their size is known; others stay with their owner until they are asked for.
pub(super) fn source_of(given: &Bound<'_, PyAny>, in_memory: bool) -> PyResult<Given> {
    let py = given.py();
    if let Some(method) = given.getattr_opt(intern!(py, "__arrow_c_array__"))? {
        return of_array(&method.call0()?.cast_into::<PyTuple>()?);
    }
    let stream = given.call_method0(intern!(py, "__arrow_c_stream__"))?.cast_into::<PyCapsule>()?;
    of_stream(&stream, in_memory)
}

fn of_stream(capsule: &Bound<'_, PyCapsule>, in_memory: bool) -> PyResult<Given> {
    let py = capsule.py();
    let stream = capsule.pointer_checked(Some(STREAM))?.cast::<FFI_ArrowArrayStream>();
    // SAFETY: a capsule of this name holds a stream, which is moved out of it; the capsule then has nothing to release.
    let reader = unsafe { RecordBatchStreamReader::from_raw(stream.as_ptr()) };
    let reader = reader.map_err(|error| refused(py, &error))?;
    if !in_memory {
        return Ok(Given { source: Box::new(ReaderSource::new(Box::new(reader))), is_quick: false });
    }
    let given = py.detach(|| {
        let schema = arrow_array::RecordBatchReader::schema(&reader);
        let batches: Vec<RecordBatch> = reader.collect::<Result<_, _>>().map_err(SourceError::new)?;
        let is_quick = batches.len() <= FEW_BATCHES;
        Ok(Given { source: Box::new(BatchesSource::new(schema, batches)?), is_quick })
    });
    given.map_err(|error| source_error(py, &error))
}

fn of_array(capsules: &Bound<'_, PyTuple>) -> PyResult<Given> {
    let py = capsules.py();
    let (schema, array): (Bound<'_, PyCapsule>, Bound<'_, PyCapsule>) = capsules.extract()?;
    let schema = schema.pointer_checked(Some(SCHEMA))?.cast::<FFI_ArrowSchema>();
    let array = array.pointer_checked(Some(ARRAY))?.cast::<FFI_ArrowArray>();
    // SAFETY: capsules of these names hold a schema and an array of it; the array is moved out of its capsule, the schema stays.
    let batch = unsafe {
        let array = FFI_ArrowArray::from_raw(array.as_ptr());
        batch_of(schema.as_ref(), array)
    };
    let (schema, batch) = batch.map_err(|error| refused(py, &error))?;
    let source = BatchesSource::new(schema, vec![batch]).map_err(|error| source_error(py, &error))?;
    Ok(Given { source: Box::new(source), is_quick: true })
}

/// Imports a struct array as a record batch.
///
/// # Safety
/// The array has the type that the schema says.
unsafe fn batch_of(schema: &FFI_ArrowSchema, array: FFI_ArrowArray) -> Result<(SchemaRef, RecordBatch), ArrowError> {
    let columns = SchemaRef::new(arrow_schema::Schema::try_from(schema)?);
    let data_type = DataType::Struct(columns.fields().clone());
    // SAFETY: by this function's own contract.
    let data = unsafe { from_ffi_and_data_type(array, data_type)? };
    let rows = data.len();
    let (_, arrays, nulls) = StructArray::from(data).into_parts();
    if nulls.is_some_and(|nulls| nulls.null_count() > 0) {
        return Err(ArrowError::CDataInterface("there are NULLs among the rows themselves".to_string()));
    }
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    let batch = RecordBatch::try_new_with_options(columns.clone(), arrays, &options)?;
    Ok((columns, batch))
}

fn refused(py: Python<'_>, error: &ArrowError) -> PyErr {
    data_error(py, &format!("What was given as Arrow can't be read: {error}"))
}
