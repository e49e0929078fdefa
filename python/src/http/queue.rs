//! The bounded queue between the network and the reader that decodes a body.
//!
//! The network's side appends raw bytes and never waits; it is told when there are more than the high water,
//! stops reading, and is woken once when they fall under the low water. The reader's side takes decompressed
//! bytes, from any thread but one at a time. The two sides share a lock for as long as it takes to move a
//! segment: decompression happens outside of it, so that an event loop that appends is never held up by a reader.
//! When the connection is lost, everything that came before is still given out, then the error: ClickHouse's
//! exception is often among the last bytes.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use windrow_compression::{DecompressError, Encoding, StreamDecompressor};

use super::exception_tail::Tail;

/// The error as Python sees it, which has the same name.
pub mod raised {
    use pyo3::exceptions::PyException;

    pyo3::create_exception!(windrow._core, BodyError, PyException, "A body was cut, or can't be decompressed.");
}

/// The size up to which segments grow before another is begun.
const SEGMENT_BYTES: usize = 256 << 10;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BodyError {
    /// The connection was lost, or given up; with the reason.
    Lost(String),
    Decompress(DecompressError),
}

impl From<BodyError> for PyErr {
    fn from(error: BodyError) -> Self {
        match error {
            BodyError::Lost(reason) => raised::BodyError::new_err(reason),
            BodyError::Decompress(error) => raised::BodyError::new_err(error.to_string()),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taken {
    pub bytes: usize,
    /// True if nothing comes after these bytes.
    pub ended: bool,
}

/// A callback that is called from the reader's thread, without any lock held.
pub type OnDrained = Box<dyn FnOnce() + Send>;

/// The bytes of a body between the network, which gives them, and the reader, who takes them.
pub struct BodyQueue {
    high_water_bytes: usize,
    compressed: bool,
    given_bytes: AtomicU64,
    inlet: Mutex<Inlet>,
    outlet: Mutex<Outlet>,
}

#[derive(Default)]
struct Inlet {
    segments: VecDeque<Vec<u8>>,
    buffered: usize,
    end: Option<Result<(), String>>,
    on_drained: Option<OnDrained>,
    most_buffered: usize,
    unbounded: bool,
}

struct Outlet {
    segment: Vec<u8>,
    read: usize,
    encoding: ContentEncoding,
    tail: Tail,
    failed: Option<BodyError>,
}

enum ContentEncoding {
    Identity,
    Compressed(StreamDecompressor),
    Unknown(String),
}

impl BodyQueue {
    /// Makes a queue. `content_encoding` and `exception_tag` are the answer's header fields.
    pub fn new(high_water_bytes: usize, content_encoding: Option<&str>, exception_tag: Option<&str>) -> Self {
        let outlet = Outlet {
            segment: Vec::new(),
            read: 0,
            encoding: ContentEncoding::named(content_encoding),
            tail: Tail::new(exception_tag),
            failed: None,
        };
        let compressed = !matches!(outlet.encoding, ContentEncoding::Identity);
        Self {
            high_water_bytes,
            compressed,
            given_bytes: AtomicU64::new(0),
            inlet: Mutex::default(),
            outlet: Mutex::new(outlet),
        }
    }

    /// Appends bytes. Says whether there are more than the high water now.
    pub fn append(&self, bytes: &[u8]) -> bool {
        let mut inlet = locked(&self.inlet);
        match inlet.segments.back_mut() {
            Some(last) if last.len() + bytes.len() <= SEGMENT_BYTES => last.extend_from_slice(bytes),
            _ => inlet.segments.push_back(bytes.to_vec()),
        }
        inlet.buffered += bytes.len();
        inlet.most_buffered = inlet.most_buffered.max(inlet.buffered);
        inlet.buffered > self.high_water_bytes && !inlet.unbounded
    }

    pub fn end(&self) {
        locked(&self.inlet).end.get_or_insert(Ok(()));
    }

    /// Ends the body with an error. Bytes that were appended are still given out, then this error.
    pub fn fail(&self, reason: String) {
        locked(&self.inlet).end.get_or_insert(Err(reason));
    }

    pub fn buffered(&self) -> usize {
        locked(&self.inlet).buffered
    }

    pub fn most_buffered(&self) -> usize {
        locked(&self.inlet).most_buffered
    }

    /// Returns how many decompressed bytes readers have got.
    pub fn given_bytes(&self) -> u64 {
        self.given_bytes.load(Ordering::Relaxed)
    }

    /// Says whether all of the body has come, or will never come.
    pub fn ended(&self) -> bool {
        locked(&self.inlet).end.is_some()
    }

    pub fn is_compressed(&self) -> bool {
        self.compressed
    }

    /// Lifts the bound for a reader who wants the whole body in one piece: the network's side isn't told to
    /// pause any more.
    pub fn unbound(&self) {
        locked(&self.inlet).unbounded = true;
    }

    /// Sets the callback that is called once when less than the low water is buffered, which may be at once.
    pub fn set_on_drained(&self, callback: Option<OnDrained>) {
        let mut inlet = locked(&self.inlet);
        inlet.on_drained = callback;
        let due = self.due(&mut inlet);
        drop(inlet);
        if let Some(callback) = due {
            callback();
        }
    }

    fn due(&self, inlet: &mut Inlet) -> Option<OnDrained> {
        if inlet.buffered <= self.high_water_bytes / 2 {
            inlet.on_drained.take()
        } else {
            None
        }
    }

    /// Appends to `out` at most `max` decompressed bytes of those that are there now.
    ///
    /// # Errors
    /// Fails where the connection was lost, or the bytes can't be decompressed, after all bytes before that
    /// were given out.
    pub fn take(&self, out: &mut Vec<u8>, max: usize) -> Result<Taken, BodyError> {
        let mut outlet = locked(&self.outlet);
        let start = out.len();
        let limit = start.saturating_add(max);
        let outcome = self.take_up_to(&mut outlet, out, limit);
        outlet.tail.keep(&out[start..]);
        self.given_bytes.fetch_add((out.len() - start) as u64, Ordering::Relaxed);
        match outcome {
            Ok(ended) => Ok(Taken { bytes: out.len() - start, ended }),
            // What came before the error is worth having; the error comes next time.
            Err(error) => {
                outlet.failed = Some(error.clone());
                match out.len() - start {
                    0 => Err(error),
                    bytes => Ok(Taken { bytes, ended: false }),
                }
            }
        }
    }

    fn take_up_to(&self, outlet: &mut Outlet, out: &mut Vec<u8>, limit: usize) -> Result<bool, BodyError> {
        if let Some(error) = &outlet.failed {
            return Err(error.clone());
        }
        loop {
            let full = outlet.give_out(out, limit)?;
            if full {
                return Ok(false);
            }
            match self.next_segment() {
                Next::Segment(segment) => (outlet.segment, outlet.read) = (segment, 0),
                Next::Nothing => return Ok(false),
                Next::End => return outlet.encoding.finish().map(|()| true),
                Next::Failed(reason) => return Err(BodyError::Lost(reason)),
            }
        }
    }

    fn next_segment(&self) -> Next {
        let mut inlet = locked(&self.inlet);
        let next = match (inlet.segments.pop_front(), &inlet.end) {
            (Some(segment), _) => {
                inlet.buffered -= segment.len();
                Next::Segment(segment)
            }
            (None, None) => Next::Nothing,
            (None, Some(Ok(()))) => Next::End,
            (None, Some(Err(reason))) => Next::Failed(reason.clone()),
        };
        let due = self.due(&mut inlet);
        drop(inlet);
        if let Some(callback) = due {
            callback();
        }
        next
    }

    /// Returns ClickHouse's exception at the end of the body, if there is one. Takes all bytes that are still
    /// there.
    pub fn exception_text(&self) -> Option<String> {
        const PIECE_BYTES: usize = 256 << 10;
        let mut piece = Vec::new();
        while self.take(&mut piece, PIECE_BYTES).is_ok_and(|taken| taken.bytes > 0) {
            piece.clear();
        }
        locked(&self.outlet).tail.exception_text()
    }
}

enum Next {
    Segment(Vec<u8>),
    Nothing,
    End,
    Failed(String),
}

impl Outlet {
    /// Gives out the segment at hand. Says whether the limit was reached.
    fn give_out(&mut self, out: &mut Vec<u8>, limit: usize) -> Result<bool, BodyError> {
        let rest = &self.segment[self.read..];
        match &mut self.encoding {
            ContentEncoding::Identity if out.is_empty() && self.read == 0 && rest.len() <= limit => {
                std::mem::swap(out, &mut self.segment);
                self.segment.clear();
            }
            ContentEncoding::Identity => {
                let count = rest.len().min(limit - out.len());
                out.extend_from_slice(&rest[..count]);
                self.read += count;
            }
            ContentEncoding::Compressed(decoder) => {
                let step = decoder.step(rest, out, limit - out.len()).map_err(BodyError::Decompress)?;
                self.read += step.consumed;
            }
            ContentEncoding::Unknown(name) => {
                let unsupported = DecompressError::Unsupported(format!("an answer in the encoding {name:?}"));
                return Err(BodyError::Decompress(unsupported));
            }
        }
        Ok(out.len() >= limit)
    }
}

impl ContentEncoding {
    fn named(name: Option<&str>) -> Self {
        let Some(name) = name.filter(|name| !name.is_empty() && !name.eq_ignore_ascii_case("identity")) else {
            return Self::Identity;
        };
        match Encoding::from_content_encoding(name).map(StreamDecompressor::new) {
            Some(Ok(decoder)) => Self::Compressed(decoder),
            _ => Self::Unknown(name.to_owned()),
        }
    }

    fn finish(&self) -> Result<(), BodyError> {
        match self {
            Self::Compressed(decoder) => decoder.finish().map_err(BodyError::Decompress),
            _ => Ok(()),
        }
    }
}

/// Locks the mutex. A panic under one of these locks leaves bytes that are whole: the queue goes on.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
