//! The capsules' names, and the functions that make their contents.

use std::ffi::CStr;
use std::sync::Arc;

use arrow_array::ffi::FFI_ArrowSchema;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use windrow_results::{arrow_array, arrow_schema, arrow_stream, ArrowOptions, Block, Header};

use super::errors::refused;

pub(crate) const SCHEMA: &CStr = c"arrow_schema";
pub(crate) const ARRAY: &CStr = c"arrow_array";
pub(crate) const STREAM: &CStr = c"arrow_array_stream";

/// Makes a struct of a block's columns, for `__arrow_c_schema__`.
///
/// # Errors
/// Fails where a column's type has no form in Arrow.
pub fn block_schema<'py>(py: Python<'py>, header: &Header, options: &ArrowOptions) -> PyResult<Bound<'py, PyCapsule>> {
    let schema = arrow_schema(header, options).map_err(|error| refused(py, error))?;
    let schema = FFI_ArrowSchema::try_from(schema).map_err(|error| PyValueError::new_err(error.to_string()))?;
    PyCapsule::new_with_value(py, schema, SCHEMA)
}

/// Makes the schema and the struct array of a block, for `__arrow_c_array__`.
///
/// # Errors
/// Fails where a column's type has no form in Arrow.
pub fn block_array<'py>(
    py: Python<'py>,
    block: &Arc<Block>,
    options: &ArrowOptions,
) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
    let array = py.detach(|| arrow_array(block, options)).map_err(|error| refused(py, error))?;
    Ok((block_schema(py, &block.header, options)?, PyCapsule::new_with_value(py, array, ARRAY)?))
}

/// Makes a stream of blocks that have one header, for `__arrow_c_stream__`.
///
/// # Errors
/// Fails where a column's type has no form in Arrow, or a block has other columns than the header.
pub fn block_stream<'py>(
    py: Python<'py>,
    header: &Arc<Header>,
    blocks: Vec<Arc<Block>>,
    options: ArrowOptions,
) -> PyResult<Bound<'py, PyCapsule>> {
    let stream = arrow_stream(header, blocks, options).map_err(|error| refused(py, error))?;
    PyCapsule::new_with_value(py, stream, STREAM)
}
