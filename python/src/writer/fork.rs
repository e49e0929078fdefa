//! Processes that were forked: a writer belongs to the process that opened it. In a child its threads are
//! gone, and its rows are its parent's to store.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Once;

use pyo3::prelude::*;

use super::errors;

static FORKS: AtomicU64 = AtomicU64::new(0);
static WATCH: Once = Once::new();

/// The number of forks that lie between the first process and this one. Asking for the process's number each
/// time would be a system call per row.
#[derive(Clone, Copy)]
pub(super) struct Generation(u64);

extern "C" fn count_fork() {
    FORKS.fetch_add(1, Ordering::SeqCst);
}

impl Generation {
    pub(super) fn current() -> Generation {
        // Safety: the handler does nothing but count, which is allowed in a child of a process with threads.
        WATCH.call_once(|| unsafe {
            libc::pthread_atfork(None, None, Some(count_fork));
        });
        Generation(FORKS.load(Ordering::SeqCst))
    }

    pub(super) fn is_current(self) -> bool {
        self.0 == FORKS.load(Ordering::Relaxed)
    }

    #[inline]
    pub(super) fn check(self, py: Python<'_>) -> PyResult<()> {
        match self.is_current() {
            true => Ok(()),
            false => Err(in_child(py)),
        }
    }
}

#[cold]
fn in_child(py: Python<'_>) -> PyErr {
    errors::of_class(py, "InterfaceError", "this writer was opened before the fork: open another one in this process")
}
