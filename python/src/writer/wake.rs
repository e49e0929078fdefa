//! The ways in which Rust's threads and callbacks wake Python: an event loop by `call_soon_threadsafe`,
//! threads by a condition.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use pyo3::prelude::*;

use super::lock;
use super::ticket::Outcome;

/// Futures of one loop that have come to their end, settled there together.
pub(super) struct Finished {
    event_loop: Py<PyAny>,
    futures: Mutex<Vec<(Py<PyAny>, Outcome)>>,
}

impl Finished {
    pub(super) fn new(event_loop: Py<PyAny>) -> Finished {
        Finished { event_loop, futures: Mutex::default() }
    }

    pub(super) fn new_future(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.event_loop.call_method0(py, pyo3::intern!(py, "create_future"))
    }

    pub(super) fn push(self: &Arc<Self>, future: Py<PyAny>, outcome: Outcome) {
        let is_first = {
            let mut futures = lock(&self.futures);
            futures.push((future, outcome));
            futures.len() == 1
        };
        if is_first {
            Python::try_attach(|py| {
                let settle = Settle { finished: self.clone() };
                let call = Py::new(py, settle).and_then(|settle| self.call_soon(py, settle.into_any()));
                // A loop that is closed has nobody left who waits.
                drop(call);
            });
        }
    }

    fn call_soon(&self, py: Python<'_>, call: Py<PyAny>) -> PyResult<()> {
        self.event_loop.call_method1(py, pyo3::intern!(py, "call_soon_threadsafe"), (call,)).map(drop)
    }
}

/// A callback that settles the futures; called on the loop.
#[pyclass(frozen, module = "windrow._core")]
struct Settle {
    finished: Arc<Finished>,
}

#[pymethods]
impl Settle {
    fn __call__(&self, py: Python<'_>) -> PyResult<()> {
        let futures = std::mem::take(&mut *lock(&self.finished.futures));
        for (future, outcome) in futures {
            let future = future.bind(py);
            if future.call_method0(pyo3::intern!(py, "done"))?.is_truthy()? {
                continue;
            }
            match outcome {
                Ok(()) => future.call_method1(pyo3::intern!(py, "set_result"), (py.None(),))?,
                Err(trouble) => {
                    future.call_method1(pyo3::intern!(py, "set_exception"), (trouble.into_pyerr(py).into_value(py),))?
                }
            };
        }
        Ok(())
    }
}

/// A waker of the driver of a writer.
#[derive(Default)]
pub(super) struct Waker {
    /// The event loop of an asynchronous writer, and the function that is called in it. They are given back at the end:
    /// they refer to the writer, which Python would never free.
    on_loop: Mutex<Option<(Py<PyAny>, Py<PyAny>)>>,
    is_called: AtomicBool,
    /// The number of times that the driver was woken, for threads.
    count: Mutex<u64>,
    changed: Condvar,
}

impl Waker {
    pub(super) fn set(&self, event_loop: Py<PyAny>, call: Py<PyAny>) {
        *lock(&self.on_loop) = Some((event_loop, call));
    }

    pub(super) fn clear(&self) {
        let call = lock(&self.on_loop).take();
        drop(call);
    }

    pub(super) fn wake(&self) {
        *lock(&self.count) += 1;
        self.changed.notify_all();
        if self.is_called.load(Ordering::SeqCst) {
            return;
        }
        Python::try_attach(|py| {
            let call = lock(&self.on_loop).as_ref().map(|(on, call)| (on.clone_ref(py), call.clone_ref(py)));
            let Some((event_loop, call)) = call else { return };
            if !self.is_called.swap(true, Ordering::SeqCst) {
                let outcome = event_loop.call_method1(py, pyo3::intern!(py, "call_soon_threadsafe"), (call,));
                // A loop that is closed drives nothing any more.
                drop(outcome);
            }
        });
    }

    /// Notes that the driver looks now: events from here on are worth another call.
    pub(super) fn looks(&self) {
        self.is_called.store(false, Ordering::SeqCst);
    }

    pub(super) fn count(&self) -> u64 {
        *lock(&self.count)
    }

    /// Waits until the driver was woken more often than `seen`, or so long.
    pub(super) fn wait(&self, seen: u64, limit: Duration) {
        let deadline = Instant::now() + limit;
        let mut count = lock(&self.count);
        while *count == seen {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            count = self.changed.wait_timeout(count, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}
