//! Compression of a request's body.

use std::sync::{Mutex, PoisonError};

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use windrow_compression::{Encoding, StreamCompressor};

/// The compressor of one body. It is thread-safe, but takes pieces in their order.
#[pyclass(frozen, module = "windrow._core")]
pub struct Compressor {
    stream: Mutex<Option<StreamCompressor>>,
}

#[pymethods]
impl Compressor {
    #[new]
    fn new(encoding: &str) -> PyResult<Self> {
        let known = Encoding::from_content_encoding(encoding).map(StreamCompressor::new).transpose()?.flatten();
        let stream = known.ok_or_else(|| {
            PyValueError::new_err(format!("bodies can't be compressed as {encoding:?}: use lz4, zstd, gzip or deflate"))
        })?;
        Ok(Self { stream: Mutex::new(Some(stream)) })
    }

    /// Compresses a piece. Returns the bytes that can be sent now, which may be none yet.
    fn step<'py>(&self, py: Python<'py>, data: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
        let compressed = py.detach(|| {
            let mut stream = self.stream.lock().unwrap_or_else(PoisonError::into_inner);
            Ok::<_, PyErr>(stream.as_mut().ok_or_else(finished)?.step(data)?)
        })?;
        Ok(PyBytes::new(py, &compressed))
    }

    /// Returns the rest, with the body's end.
    fn finish<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let compressed = py.detach(|| {
            let stream = self.stream.lock().unwrap_or_else(PoisonError::into_inner).take();
            Ok::<_, PyErr>(stream.ok_or_else(finished)?.finish()?)
        })?;
        Ok(PyBytes::new(py, &compressed))
    }
}

fn finished() -> PyErr {
    PyRuntimeError::new_err("this body is finished")
}
