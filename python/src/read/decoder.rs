//! A decoder that turns the body of an answer into rows, columns or blocks.
//!
//! Bytes are decoded detached from the interpreter; only the making of objects holds it, in short slices. One
//! thread at a time advances a decoder. A second thread is refused rather than made to wait: it would hold
//! the interpreter while it waits, and the first one needs that.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use windrow_results::{BlockDecoder, DecodeError, Header, Problem};

use super::block::Block;
use super::errors;
use super::options::ReadOptions;
use super::pace::Pace;
use super::rows::Readers;
use crate::http::{Body, BodyError, BodyQueue};

/// The bytes that are taken from the body at once.
const PIECE_BYTES: usize = 256 << 10;
/// The number of decoded bytes after which whole blocks are handed over, though more might be there.
const ENOUGH_BYTES: usize = 1 << 20;

/// The form of a result as columns; 0 is rows, 2 (`BLOCK`) is blocks.
const COLUMNS: u8 = 1;
const BLOCK: u8 = 2;

#[pyclass(frozen, module = "windrow._core")]
pub struct Decoder {
    options: Py<ReadOptions>,
    header: OnceLock<Arc<Header>>,
    state: Mutex<State>,
}

struct State {
    source: Source,
    decoder: BlockDecoder,
    readers: Option<Readers>,
}

enum Source {
    Body(Arc<BodyQueue>),
    Bytes(VecDeque<Vec<u8>>),
}

/// The blocks that were read on, and the error behind them.
struct Decoded {
    blocks: Vec<windrow_results::Block>,
    trouble: Option<Trouble>,
}

enum Trouble {
    Body(BodyError),
    Decode(DecodeError),
}

impl Trouble {
    fn into_error(self, py: Python<'_>) -> PyErr {
        match self {
            Trouble::Body(error) => error.into(),
            Trouble::Decode(error) => decode_error(py, &error),
        }
    }
}

fn decode_error(py: Python<'_>, error: &DecodeError) -> PyErr {
    match error.problem {
        Problem::Type(_) | Problem::Form(_) => errors::not_supported(py, error.to_string()),
        _ => errors::stream_failure(py, error.to_string()),
    }
}

#[pymethods]
impl Decoder {
    #[new]
    fn new(body: &Bound<'_, Body>, options: Py<ReadOptions>) -> Decoder {
        Self::of_source(Source::Body(Arc::clone(body.get().queue())), options)
    }

    #[staticmethod]
    fn of_bytes(data: &[u8], options: Py<ReadOptions>) -> Decoder {
        Self::of_source(Source::Bytes(VecDeque::from([data.to_vec()])), options)
    }

    fn header<'py>(&self, py: Python<'py>) -> PyResult<Option<(Bound<'py, PyTuple>, Bound<'py, PyTuple>)>> {
        let Some(header) = self.header.get() else { return Ok(None) };
        let type_names = header.types.iter().map(ToString::to_string);
        Ok(Some((PyTuple::new(py, &header.names)?, PyTuple::new(py, type_names.collect::<Vec<_>>())?)))
    }

    #[pyo3(signature = (form, max_rows=0))]
    fn advance<'py>(&self, py: Python<'py>, form: u8, max_rows: usize) -> PyResult<Bound<'py, PyList>> {
        if form > BLOCK {
            return Err(PyValueError::new_err("form must be 0 (rows), 1 (columns) or 2 (blocks)"));
        }
        let mut guard = self.lock()?;
        let state: &mut State = &mut guard;
        let decoded = py.detach(|| state.decode());
        if let Some(block) = decoded.blocks.first() {
            self.header.get_or_init(|| Arc::clone(&block.header));
        }
        let out = PyList::empty(py);
        if let (true, Some(trouble)) = (decoded.blocks.is_empty(), decoded.trouble) {
            return Err(trouble.into_error(py));
        }
        let mut pace = Pace::start();
        for block in decoded.blocks {
            if form == BLOCK {
                out.append(Block::new(block, self.options.clone_ref(py)))?;
                continue;
            }
            self.convert(py, state, &block, form, max_rows, &mut pace, &out)?;
            // Giving back the memory of a large block takes a while.
            py.detach(|| drop(block));
        }
        Ok(out)
    }

    fn finish(&self, py: Python<'_>) -> PyResult<()> {
        self.lock()?.decoder.finish().map_err(|error| decode_error(py, &error))
    }
}

impl Decoder {
    fn of_source(source: Source, options: Py<ReadOptions>) -> Decoder {
        let state = State { source, decoder: BlockDecoder::new(), readers: None };
        Decoder { options, header: OnceLock::new(), state: Mutex::new(state) }
    }

    fn lock(&self) -> PyResult<MutexGuard<'_, State>> {
        self.state.try_lock().map_err(|_| PyRuntimeError::new_err("the decoder is in use by another thread"))
    }

    #[allow(clippy::too_many_arguments, reason = "one step of advance(), told on its own")]
    fn convert(
        &self,
        py: Python<'_>,
        state: &mut State,
        block: &windrow_results::Block,
        form: u8,
        max_rows: usize,
        pace: &mut Pace,
        out: &Bound<'_, PyList>,
    ) -> PyResult<()> {
        let options = self.options.get();
        let readers = match &mut state.readers {
            Some(readers) => readers,
            none => none.insert(Readers::new(py, &block.header, options)?),
        };
        let step = if max_rows == 0 { block.rows.max(1) } else { max_rows };
        let mut start = 0;
        while start < block.rows {
            let rows = start..block.rows.min(start + step);
            start = rows.end;
            out.append(match form {
                COLUMNS => readers.columns(py, block, rows, options, pace)?,
                _ => readers.rows(py, block, rows, options, pace)?,
            })?;
        }
        Ok(())
    }
}

impl State {
    fn decode(&mut self) -> Decoded {
        let mut blocks = Vec::new();
        let mut read_bytes = 0;
        let trouble = loop {
            match self.decoder.next() {
                Ok(Some(block)) => {
                    blocks.push(block);
                    continue;
                }
                Ok(None) => {}
                Err(error) => break Some(Trouble::Decode(error)),
            }
            if !blocks.is_empty() && read_bytes >= ENOUGH_BYTES {
                break None;
            }
            match self.source.take(self.decoder.input()) {
                Ok(0) => break None,
                Ok(bytes) => read_bytes += bytes,
                Err(error) => break Some(Trouble::Body(error)),
            }
        };
        Decoded { blocks, trouble }
    }
}

impl Source {
    fn take(&mut self, out: &mut Vec<u8>) -> Result<usize, BodyError> {
        match self {
            Source::Body(queue) => queue.take(out, PIECE_BYTES).map(|taken| taken.bytes),
            Source::Bytes(pieces) => Ok(pieces.pop_front().map_or(0, |piece| {
                out.extend_from_slice(&piece);
                piece.len()
            })),
        }
    }
}
