//! Blocks of one result as one Arrow stream.

use std::sync::Arc;

use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use windrow_results::{ArrowOptions, Block, Header};

use super::capsules::{block_schema, block_stream};
use crate::read;

#[pyclass(frozen, module = "windrow._core")]
pub struct ArrowStream {
    header: Arc<Header>,
    blocks: Vec<Arc<Block>>,
    options: ArrowOptions,
}

#[pymethods]
impl ArrowStream {
    #[new]
    #[pyo3(signature = (blocks, *, string_as_string=true, low_cardinality_as_dictionary=false, timezone="UTC", columns=None))]
    fn new(
        blocks: Vec<Bound<'_, read::Block>>,
        string_as_string: bool,
        low_cardinality_as_dictionary: bool,
        timezone: &str,
        columns: Option<Vec<usize>>,
    ) -> PyResult<ArrowStream> {
        let timezone = timezone.to_string();
        let options = ArrowOptions { string_as_string, low_cardinality_as_dictionary, timezone, columns };
        let blocks: Vec<_> = blocks.iter().map(|block| block.get().block.clone()).collect();
        let first = blocks.first().ok_or_else(|| PyValueError::new_err("a stream of no blocks has no schema"))?;
        let header = first.header.clone();
        match options.columns.iter().flatten().find(|column| **column >= header.names.len()) {
            Some(missing) => Err(PyIndexError::new_err(format!("there is no column {missing}"))),
            None => Ok(ArrowStream { header, blocks, options }),
        }
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        block_schema(py, &self.header, &self.options)
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // A wish that may be left unheard: consumers cast.
        drop(requested_schema);
        block_stream(py, &self.header, self.blocks.clone(), self.options.clone())
    }
}
