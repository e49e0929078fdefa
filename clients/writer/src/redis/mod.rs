//! Rows in a Redis, shared by the writers of many processes and machines; they survive the end of their process.
//!
//! ## The keys in Redis
//!
//! A *bucket* has *lanes*. Each writer has a lane of its own, with an owner, a lease and the table's description; rows
//! in it are numbered by their positions. Under `{windrow:<bucket>}`:
//!
//! | key | type | what |
//! |---|---|---|
//! | `:lanes` | sorted set | names of lanes, by when their leases end (Redis's own clock, in ms) |
//! | `:bytes` | string | bytes of all entries of the bucket, for the limit |
//! | `:lane:<name>` | hash | owner, its process, destination, number of the next row, serial of the last record |
//! | `:lane:<name>:rows` | hash | entries: `first row:rows` to the rows ([`entry`]) |
//! | `:lane:<name>:batches` | hash | batch id to its rows, live or done ([`lane_index`]) |
//! | `:lane:<name>:gone` | string | for a day: the lane was emptied, and how far it went |
//!
//! ## The work of a call, and of the thread
//!
//! Calls of the buffer never wait: they change what is known here ([`state`]) and queue what Redis has to be
//! told ([`queue`]). One thread ([`worker`]) sends the queue in pipelines. All changes are made by scripts,
//! and a script that writes to a lane begins with the question whether the lane is still its caller's. Rows
//! are kept when their entry's script has answered; a batch's rows are given out to be sent once the batch's
//! record has. Rows stay in this process's memory until they are stored, so a batch is written to Redis once
//! and read never, except by a process that takes it over.
//!
//! ## Repeats
//!
//! The connection may break between a command and its answer; then everything unanswered is sent again. An entry says
//! where it begins, and the lane where the next one has to: an entry that is there is not added again, one that comes
//! late (out of a socket that Redis had not read yet) neither. Records carry a serial number to the same end. An append
//! that Redis did not confirm in time is refused, and withdrawn: the next thing that Redis hears of it deletes it. Only
//! a process that dies between the two, or is thought dead, leaves rows that were refused and are stored anyway.
//!
//! ## The death of a writer
//!
//! A lane whose owner is known to be dead (its process ran on this machine and does so no more), which was
//! left, or whose lease has run out is taken over by the next writer for the same table: of two that try, one
//! wins. Batches keep their ids and members; rows that were in none are put into new batches, recorded before
//! they are sent. That goes for every row, also the rest of an entry: earlier releases cut entries where a
//! batch became full. A writer that was thought dead and is not finds out with its next word to Redis, and goes
//! on in another lane ([`replace`]). Its batches that were recorded are sent by both writers, under one id.
//!
//! Nothing is deleted by size or age: only entries whose rows are done are released, one by one.
//!
//! It is not for Redis as a cache: with an eviction policy that drops keys, rows are dropped. How much survives the end
//! of Redis itself is Redis's to say (`appendonly`, `appendfsync`).

mod address;
mod adoption;
mod connection;
mod entry;
mod lane;
mod lane_index;
mod link;
mod process;
mod queue;
mod replace;
mod scripts;
mod state;
mod worker;

use std::io;
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::Instant;

pub use address::{AddressError, RedisAddress};

use crate::buffer::{AppendError, Appended, Buffer, BufferError, BufferEvents, Kept, LeftOvers, Open, Ready, Sealed};
use crate::destination::Destination;
use crate::id::BatchId;
use crate::rows::{Body, Rows};
use connection::ConnectionError;
use link::Link;
use state::BatchLimits;
use worker::{Shared, Worker};

pub struct RedisBuffer {
    shared: Arc<Shared>,
    process_id: u32,
}

impl RedisBuffer {
    /// Connects, registers a lane, and takes over what dead writers for the same table have left. Waits for
    /// Redis, up to the address's `answer_limit` a time.
    ///
    /// # Errors
    /// Fails where Redis is not reached or refuses a command, or the thread can't be started.
    pub fn open(
        address: RedisAddress,
        destination: Destination,
        batch_rows: usize,
        batch_bytes: usize,
    ) -> Result<RedisBuffer, BufferError> {
        let place = format!("{address:?}");
        let failed = |error: ConnectionError| BufferError::Other(format!("the writer's buffer {place}: {error}"));
        let limits = BatchLimits { rows: batch_rows.max(1), bytes: batch_bytes.max(1) };
        let (name, owner) = (BatchId::random()?.to_string(), BatchId::random()?.to_string());
        let shared = Arc::new(Shared::new(address, destination, limits, owner, process::own_identity()));
        let mut link = Link::open(&shared.address).map_err(failed)?;
        Self::take_place(&shared, &mut link, &name).map_err(failed)?;
        let worker = Worker::new(shared.clone(), link);
        std::thread::Builder::new().name("windrow-redis".into()).spawn(move || worker.run())?;
        Ok(RedisBuffer { shared, process_id: std::process::id() })
    }

    fn take_place(shared: &Shared, link: &mut Link, name: &str) -> Result<(), ConnectionError> {
        let lane = shared.bucket.lane(name, &shared.owner);
        shared.register(link, &lane)?;
        shared.lock().enter_own(lane);
        shared.adopt(link)
    }
}

impl Buffer for RedisBuffer {
    fn attach(&self, events: Arc<dyn BufferEvents>) {
        self.shared.attach(events);
    }

    fn survives(&self) -> bool {
        true
    }

    fn append(&self, rows: Rows<'_>) -> Result<Appended, AppendError> {
        let mut state = self.shared.lock();
        if state.is_closed {
            return Err(AppendError::Closed);
        }
        if self.shared.has_ended.load(Ordering::SeqCst) {
            return Err(AppendError::Failed(BufferError::Other("the thread that speaks to Redis has ended".into())));
        }
        let deadline = Instant::now() + self.shared.address.patience;
        let first = state.append(rows, self.shared.limits, deadline);
        drop(state);
        self.shared.ring();
        Ok(Appended { first, kept: Kept::Later, ready: Ready::No })
    }

    fn next_position(&self) -> u64 {
        self.shared.lock().next_position
    }

    fn open(&self) -> Open {
        self.shared.lock().open(self.shared.limits)
    }

    fn seal(&self) -> Result<Option<Sealed>, BufferError> {
        let id = BatchId::random()?;
        let sealed = self.shared.lock().seal(id, self.shared.limits);
        self.shared.ring();
        Ok(sealed)
    }

    fn load(&self, id: BatchId) -> Result<Body, BufferError> {
        let body = self.shared.lock().load(id);
        self.shared.ring();
        body
    }

    fn split(&self, id: BatchId, cuts: &[usize]) -> Result<Vec<Sealed>, BufferError> {
        let ids: Vec<BatchId> = (0..=cuts.len()).map(|_| BatchId::random()).collect::<io::Result<_>>()?;
        let pieces = self.shared.lock().split(id, cuts, ids);
        self.shared.ring();
        pieces
    }

    fn done(&self, id: BatchId) -> Result<(), BufferError> {
        let outcome = self.shared.lock().done(id);
        self.shared.ring();
        outcome
    }

    fn left_overs(&self) -> Result<LeftOvers, BufferError> {
        Ok(std::mem::take(&mut self.shared.lock().found))
    }

    fn close(&self) {
        self.shared.lock().is_closed = true;
        self.shared.ring();
        self.shared.wait_for_end();
    }
}

impl Drop for RedisBuffer {
    fn drop(&mut self) {
        // A forked child has neither the thread nor, perhaps, a lock that can be taken.
        if std::process::id() != self.process_id {
            return;
        }
        self.shared.lock().is_closed = true;
        self.shared.ring();
    }
}
