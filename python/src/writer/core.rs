//! The class `_core.Writer`, which both of Python's writers are made of. Calls of users are here (`write_row`
//! is Rust from the call to the buffer); those of the drivers, which send, are in `driving`.

use std::cell::RefCell;
use std::sync::{Arc, Mutex};

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyIterator, PyList, PyTuple};
use windrow_writer::{AppendError, Destination, Gathering, Kept, Rows};

use super::appending::{Appending, Queue};
use super::awaitable;
use super::driving::WriterControl;
use super::errors;
use super::fork::Generation;
use super::ticket::{Listener, ThreadWaiter, Ticket, Trouble};
use super::wake::{Finished, Waker};
use crate::read::Pace;
use crate::write::{RowEncoder, WriteOptions};

/// The number of rows between two looks at the clock.
const ROWS_PER_BREATH: usize = 256;
/// The most rows that are encoded on the event loop: more would take milliseconds.
const ROWS_ON_LOOP: usize = 5000;
/// The most bytes that the memory for encoding may keep between two calls.
const SPARE_BYTES: usize = 1 << 20;

thread_local! {
    /// Memory for encoding. Taken out while it is used: a value's own code may write a row in the middle of it.
    static SPARE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

#[pyclass(subclass, frozen, weakref, module = "windrow._core")]
pub(super) struct Writer {
    shared: Arc<Shared>,
    encoder: RowEncoder,
    /// True if calls return when their rows are stored.
    waits: bool,
}

/// The part of a writer that users' calls and the driver have in common.
pub(super) struct Shared {
    pub(super) gathering: Arc<Gathering>,
    pub(super) queue: Arc<Queue>,
    pub(super) waker: Arc<Waker>,
    pub(super) generation: Generation,
    /// The finished futures of an asynchronous writer.
    finished: Option<Arc<Finished>>,
}

/// The event that a call waits for.
#[derive(Clone, Copy, PartialEq)]
enum Until {
    Taken,
    Stored,
}

#[pymethods]
impl Writer {
    /// Opens a writer; `event_loop` makes an asynchronous one. Opening may wait for a disk or a network.
    #[new]
    #[pyo3(signature = (destination, buffer, options, event_loop=None, write_options=None))]
    fn new(
        py: Python<'_>,
        destination: (String, String, Vec<String>, Vec<String>),
        buffer: &Bound<'_, PyAny>,
        options: &Bound<'_, PyDict>,
        event_loop: Option<Py<PyAny>>,
        write_options: Option<&Bound<'_, WriteOptions>>,
    ) -> PyResult<Writer> {
        let (database, table, columns, types) = destination;
        let write_options = write_options.map_or_else(WriteOptions::default, |options| options.get().clone_ref(py));
        let encoder = RowEncoder::new(py, &columns, &types, write_options)?;
        let destination = Destination { database, table, columns, types };
        let core_options = super::options::read(options)?;
        let max_bytes = core_options.max_bytes;
        let waits = options.get_item("wait")?.map_or(Ok(false), |wait| wait.is_truthy())?;
        let buffer = super::options::open_buffer(py, buffer, &destination, &core_options, options)?;
        let gathering = py.detach(|| Gathering::new(buffer, Arc::new(destination), core_options));
        let waker = Arc::new(Waker::default());
        let wake = waker.clone();
        gathering.set_waker(Box::new(move || wake.wake()));
        let shared = Shared {
            queue: Queue::new(gathering.clone(), max_bytes),
            gathering,
            waker,
            generation: Generation::current(),
            finished: event_loop.map(|event_loop| Arc::new(Finished::new(event_loop))),
        };
        Ok(Writer { shared: Arc::new(shared), encoder, waits })
    }

    /// Encodes rows for `_write_encoded`. Called on a worker thread, where others get their turn in between.
    fn _encode(&self, py: Python<'_>, rows: &Bound<'_, PyAny>) -> PyResult<EncodedRows> {
        let (bytes, lengths) = self.encoded_rows(py, rows)?;
        Ok(EncodedRows { rows: Mutex::new(Some((bytes, lengths))) })
    }

    /// Takes rows that `_encode` has made, once.
    fn _write_encoded(
        &self,
        py: Python<'_>,
        rows: &Bound<'_, EncodedRows>,
        wait: Option<bool>,
        future: bool,
    ) -> PyResult<Py<PyAny>> {
        self.shared.generation.check(py)?;
        let (bytes, lengths) = super::lock(&rows.get().rows).take().unwrap_or_default();
        self.write(py, bytes, &lengths, self.until(wait, future), future)
    }

    /// Returns the writer's control, for the driver.
    #[getter]
    fn _control(&self) -> WriterControl {
        WriterControl::new(self.shared.clone())
    }

    /// Takes a row: a tuple or list of values in the order of the columns, or a dict by their names.
    #[pyo3(signature = (row, *, wait=None, future=false))]
    fn write_row(
        &self,
        py: Python<'_>,
        row: &Bound<'_, PyAny>,
        wait: Option<bool>,
        future: bool,
    ) -> PyResult<Py<PyAny>> {
        let until = self.until(wait, future);
        let (bytes, lengths) = self.encoded_row(py, row)?;
        self.write(py, bytes, &lengths, until, future)
    }

    /// Takes rows from a list, a tuple or another iterable. They are encoded before the first is taken: a row
    /// that doesn't fit its column takes none of them along.
    #[pyo3(signature = (rows, *, wait=None, future=false))]
    fn write_rows(
        slf: &Bound<'_, Self>,
        rows: &Bound<'_, PyAny>,
        wait: Option<bool>,
        future: bool,
    ) -> PyResult<Py<PyAny>> {
        let (py, writer) = (slf.py(), slf.get());
        if writer.shared.finished.is_some() && rows.len().is_ok_and(|count| count > ROWS_ON_LOOP) {
            return Ok(slf.call_method1(intern!(py, "_write_many"), (rows, wait, future))?.unbind());
        }
        let (bytes, lengths) = writer.encoded_rows(py, rows)?;
        writer.write(py, bytes, &lengths, writer.until(wait, future), future)
    }

    /// Takes the row if there is room for it now; never waits.
    fn try_write_row(&self, py: Python<'_>, row: &Bound<'_, PyAny>) -> PyResult<bool> {
        let (bytes, lengths) = self.encoded_row(py, row)?;
        if !self.shared.queue.is_empty() {
            give_back(bytes);
            return Ok(false);
        }
        let outcome = self.shared.gathering.append(Rows::new(&bytes, &lengths));
        give_back(bytes);
        match outcome {
            Ok(_) => Ok(true),
            Err(AppendError::Full) => Ok(false),
            Err(error) => Err(Trouble::from(error).into_pyerr(py)),
        }
    }
}

impl Writer {
    fn until(&self, wait: Option<bool>, future: bool) -> Until {
        match future || wait.unwrap_or(self.waits) {
            true => Until::Stored,
            false => Until::Taken,
        }
    }

    #[inline]
    fn encoded_row(&self, py: Python<'_>, row: &Bound<'_, PyAny>) -> PyResult<(Vec<u8>, [u32; 1])> {
        self.shared.generation.check(py)?;
        let mut bytes = take_spare();
        if let Err(error) = self.encoder.encode_row(py, row, &mut bytes) {
            give_back(bytes);
            return Err(error.into_pyerr(py));
        }
        let length = length_of(py, bytes.len())?;
        Ok((bytes, [length]))
    }

    fn encoded_rows(&self, py: Python<'_>, rows: &Bound<'_, PyAny>) -> PyResult<(Vec<u8>, Vec<u32>)> {
        self.shared.generation.check(py)?;
        let mut encoding =
            Encoding { encoder: &self.encoder, bytes: take_spare(), lengths: Vec::new(), pace: Pace::start() };
        let outcome = encoding.all(py, rows);
        let Encoding { bytes, lengths, .. } = encoding;
        match outcome {
            Ok(()) => Ok((bytes, lengths)),
            Err(error) => {
                give_back(bytes);
                Err(error)
            }
        }
    }

    /// Writes encoded rows. The short way is that there is room, nobody waits for it, and the caller waits
    /// for nothing.
    #[inline]
    fn write(
        &self,
        py: Python<'_>,
        bytes: Vec<u8>,
        lengths: &[u32],
        until: Until,
        future: bool,
    ) -> PyResult<Py<PyAny>> {
        if until == Until::Taken && self.shared.queue.is_empty() {
            match self.shared.gathering.append(Rows::new(&bytes, lengths)) {
                Ok(taken) if taken.kept == Kept::Now => {
                    give_back(bytes);
                    return self.shared.nothing_to_wait_for(py);
                }
                Ok(taken) => {
                    give_back(bytes);
                    return self.shared.listen(py, false, |ticket| {
                        let call = move |outcome: Result<(), _>| ticket.report(outcome.map_err(Trouble::Buffer));
                        self.shared.gathering.on_kept(taken, Box::new(call));
                    });
                }
                Err(AppendError::Closed) => {
                    give_back(bytes);
                    return Err(Trouble::Closed.into_pyerr(py));
                }
                Err(_) => {}
            }
        }
        self.shared.listen(py, future, |ticket| {
            self.shared.queue.push(Appending::new(bytes, lengths.to_vec(), ticket, until == Until::Stored));
        })
    }
}

impl Shared {
    fn nothing_to_wait_for(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        match self.finished {
            Some(_) => awaitable::taken(py),
            None => Ok(py.None()),
        }
    }

    /// Starts the work that a call waits for, and waits or returns a future. `start` runs without the GIL.
    pub(super) fn listen(
        &self,
        py: Python<'_>,
        wants_future: bool,
        start: impl FnOnce(Arc<Ticket>) + Send,
    ) -> PyResult<Py<PyAny>> {
        if let Some(finished) = &self.finished {
            let future = finished.new_future(py)?;
            let listener = Listener::Loop { future: future.clone_ref(py), finished: finished.clone() };
            let ticket = Ticket::new(listener);
            py.detach(|| start(ticket));
            return Ok(future);
        }
        if wants_future {
            let future = py.import("concurrent.futures")?.getattr("Future")?.call0()?.unbind();
            let ticket = Ticket::new(Listener::Future(future.clone_ref(py)));
            py.detach(|| start(ticket));
            return Ok(future);
        }
        let waiter = Arc::new(ThreadWaiter::default());
        let ticket = Ticket::new(Listener::Thread(waiter.clone()));
        py.detach(|| start(ticket));
        waiter.wait(py)?.map(|()| py.None()).map_err(|trouble| trouble.into_pyerr(py))
    }
}

/// Encoded rows on their way back to the event loop.
#[pyclass(frozen, module = "windrow._core")]
pub(super) struct EncodedRows {
    rows: Mutex<Option<(Vec<u8>, Vec<u32>)>>,
}

struct Encoding<'a> {
    encoder: &'a RowEncoder,
    bytes: Vec<u8>,
    lengths: Vec<u32>,
    pace: Pace,
}

impl Encoding<'_> {
    fn all(&mut self, py: Python<'_>, rows: &Bound<'_, PyAny>) -> PyResult<()> {
        if let Ok(list) = rows.cast::<PyList>() {
            self.lengths.reserve(list.len());
            // Its length is looked at anew each time: a value's own code may change the list.
            let mut index = 0;
            while let Ok(row) = list.get_item(index) {
                self.one(py, &row)?;
                index += 1;
            }
            return Ok(());
        }
        if let Ok(tuple) = rows.cast::<PyTuple>() {
            self.lengths.reserve(tuple.len());
            return tuple.iter().try_for_each(|row| self.one(py, &row));
        }
        PyIterator::from_object(rows)?.try_for_each(|row| self.one(py, &row?))
    }

    #[inline]
    fn one(&mut self, py: Python<'_>, row: &Bound<'_, PyAny>) -> PyResult<()> {
        let before = self.bytes.len();
        let index = self.lengths.len();
        self.encoder.encode_row(py, row, &mut self.bytes).map_err(|error| error.at_row(index).into_pyerr(py))?;
        self.lengths.push(length_of(py, self.bytes.len() - before)?);
        if self.lengths.len().is_multiple_of(ROWS_PER_BREATH) {
            self.pace.breathe(py)?;
        }
        Ok(())
    }
}

fn length_of(py: Python<'_>, bytes: usize) -> PyResult<u32> {
    let too_large = || errors::of_class(py, "DataError", "a row of more than 4 GiB can't be written");
    u32::try_from(bytes).map_err(|_| too_large())
}

#[inline]
fn take_spare() -> Vec<u8> {
    SPARE.with(|spare| std::mem::take(&mut *spare.borrow_mut()))
}

#[inline]
fn give_back(mut bytes: Vec<u8>) {
    if bytes.capacity() <= SPARE_BYTES {
        bytes.clear();
        SPARE.with(|spare| *spare.borrow_mut() = bytes);
    }
}
