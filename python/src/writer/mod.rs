//! The writer: rows from Python into a `windrow_writer::Gathering`, and its batches out of it for a driver in
//! Python that sends them.
//!
//! A row goes from `write_row` to the buffer without any Python code: encoded by `write::RowEncoder`, appended under the GIL
//! (which takes a buffer's lock, held for moments). Everything else that takes the gathering's own lock runs without the GIL,
//! since callbacks under other locks (a retry policy, a buffer in Python) may need it.

mod appending;
mod awaitable;
mod buffer;
mod core;
mod decode;
mod driving;
mod errors;
mod fork;
mod options;
mod outgoing;
mod retry;
mod ticket;
mod wake;

use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;

/// Adds the classes of this module to `_core`.
///
/// # Errors
/// Fails where Python can't add a class.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<core::Writer>()?;
    module.add_class::<core::EncodedRows>()?;
    module.add_class::<driving::WriterControl>()?;
    module.add_class::<driving::CloseReport>()?;
    module.add_class::<outgoing::OutgoingBatch>()?;
    module.add_class::<errors::FailedRows>()?;
    module.add_class::<awaitable::Taken>()
}

/// Locks the mutex. A panic elsewhere leaves the data under these locks whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
