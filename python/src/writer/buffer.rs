//! A program's own buffer: a Python object with the methods of `windrow.Buffer`.
//!
//! The object keeps bytes and knows nothing of rows' types: `rows` and `lengths` come in and go out together.
//! The first failure of a method is the failure of the call; nothing is taken or forgotten by it.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Mutex;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use windrow_writer::{
    AppendError, Appended, BatchId, Body, Buffer, BufferError, Kept, LeftOvers, Open, Ready, Rows, Sealed,
};

use super::lock;

pub(super) struct PythonBuffer {
    object: Py<PyAny>,
    survives: bool,
    batch_rows: u64,
    is_appending: AtomicBool,
    state: Mutex<State>,
}

/// The facts about the object's rows that are known without asking: rows are counted here, in the order of
/// appending.
#[derive(Default)]
struct State {
    next_position: u64,
    waiting: std::collections::VecDeque<Appending>,
    waiting_rows: u64,
    sealed: std::collections::HashMap<BatchId, Sealed>,
}

struct Appending {
    positions: Range<u64>,
    held_bytes: u64,
}

impl PythonBuffer {
    pub(super) fn new(object: Bound<'_, PyAny>, batch_rows: u64) -> PyResult<PythonBuffer> {
        let survives = object.getattr("survives")?.is_truthy()?;
        Ok(PythonBuffer {
            object: object.unbind(),
            survives,
            batch_rows: batch_rows.max(1),
            is_appending: AtomicBool::new(false),
            state: Mutex::default(),
        })
    }

    /// Waits for earlier appends, so that the object's order is ours. The GIL is given up meanwhile: the
    /// append in front needs it.
    fn begin_append(&self) -> EndOfAppend<'_> {
        while self.is_appending.swap(true, Ordering::Acquire) {
            Python::try_attach(|py| py.detach(std::thread::yield_now));
        }
        EndOfAppend(&self.is_appending)
    }

    fn call<T>(&self, call: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T>) -> Result<T, BufferError> {
        let answer = Python::try_attach(|py| {
            call(self.object.bind(py)).map_err(|error| BufferError::Other(format!("the writer's own buffer: {error}")))
        });
        answer.unwrap_or_else(|| Err(BufferError::Other("the interpreter goes down".into())))
    }
}

struct EndOfAppend<'a>(&'a AtomicBool);

impl Drop for EndOfAppend<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

fn lengths<'py>(py: Python<'py>, rows: Rows<'_>) -> PyResult<Bound<'py, PyList>> {
    PyList::new(py, rows.lengths())
}

impl Buffer for PythonBuffer {
    fn survives(&self) -> bool {
        self.survives
    }

    fn may_block(&self) -> bool {
        true
    }

    fn append(&self, rows: Rows<'_>) -> Result<Appended, AppendError> {
        let count = rows.count() as u64;
        let _in_order = self.begin_append();
        let taken = self.call(|object| {
            let py = object.py();
            let taken = object.call_method1("append", (PyBytes::new(py, rows.bytes()), lengths(py, rows)?))?;
            taken.is_truthy()
        });
        match taken {
            Ok(true) => {}
            Ok(false) => return Err(AppendError::Full),
            Err(error) => return Err(AppendError::Failed(error)),
        }
        let mut state = lock(&self.state);
        let first = state.next_position;
        let before = state.waiting_rows;
        state.next_position += count;
        state.waiting_rows += count;
        state.waiting.push_back(Appending { positions: first..first + count, held_bytes: rows.held_bytes() });
        let ready = match before {
            _ if state.waiting_rows >= self.batch_rows => Ready::Full,
            0 => Ready::FirstRow,
            _ => Ready::No,
        };
        Ok(Appended { first, kept: Kept::Now, ready })
    }

    fn next_position(&self) -> u64 {
        lock(&self.state).next_position
    }

    fn open(&self) -> Open {
        let rows = lock(&self.state).waiting_rows;
        Open { rows, full_batches: rows / self.batch_rows }
    }

    fn seal(&self) -> Result<Option<Sealed>, BufferError> {
        let id = BatchId::random()?;
        let appends = {
            let state = lock(&self.state);
            let mut rows = 0;
            let fits = |append: &&Appending| {
                let is_first = rows == 0;
                rows += append.positions.end - append.positions.start;
                is_first || rows <= self.batch_rows
            };
            state.waiting.iter().take_while(fits).count()
        };
        if appends == 0 {
            return Ok(None);
        }
        self.call(|object| object.call_method1("seal", (id.to_string(), appends)).map(drop))?;
        let mut state = lock(&self.state);
        let mut sealed = Sealed { id, rows: 0, positions: 0..0, held_bytes: 0, destination: None };
        for append in state.waiting.drain(..appends).collect::<Vec<_>>() {
            if sealed.rows == 0 {
                sealed.positions.start = append.positions.start;
            }
            sealed.positions.end = append.positions.end;
            sealed.rows = sealed.positions.end - sealed.positions.start;
            sealed.held_bytes += append.held_bytes;
        }
        state.waiting_rows -= sealed.rows;
        state.sealed.insert(id, sealed.clone());
        Ok(Some(sealed))
    }

    fn load(&self, id: BatchId) -> Result<Body, BufferError> {
        if !lock(&self.state).sealed.contains_key(&id) {
            return Err(BufferError::UnknownBatch(id));
        }
        let loaded: (Vec<u8>, Vec<u32>) = self.call(|object| {
            let (bytes, lengths): (Bound<'_, PyBytes>, Vec<u32>) =
                object.call_method1("load", (id.to_string(),))?.extract()?;
            Ok((bytes.as_bytes().to_vec(), lengths))
        })?;
        let sum: u64 = loaded.1.iter().map(|&length| u64::from(length)).sum();
        let rows = lock(&self.state).sealed.get(&id).map_or(0, |sealed| sealed.rows);
        match sum == loaded.0.len() as u64 && loaded.1.len() as u64 == rows {
            true => Ok(Body::new(loaded.0, loaded.1)),
            false => Err(BufferError::Damaged(format!("batch {id} came back with other rows than it was sealed with"))),
        }
    }

    fn split(&self, id: BatchId, cuts: &[usize]) -> Result<Vec<Sealed>, BufferError> {
        let body = self.load(id)?;
        let parent = lock(&self.state).sealed.get(&id).cloned().ok_or(BufferError::UnknownBatch(id))?;
        let mut children = Vec::with_capacity(cuts.len() + 1);
        let mut from = 0;
        for to in cuts.iter().copied().chain([body.count()]) {
            let lengths = &body.rows().lengths()[from..to];
            let bytes: u64 = lengths.iter().map(|&length| u64::from(length)).sum();
            let is_own = !parent.positions.is_empty();
            let at = |row: usize| parent.positions.start + if is_own { row as u64 } else { 0 };
            children.push(Sealed {
                id: BatchId::random()?,
                rows: (to - from) as u64,
                positions: at(from)..at(to),
                held_bytes: if is_own { bytes + 4 * (to - from) as u64 } else { 0 },
                destination: parent.destination.clone(),
            });
            from = to;
        }
        let named: Vec<(String, u64)> = children.iter().map(|child| (child.id.to_string(), child.rows)).collect();
        self.call(|object| object.call_method1("split", (id.to_string(), named)).map(drop))?;
        let mut state = lock(&self.state);
        state.sealed.remove(&id);
        state.sealed.extend(children.iter().map(|child| (child.id, child.clone())));
        Ok(children)
    }

    fn done(&self, id: BatchId) -> Result<(), BufferError> {
        lock(&self.state).sealed.remove(&id).ok_or(BufferError::UnknownBatch(id))?;
        self.call(|object| object.call_method1("done", (id.to_string(),)).map(drop))
    }

    /// Returns batches that the object brought back from a former process: asked for at the start, and from
    /// then on.
    fn left_overs(&self) -> Result<LeftOvers, BufferError> {
        let found: Vec<(String, u64)> = self.call(|object| object.call_method0("left_overs")?.extract())?;
        let mut left_overs = LeftOvers::default();
        let mut state = lock(&self.state);
        for (id, rows) in found {
            match BatchId::parse(&id) {
                Some(id) => {
                    let sealed = Sealed { id, rows, positions: 0..0, held_bytes: 0, destination: None };
                    state.sealed.insert(id, sealed.clone());
                    left_overs.batches.push(sealed);
                }
                None => left_overs.complaints.push(format!("the writer's own buffer brought back a batch called {id}")),
            }
        }
        Ok(left_overs)
    }

    fn close(&self) {
        // There is nobody left who could be told of a failure.
        drop(self.call(|object| object.call_method0("close").map(drop)));
    }
}
