//! Giving the interpreter up now and then while objects are made in bulk.
//!
//! A thread that wants the interpreter gets it by itself only after 5 ms of waiting. A worker that turns a large result into
//! objects would so hold up every task of the event loop; it therefore steps back after each half millisecond, long enough for
//! a waiting thread to wake up and take over.

use std::time::{Duration, Instant};

use pyo3::prelude::*;

const TURN: Duration = Duration::from_micros(400);
/// A thread that waits needs about this long to notice that it can go on.
const STEP_BACK: Duration = Duration::from_micros(30);

pub struct Pace {
    shared: bool,
    since: Instant,
}

impl Pace {
    /// `shared`: other threads of the program wait for this one.
    pub fn new(shared: bool) -> Pace {
        Pace { shared, since: Instant::now() }
    }

    /// To be called after every few hundred objects, when what is half made can be seen by nobody.
    pub fn breathe(&mut self, py: Python<'_>) -> PyResult<()> {
        if self.since.elapsed() < TURN {
            return Ok(());
        }
        if self.shared {
            py.detach(|| std::thread::sleep(STEP_BACK));
        }
        // Control-C ends a long conversion of the main thread.
        py.check_signals()?;
        self.since = Instant::now();
        Ok(())
    }
}
