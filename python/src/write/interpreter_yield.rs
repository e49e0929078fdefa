//! The pace at which other threads get the interpreter while a large insert is encoded.
//!
//! A thread that waits for the interpreter gets it by itself only after 5 ms; so a worker steps back every
//! half millisecond, for about as long as a waiting thread needs to notice.

use std::time::{Duration, Instant};

use pyo3::prelude::*;

const TURN: Duration = Duration::from_micros(500);
const STEP_BACK: Duration = Duration::from_micros(30);

pub(super) struct InterpreterYield {
    shared: bool,
    since: Instant,
}

impl InterpreterYield {
    /// Starts the first turn. `shared` says that this is a worker thread, and others wait for the interpreter.
    pub(super) fn new(shared: bool) -> Self {
        InterpreterYield { shared, since: Instant::now() }
    }

    /// Gives the interpreter up if the turn is over. Called after every few hundred values; other Python code
    /// may run meanwhile.
    pub(super) fn now_and_then(&mut self, py: Python<'_>) -> PyResult<()> {
        if self.since.elapsed() < TURN {
            return Ok(());
        }
        if self.shared {
            py.detach(|| std::thread::sleep(STEP_BACK));
        }
        // Control-C ends a long insert of the main thread.
        py.check_signals()?;
        self.since = Instant::now();
        Ok(())
    }
}
