//! The pipeline from a source to bodies that are ready to be sent, on threads of its own.
//!
//! One thread reads and cuts; others encode. Bodies come out as they are ready, which need not be in order:
//! their numbers say where they belong. Between the source and the answer that acknowledges a batch there are
//! at most `window_bytes`, but for a batch that is larger alone.

mod window;

use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use bytes::Bytes;
use tokio::sync::mpsc::UnboundedSender;

use crate::cut::{Compression, Cut, CutOptions, Cutter, Encoder};
use crate::numbers::Numbers;
use crate::source::{Source, SourceError};
pub(crate) use window::{Room, Window};

/// The size below which a source is cut and encoded by one thread: starting more would take longer.
const SMALL_BYTES: u64 = 2 << 20;
const MAX_ENCODERS: usize = 4;

/// A batch that waits to be sent, or for its answer.
pub(crate) struct Encoded {
    pub(crate) number: u64,
    pub(crate) rows: u64,
    pub(crate) body: Bytes,
    /// The room of the batch, given back to the window when the batch is dropped.
    _room: Room,
}

pub(crate) enum Event {
    /// The source was opened; says how large the whole is, as far as that is known before.
    Began {
        whole_bytes: Option<u64>,
    },
    Batch(Encoded),
    /// A batch that the server has already.
    Skipped {
        rows: u64,
    },
    /// All batches have been cut; some may still be encoded.
    End {
        batches: u64,
    },
    Failed(SourceError),
}

pub(crate) struct PipelineOptions {
    pub(crate) batch_bytes: u64,
    pub(crate) compression: Compression,
    /// Numbers of the batches that the server has already.
    pub(crate) received: Numbers,
}

/// A function that opens a source. It may read files, so it runs on the pipeline's thread.
pub(crate) type OpenSource = Box<dyn FnOnce() -> Result<Box<dyn Source>, SourceError> + Send>;

/// Runs until the source ends, fails, or `window` is closed. Threads that wait for a source end when it has
/// answered.
pub(crate) fn start(open: OpenSource, options: PipelineOptions, window: Arc<Window>, events: UnboundedSender<Event>) {
    thread::spawn(move || {
        let end = read(open, &options, &window, &events).unwrap_or_else(Event::Failed);
        // Nobody listens any more when the append has failed elsewhere.
        let _ = events.send(end);
    });
}

struct Job {
    cut: Cut,
    room: Room,
}

fn read(
    open: OpenSource,
    options: &PipelineOptions,
    window: &Arc<Window>,
    events: &UnboundedSender<Event>,
) -> Result<Event, SourceError> {
    let mut source = open()?;
    let whole_bytes = source.whole_bytes();
    // Who doesn't listen is told nothing; `hand_on` finds out.
    let _ = events.send(Event::Began { whole_bytes });
    let encoder = Encoder::new(&source.schema(), options.compression)?;
    let encoders = Encoders::start(&encoder, whole_bytes, events);
    let mut cutter = Cutter::new(CutOptions { batch_bytes: options.batch_bytes, whole_bytes });
    let hand_on = |cut: Cut| -> bool {
        if options.received.contains(cut.number) {
            return events.send(Event::Skipped { rows: cut.rows }).is_ok();
        }
        match Window::take(window, cut.bytes) {
            Some(room) => encoders.encode(Job { cut, room }),
            None => false,
        }
    };
    while let Some(batch) = source.next_batch()? {
        cutter.push(batch);
        if !std::iter::from_fn(|| cutter.take()).all(hand_on) {
            break;
        }
    }
    // Who doesn't want more is not told an end either.
    std::iter::from_fn(|| cutter.finish()).all(hand_on);
    Ok(Event::End { batches: cutter.batches() })
}

/// Threads that encode; none for a small source, which is encoded where it is read.
struct Encoders {
    encoder: Encoder,
    events: UnboundedSender<Event>,
    jobs: Option<Sender<Job>>,
}

impl Encoders {
    fn start(encoder: &Encoder, whole_bytes: Option<u64>, events: &UnboundedSender<Event>) -> Encoders {
        let mut encoders = Encoders { encoder: encoder.clone(), events: events.clone(), jobs: None };
        if whole_bytes.is_some_and(|bytes| bytes < SMALL_BYTES) {
            return encoders;
        }
        let (jobs, queue) = channel();
        let queue = Arc::new(Mutex::new(queue));
        let cores = thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
        for _ in 0..cores.min(MAX_ENCODERS) {
            let (queue, encoder, events) = (queue.clone(), encoder.clone(), events.clone());
            thread::spawn(move || while next(&queue).is_some_and(|job| encode(&encoder, job, &events)) {});
        }
        encoders.jobs = Some(jobs);
        encoders
    }

    /// Encodes a cut, or queues it for a thread. Returns false if nobody wants it any more.
    fn encode(&self, job: Job) -> bool {
        match &self.jobs {
            Some(jobs) => jobs.send(job).is_ok() && !self.events.is_closed(),
            None => encode(&self.encoder, job, &self.events),
        }
    }
}

fn next(queue: &Mutex<Receiver<Job>>) -> Option<Job> {
    queue.lock().unwrap_or_else(PoisonError::into_inner).recv().ok()
}

fn encode(encoder: &Encoder, job: Job, events: &UnboundedSender<Event>) -> bool {
    let Job { cut, room } = job;
    let event = match encoder.encode(&cut) {
        Ok(body) => Event::Batch(Encoded { number: cut.number, rows: cut.rows, body, _room: room }),
        Err(error) => Event::Failed(error),
    };
    events.send(event).is_ok()
}
