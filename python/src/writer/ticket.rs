//! A ticket for one call that waits: for room, for the buffer's promise, or for its rows to be stored. It
//! ends when all of its parts have reported, with the first error that any of them had; an asyncio future, a
//! thread's future or a thread is told.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use pyo3::intern;
use pyo3::prelude::*;
use windrow_writer::{AppendError, BufferError, WriteError};

use super::errors;
use super::lock;
use super::wake::Finished;

/// The reason why a call failed.
#[derive(Clone)]
pub(super) enum Trouble {
    Write(Arc<WriteError>),
    Buffer(BufferError),
    TooLarge(String),
    Closed,
}

impl From<AppendError> for Trouble {
    fn from(error: AppendError) -> Self {
        match error {
            AppendError::Failed(error) => Trouble::Buffer(error),
            AppendError::Closed => Trouble::Closed,
            AppendError::TooLarge { .. } | AppendError::Full => Trouble::TooLarge(error.to_string()),
        }
    }
}

impl Trouble {
    pub(super) fn into_pyerr(self, py: Python<'_>) -> PyErr {
        match self {
            Trouble::Write(error) => errors::of_rows(py, &error),
            Trouble::Buffer(error) => errors::of_class(py, "OperationalError", &error.to_string()),
            Trouble::TooLarge(text) => errors::of_class(py, "DataError", &text),
            Trouble::Closed => errors::of_class(py, "InterfaceError", "the writer is closed"),
        }
    }
}

pub(super) type Outcome = Result<(), Trouble>;

/// The receiver of a call's outcome.
pub(super) enum Listener {
    /// An asyncio future; it is settled on its loop.
    Loop {
        future: Py<PyAny>,
        finished: Arc<Finished>,
    },
    /// A `concurrent.futures.Future`.
    Future(Py<PyAny>),
    Thread(Arc<ThreadWaiter>),
}

pub(super) struct Ticket {
    /// The number of parts that have not reported, and one for the call itself, which may have more parts to come.
    left: AtomicUsize,
    state: Mutex<TicketState>,
}

struct TicketState {
    trouble: Option<Trouble>,
    listener: Option<Listener>,
}

impl Ticket {
    pub(super) fn new(listener: Listener) -> Arc<Ticket> {
        let state = TicketState { trouble: None, listener: Some(listener) };
        Arc::new(Ticket { left: AtomicUsize::new(1), state: Mutex::new(state) })
    }

    pub(super) fn add_part(&self) {
        self.left.fetch_add(1, Ordering::SeqCst);
    }

    /// Reports that a part, or the call itself, has come to its end.
    pub(super) fn report(&self, outcome: Outcome) {
        let mut state = lock(&self.state);
        if let Err(trouble) = outcome {
            state.trouble.get_or_insert(trouble);
        }
        if self.left.fetch_sub(1, Ordering::SeqCst) > 1 {
            return;
        }
        let outcome = state.trouble.take().map_or(Ok(()), Err);
        let Some(listener) = state.listener.take() else { return };
        drop(state);
        match listener {
            Listener::Loop { future, finished } => finished.push(future, outcome),
            Listener::Future(future) => settle_thread_future(future, outcome),
            Listener::Thread(waiter) => waiter.end(outcome),
        }
    }
}

fn settle_thread_future(future: Py<PyAny>, outcome: Outcome) {
    // None while the interpreter goes down: then nobody waits.
    Python::try_attach(|py| {
        let future = future.bind(py);
        let told = match outcome {
            Ok(()) => future.call_method1(intern!(py, "set_result"), (py.None(),)),
            Err(trouble) => future.call_method1(intern!(py, "set_exception"), (trouble.into_pyerr(py).into_value(py),)),
        };
        // Somebody has settled or cancelled it: it is his.
        drop(told);
    });
}

/// A thread that waits.
#[derive(Default)]
pub(super) struct ThreadWaiter {
    outcome: Mutex<Option<Outcome>>,
    has_ended: Condvar,
}

/// The time after which a waiting thread looks again whether Ctrl-C was pressed.
const SIGNAL_CHECK: Duration = Duration::from_millis(100);

impl ThreadWaiter {
    pub(super) fn end(&self, outcome: Outcome) {
        *lock(&self.outcome) = Some(outcome);
        self.has_ended.notify_all();
    }

    /// Waits without the GIL. A signal's exception ends the wait; the work that is waited for goes on.
    pub(super) fn wait(&self, py: Python<'_>) -> PyResult<Outcome> {
        loop {
            let outcome = py.detach(|| {
                let outcome = lock(&self.outcome);
                let waited = self.has_ended.wait_timeout_while(outcome, SIGNAL_CHECK, |outcome| outcome.is_none());
                waited.unwrap_or_else(PoisonError::into_inner).0.take()
            });
            match outcome {
                Some(outcome) => return Ok(outcome),
                None => py.check_signals()?,
            }
        }
    }
}
