//! The questions and reports of the drivers, `AsyncWriter` and `Writer` in Python. Not for users.

use std::sync::Arc;
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use windrow_clickhouse::{ErrorCode, Exception};
use windrow_writer::{BatchId, Failure, Next};

use super::core::Shared;
use super::errors::of_rows;
use super::outgoing::OutgoingBatch;
use super::ticket::Ticket;

/// The seconds between two questions to a buffer with a limit of its own whether it has room again.
const BUFFER_ROOM_CHECK_S: f64 = 0.05;
/// The longest wait, in seconds, so that no arithmetic on times overflows.
const LONGEST_WAIT_S: f64 = 3600.0;

#[pyclass(frozen, module = "windrow._core")]
pub(super) struct WriterControl {
    shared: Arc<Shared>,
}

/// The rows that a writer held when it was closed.
#[pyclass(frozen, get_all, module = "windrow._core")]
pub(super) struct CloseReport {
    /// Rows that were handed over with an error.
    handed_over: u64,
    /// Rows that stay in the buffer.
    kept: u64,
}

impl WriterControl {
    pub(super) fn new(shared: Arc<Shared>) -> WriterControl {
        WriterControl { shared }
    }
}

#[pymethods]
impl WriterControl {
    /// Returns a batch to be sent, or how many seconds to wait; None when the writer is closed and nothing is
    /// left.
    fn next(&self, py: Python<'_>, now: f64) -> PyResult<Option<Py<PyAny>>> {
        self.shared.generation.check(py)?;
        let now_ms = milliseconds(now);
        let (next, is_buffer_full) = py.detach(|| {
            self.shared.waker.looks();
            let is_full = self.shared.queue.retry();
            (self.shared.gathering.next(now_ms), is_full)
        });
        Ok(match next {
            Next::Send(outgoing) => Some(Py::new(py, OutgoingBatch::new(outgoing))?.into_any()),
            Next::Wait { until_ms } => {
                let seconds = until_ms.map_or(LONGEST_WAIT_S, |until| until.saturating_sub(now_ms) as f64 / 1000.0);
                let limit = if is_buffer_full { BUFFER_ROOM_CHECK_S } else { LONGEST_WAIT_S };
                Some(seconds.min(limit).into_pyobject(py)?.into_any().unbind())
            }
            Next::Drained => None,
        })
    }

    /// Says whether `next` may wait for a disk or a program's own buffer.
    fn may_block(&self) -> bool {
        self.shared.gathering.buffer().may_block()
    }

    fn survives(&self) -> bool {
        self.shared.gathering.buffer().survives()
    }

    fn stored(&self, py: Python<'_>, batch: &Bound<'_, OutgoingBatch>) {
        let id = batch.get().batch_id();
        py.detach(|| self.shared.gathering.stored(id));
    }

    /// Notes that an attempt has failed. No code means that no answer came, so it isn't known what became of
    /// the batch.
    fn failed(&self, py: Python<'_>, batch: &Bound<'_, OutgoingBatch>, code: Option<i32>, message: &str, now: f64) {
        let id: BatchId = batch.get().batch_id();
        let failure = match code {
            Some(code) => Failure::of_exception(&Exception {
                code: ErrorCode::from_number(code),
                line: message.to_owned(),
                before_writing: false,
            }),
            None => Failure::passing(message),
        };
        py.detach(|| self.shared.gathering.failed(id, failure, milliseconds(now)));
    }

    /// Sets the function to call, and on which loop, when `next` may have something else to say.
    fn set_waker(&self, event_loop: Py<PyAny>, call: Py<PyAny>) {
        self.shared.waker.set(event_loop, call);
    }

    fn clear_waker(&self) {
        self.shared.waker.clear();
    }

    /// Returns how often there was a reason to look; for threads.
    fn wake_count(&self) -> u64 {
        self.shared.waker.count()
    }

    /// Waits until there was a reason more, or so long; for threads.
    fn wait_for_wake(&self, py: Python<'_>, seen: u64, seconds: f64) {
        let limit = Duration::from_secs_f64(seconds.clamp(0.0, LONGEST_WAIT_S));
        py.detach(|| self.shared.waker.wait(seen, limit));
    }

    fn wake(&self, py: Python<'_>) {
        py.detach(|| self.shared.waker.wake());
    }

    /// Waits until everything that was taken before is settled.
    #[pyo3(signature = (*, future=false))]
    fn flush(&self, py: Python<'_>, future: bool) -> PyResult<Py<PyAny>> {
        self.shared.generation.check(py)?;
        self.shared.listen(py, future, |ticket: Arc<Ticket>| {
            self.shared.gathering.flush(Box::new(move || ticket.report(Ok(()))));
        })
    }

    /// Returns the oldest rows that could not be stored, once.
    fn take_error(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        let error = py.detach(|| self.shared.gathering.take_error())?;
        Some(of_rows(py, &error).into_value(py).into_any())
    }

    /// Closes the writer: no more rows are taken.
    fn close(&self, py: Python<'_>) {
        py.detach(|| self.shared.gathering.close());
    }

    fn is_closed(&self) -> bool {
        self.shared.gathering.is_closed()
    }

    /// Lets go of the buffer; may wait for it.
    fn abandon(&self, py: Python<'_>) -> CloseReport {
        let report = match self.shared.generation.is_current() {
            true => py.detach(|| self.shared.gathering.abandon()),
            false => Default::default(),
        };
        CloseReport { handed_over: report.rows_handed_over, kept: report.rows_kept }
    }

    fn is_own_process(&self) -> bool {
        self.shared.generation.is_current()
    }

    fn statistics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let statistics = py.detach(|| self.shared.gathering.statistics());
        let dict = PyDict::new(py);
        dict.set_item("rows_written", statistics.rows_written)?;
        dict.set_item("rows_stored", statistics.rows_stored)?;
        dict.set_item("rows_failed", statistics.rows_failed)?;
        dict.set_item("rows_left_over", statistics.rows_left_over)?;
        dict.set_item("rows_waiting", statistics.rows_waiting)?;
        dict.set_item("rows_in_flight", statistics.rows_in_flight)?;
        dict.set_item("bytes_held", statistics.bytes_held)?;
        dict.set_item("batches_stored", statistics.batches_stored)?;
        dict.set_item("batches_in_flight", statistics.batches_in_flight)?;
        dict.set_item("retries", statistics.retries)?;
        dict.set_item("batches_split", statistics.batches_split)?;
        dict.set_item("errors_dropped", statistics.errors_dropped)?;
        dict.set_item("damaged_bytes", statistics.damaged_bytes)?;
        dict.set_item("last_error", statistics.last_error)?;
        Ok(dict)
    }
}

fn milliseconds(seconds: f64) -> u64 {
    (seconds.max(0.0) * 1000.0) as u64
}
