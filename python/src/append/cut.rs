//! A batch of an append, before and after it is encoded.

use std::sync::Arc;

use bytes::Bytes;
use pyo3::prelude::*;
use windrow_appender::{Cut, Encoder};

use super::errors::source_error;

/// The rows of one batch, in the arrays they came in; nothing is copied before they are encoded.
#[pyclass(frozen, module = "windrow._core")]
pub(super) struct AppendCut {
    pub(super) cut: Cut,
    pub(super) encoder: Arc<Encoder>,
}

#[pymethods]
impl AppendCut {
    #[getter]
    fn number(&self) -> u64 {
        self.cut.number
    }

    #[getter]
    fn rows(&self) -> u64 {
        self.cut.rows
    }

    /// Returns about as many bytes as the batch has when it is encoded.
    #[getter]
    fn bytes(&self) -> u64 {
        self.cut.bytes
    }

    /// Encodes the batch; called by any thread, for several batches at once.
    fn encode(&self, py: Python<'_>) -> PyResult<EncodedBatch> {
        let bytes = py.detach(|| self.encoder.encode(&self.cut)).map_err(|error| source_error(py, &error))?;
        Ok(EncodedBatch { bytes })
    }
}

/// An Arrow IPC stream, read in place.
#[pyclass(frozen, module = "windrow._core")]
pub(super) struct EncodedBatch {
    bytes: Bytes,
}

#[pymethods]
impl EncodedBatch {
    #[getter]
    fn address(&self) -> usize {
        self.bytes.as_ptr() as usize
    }

    fn __len__(&self) -> usize {
        self.bytes.len()
    }
}
