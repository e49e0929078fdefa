//! The body of an answer as Python sees it.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::queue::{BodyQueue, OnDrained};

/// The size up to which bodies are taken at once; for more, others may have the interpreter meanwhile.
const ATTACHED_BYTES: usize = 16 << 10;

#[pyclass(frozen, module = "windrow._core")]
pub struct Body {
    queue: Arc<BodyQueue>,
}

impl Body {
    pub fn new(queue: Arc<BodyQueue>) -> Self {
        Self { queue }
    }

    pub fn queue(&self) -> &Arc<BodyQueue> {
        &self.queue
    }

    fn taken(&self, py: Python<'_>, max_bytes: usize, partly: bool) -> PyResult<Vec<u8>> {
        let take = || {
            let mut out = Vec::new();
            // It may end at a segment's end, with the next one already there.
            while out.len() < max_bytes {
                let room = max_bytes - out.len();
                match self.queue.take(&mut out, room) {
                    Ok(taken) if taken.bytes == 0 || taken.ended => break,
                    Ok(_) => {}
                    // The error is there next time, too.
                    Err(_) if partly && !out.is_empty() => break,
                    Err(error) => return Err(error.into()),
                }
            }
            Ok(out)
        };
        if self.queue.buffered() <= ATTACHED_BYTES && max_bytes <= ATTACHED_BYTES {
            take()
        } else {
            py.detach(take)
        }
    }
}

#[pymethods]
impl Body {
    /// Makes a whole body of these raw bytes, for decoders that are fed by hand.
    #[staticmethod]
    #[pyo3(signature = (data, content_encoding=None, exception_tag=None))]
    fn of_bytes(data: &[u8], content_encoding: Option<&str>, exception_tag: Option<&str>) -> Self {
        let queue = BodyQueue::new(usize::MAX, content_encoding, exception_tag);
        queue.append(data);
        queue.end();
        Self::new(Arc::new(queue))
    }

    #[getter]
    fn buffered(&self) -> usize {
        self.queue.buffered()
    }

    #[getter]
    fn most_buffered(&self) -> usize {
        self.queue.most_buffered()
    }

    #[getter]
    fn given_bytes(&self) -> u64 {
        self.queue.given_bytes()
    }

    #[getter]
    fn ended(&self) -> bool {
        self.queue.ended()
    }

    #[getter]
    fn compressed(&self) -> bool {
        self.queue.is_compressed()
    }

    fn unbound(&self) {
        self.queue.unbound();
    }

    fn on_drained(&self, py: Python<'_>, callback: Option<Py<PyAny>>) {
        let callback = callback.map(|callback| -> OnDrained {
            Box::new(move || {
                Python::attach(|py| {
                    if let Err(error) = callback.call0(py) {
                        // The loop that wanted to know has been closed: nobody is left to be told.
                        error.write_unraisable(py, Some(callback.bind(py)));
                    }
                })
            })
        });
        py.detach(|| self.queue.set_on_drained(callback));
    }

    fn read<'py>(&self, py: Python<'py>, max_bytes: usize) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.taken(py, max_bytes, true)?))
    }

    fn read_all<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.taken(py, usize::MAX, false)?))
    }

    fn fail(&self, reason: String) {
        self.queue.fail(reason);
    }

    fn exception_text(&self, py: Python<'_>) -> Option<String> {
        py.detach(|| self.queue.exception_text())
    }
}
