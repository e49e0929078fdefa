//! The pace at which a thread gives the interpreter up while it makes objects in bulk.
//!
//! A thread that wants the interpreter gets it by itself only after 5 ms of waiting. A worker that turns a
//! large result into objects would so hold up every task of the event loop. It therefore steps back after
//! about half a millisecond, long enough for a waiting thread to wake up and take over. The main thread
//! needn't: it has an event loop of its own, or nobody waits for it.

use std::time::{Duration, Instant};

use pyo3::intern;
use pyo3::prelude::*;

const TURN: Duration = Duration::from_micros(400);
/// The time that a waiting thread needs to notice that it can go on, about.
const STEP_BACK: Duration = Duration::from_micros(30);

pub struct Pace {
    since: Instant,
    /// True on a worker thread. Asked for when the first turn is over, which for most results is never.
    is_worker: Option<bool>,
}

impl Pace {
    pub fn start() -> Pace {
        Pace { since: Instant::now(), is_worker: None }
    }

    /// Gives the interpreter up if the turn is over. Called after every few hundred objects, when nobody can
    /// see half-made ones.
    pub fn breathe(&mut self, py: Python<'_>) -> PyResult<()> {
        if self.since.elapsed() < TURN {
            return Ok(());
        }
        let is_worker = match self.is_worker {
            Some(is_worker) => is_worker,
            None => *self.is_worker.insert(is_worker(py)?),
        };
        py.detach(|| {
            if is_worker {
                std::thread::sleep(STEP_BACK);
            }
        });
        // Control-C ends a long conversion of the main thread.
        py.check_signals()?;
        self.since = Instant::now();
        Ok(())
    }
}

fn is_worker(py: Python<'_>) -> PyResult<bool> {
    let threading = py.import("threading")?;
    let main: Option<u64> =
        threading.call_method0(intern!(py, "main_thread"))?.getattr(intern!(py, "ident"))?.extract()?;
    let own: u64 = threading.call_method0(intern!(py, "get_ident"))?.extract()?;
    Ok(main != Some(own))
}
