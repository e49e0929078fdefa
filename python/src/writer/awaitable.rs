//! The answer of an asynchronous writer's `write_row` when there is nothing to wait for: one object, shared
//! by all calls.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

/// An awaitable that is finished. It may be awaited any number of times, by anyone.
#[pyclass(frozen, module = "windrow._core")]
pub(super) struct Taken;

#[pymethods]
impl Taken {
    fn __await__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    /// Ends at once: the awaiting task isn't even suspended.
    fn __next__(&self) -> Option<()> {
        None
    }
}

pub(super) fn taken(py: Python<'_>) -> PyResult<Py<PyAny>> {
    static SHARED: PyOnceLock<Py<Taken>> = PyOnceLock::new();
    let shared = SHARED.get_or_try_init(py, || Py::new(py, Taken))?;
    Ok(shared.clone_ref(py).into_any())
}
