//! The store: the log of dead letters, and the index of it in memory.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use prometheus_client::registry::Registry;
use tokio::sync::oneshot;
use windrow_log::{CommitError, Committer, Context, Disk, Log, LogOptions, ReadError, RecordId, Room};

use super::dead_letter::DeadLetter;
use super::incoming::{Encoded, Incoming};
use super::index::{Amount, Entry, Identity, Index, Listing};
use super::message::{MessageDeadLetter, MessageRetrier, MessageSource, MessagesNotKept, NotKept};
use super::metrics::Metrics;
use super::record::{encode_gone, Gone, GONE};
use super::recovery::{recover, DeadLettersOpenError};
use super::selection::{Page, Selection};
use super::summary::{DeadLetterId, Origin, Stream};
use crate::dead_letter_store::{DeadLetterStore, DeadLettersFull, FailedInsert, KeepError, Keeping};
use crate::sink::TableKey;

#[derive(Debug, Clone, Copy)]
pub struct DeadLetterOptions {
    /// The most bytes that dead letters may take, records and memory together.
    pub max_bytes: u64,
}

/// The most ids in one record of dead letters that are gone.
const MAX_GONE_AT_ONCE: usize = 10_000;
const MAX_CONTEXTS: usize = 256;
const LARGEST_SEGMENT_BYTES: u64 = 8 << 20;
const SMALLEST_SEGMENT_BYTES: u64 = 256 << 10;
const RESERVE_BYTES: u64 = 256 << 10;

impl DeadLetterOptions {
    /// Returns the options of the log. Its files may take more than the dead letters in them: segments are
    /// given back when few of their dead letters are left. The bound of the dead letters counts, so that
    /// discarding one makes room for another at once.
    fn log_options(&self) -> LogOptions {
        let segment_bytes = (self.max_bytes / 8).clamp(SMALLEST_SEGMENT_BYTES, LARGEST_SEGMENT_BYTES);
        let max_bytes = self.max_bytes.saturating_mul(3).saturating_add(64 * segment_bytes);
        LogOptions { segment_bytes, max_bytes, reserve_bytes: RESERVE_BYTES }
    }
}

/// The reason why an operation on dead letters failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeadLetterError {
    NotWritten(CommitError),
    NoRoom,
    Unreadable(String),
}

impl fmt::Display for DeadLetterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeadLetterError::NotWritten(error) => error.fmt(f),
            DeadLetterError::NoRoom => f.write_str("there is no room in the log of dead letters"),
            DeadLetterError::Unreadable(why) => write!(f, "the dead letter can't be read: {why}"),
        }
    }
}

impl std::error::Error for DeadLetterError {}

/// The store of all dead letters. Clones are handles of the same store.
#[derive(Clone)]
pub struct DeadLetters {
    shared: Arc<Shared>,
}

struct Shared {
    log: Log,
    options: DeadLetterOptions,
    metrics: Metrics,
    state: Mutex<State>,
    /// True if the bound is reached. Every insert reads this.
    is_full: AtomicBool,
    retrier: Mutex<Option<Arc<dyn MessageRetrier>>>,
}

#[derive(Default)]
struct State {
    index: Index,
    /// Origins by the kind of the record and its encoded context.
    contexts: HashMap<(u8, Vec<u8>), SharedOrigin>,
    /// Bytes of dead letters that are being written.
    pending_bytes: u64,
    /// Tables whose dead letters were refused for lack of room.
    turned_away: HashSet<TableKey>,
}

/// The context and the origin that dead letters share.
#[derive(Clone)]
struct SharedOrigin {
    context: Context,
    origin: Arc<Origin>,
}

/// A dead letter on its way to the disk; `None` if it is there already.
type Writing = Option<oneshot::Receiver<Result<(), CommitError>>>;

impl DeadLetters {
    /// Opens the store and reads its log. The committer has to be run, or else nothing is written.
    ///
    /// # Errors
    /// Fails where the log can't be opened, or a record is not understood.
    pub fn open<D: Disk>(
        disk: D,
        options: DeadLetterOptions,
        registry: &mut Registry,
    ) -> Result<(DeadLetters, Committer<D>), DeadLettersOpenError> {
        let recovered = recover(disk, options.log_options())?;
        let metrics = Metrics::register(registry, options.max_bytes);
        for table in recovered.index.by_table() {
            metrics.kept(&table.database, &table.table, table.amount);
        }
        let state = State { index: recovered.index, ..State::default() };
        let shared = Shared {
            log: recovered.log,
            options,
            metrics,
            is_full: AtomicBool::new(state.held_bytes() >= options.max_bytes),
            state: Mutex::new(state),
            retrier: Mutex::default(),
        };
        Ok((DeadLetters { shared: Arc::new(shared) }, recovered.committer))
    }

    /// Returns the log, whose committer is to be run, and ended.
    pub fn log(&self) -> Log {
        self.shared.log.clone()
    }

    pub fn list(&self, selection: &Selection, page: Page) -> Listing {
        self.shared.lock().index.list(selection, page)
    }

    /// Returns the ids of all selected dead letters, in the order in which they became dead letters.
    pub fn select(&self, selection: &Selection) -> Vec<DeadLetterId> {
        self.shared.lock().index.select(selection)
    }

    pub fn amount(&self) -> Amount {
        self.shared.lock().index.all()
    }

    /// Says whether the bound is reached.
    pub fn is_full(&self) -> bool {
        self.shared.is_full.load(Ordering::Acquire)
    }

    /// Returns how many of these dead letters, from the first on, take at most `max_bytes` of the bound. At
    /// least one.
    pub fn how_many(&self, ids: &[DeadLetterId], max_dead_letters: usize, max_bytes: u64) -> usize {
        let state = self.shared.lock();
        let mut bytes = 0;
        let fits = |id: &&DeadLetterId| {
            bytes += state.index.get(**id).map_or(0, |entry| entry.held_bytes);
            bytes <= max_bytes
        };
        ids.iter().take(max_dead_letters).take_while(fits).count().max(1).min(ids.len())
    }

    /// Reads a dead letter with its rows; returns `None` if there is none of this id. Blocks.
    ///
    /// # Errors
    /// Fails where the record can't be read, or is not understood.
    pub fn read(&self, id: DeadLetterId) -> Result<Option<DeadLetter>, DeadLetterError> {
        if self.shared.lock().index.get(id).is_none() {
            return Ok(None);
        }
        match self.shared.log.read(RecordId(id.0)) {
            Ok(record) => match DeadLetter::decode(id, &record) {
                Some(dead_letter) => Ok(Some(dead_letter)),
                None => Err(DeadLetterError::Unreadable(format!("record {id} is not a dead letter of this version"))),
            },
            // It went while we looked.
            Err(ReadError::Gone) => Ok(None),
            Err(error) => Err(DeadLetterError::Unreadable(error.to_string())),
        }
    }

    /// Forgets dead letters permanently. Returns the number of them that there were.
    ///
    /// # Errors
    /// Fails where the log has no room for the record that says so, or the record can't be written.
    pub async fn forget(&self, ids: &[DeadLetterId], how: Gone) -> Result<u64, DeadLetterError> {
        let mut forgotten = 0;
        for ids in ids.chunks(MAX_GONE_AT_ONCE) {
            forgotten += self.forget_some(ids, how).await?;
        }
        Ok(forgotten)
    }

    async fn forget_some(&self, ids: &[DeadLetterId], how: Gone) -> Result<u64, DeadLetterError> {
        let shared = &self.shared;
        let known: Vec<DeadLetterId> = {
            let state = shared.lock();
            ids.iter().copied().filter(|id| state.index.get(*id).is_some()).collect()
        };
        if known.is_empty() {
            return Ok(0);
        }
        let gone = shared.log.append(GONE, None, encode_gone(&known, how), Room::Reserve);
        let gone = gone.map_err(|_full| DeadLetterError::NoRoom)?;
        gone.durable.await.map_err(DeadLetterError::NotWritten)?;
        let forgotten = shared.drop_from_index(&known);
        // What tells that they are gone may only go after them.
        shared.log.release_all(known.iter().map(|id| RecordId(id.0)));
        shared.log.release(gone.id);
        shared.metrics.gone(how, forgotten);
        Ok(forgotten)
    }

    /// Returns the numbers that these dead letters had in the journal, as far as they were there.
    pub fn journal_ids(&self, ids: &[DeadLetterId]) -> Vec<u64> {
        let state = self.shared.lock();
        let journal_id = |id: &DeadLetterId| match state.index.get(*id)?.identity {
            Identity::Journaled(journal_id) => Some(journal_id),
            Identity::Unknown | Identity::Message(_) => None,
        };
        ids.iter().filter_map(journal_id).collect()
    }

    /// Returns the offsets of a partition's messages, within `offsets`, that are dead letters because they
    /// could not be read. They were in no batch, and must not be in the same batch when it is pushed again,
    /// even if they can be read by then. A message that the backend refused was in its batch: without the
    /// message the batch would be another one, and would go through where it was stored in parts before.
    pub fn unread_offsets(&self, source: &MessageSource, partition: i32, offsets: RangeInclusive<i64>) -> Vec<i64> {
        let MessageSource { pipeline, topic, topic_id, .. } = source;
        let stream = Stream { pipeline: pipeline.clone(), topic: topic.clone(), topic_id: *topic_id };
        self.shared.lock().index.unread_offsets(&Arc::new(stream), partition, offsets)
    }

    /// Sets the reader of messages that are retried. Without it, no message can be retried.
    pub fn set_message_retrier(&self, retrier: Arc<dyn MessageRetrier>) {
        *self.shared.retrier.lock().unwrap_or_else(PoisonError::into_inner) = Some(retrier);
    }

    pub fn message_retrier(&self) -> Option<Arc<dyn MessageRetrier>> {
        self.shared.retrier.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Keeps messages; they are durable when this returns `Ok`. A message that is a dead letter already stays
    /// the same dead letter.
    ///
    /// # Errors
    /// Fails where the bound is reached, or the log can't be written; the error has the messages that are not
    /// kept.
    pub async fn keep_messages(&self, dead_letters: Vec<MessageDeadLetter>) -> Result<(), MessagesNotKept> {
        let begun = dead_letters.into_iter().map(|dead_letter| (self.take_in(&dead_letter), dead_letter)).collect();
        self.written(begun).await.map_err(|(dead_letters, why)| MessagesNotKept { dead_letters, why })
    }

    /// Waits for dead letters that are being written, and returns those that were not. All of them were
    /// handed over before the first is waited for: one sync serves them all.
    async fn written<L>(&self, begun: Vec<(Result<Writing, NotKept>, L)>) -> Result<(), (Vec<L>, NotKept)> {
        let (mut left, mut why) = (Vec::new(), None);
        for (taken, dead_letter) in begun {
            let problem = match taken {
                Ok(None) => continue,
                Ok(Some(durable)) => match durable.await {
                    Ok(Ok(())) => continue,
                    Ok(Err(error)) => NotKept::NotWritten(error.to_string()),
                    Err(_) => NotKept::NotWritten(CommitError::Closed.to_string()),
                },
                Err(problem) => problem,
            };
            self.shared.metrics.not_kept();
            why.get_or_insert(problem);
            left.push(dead_letter);
        }
        why.map_or(Ok(()), |why| Err((left, why)))
    }

    /// Begins to write a dead letter. It is listed as soon as it is on the disk, even if the caller has gone.
    fn take_in<L: Incoming>(&self, dead_letter: &L) -> Result<Writing, NotKept> {
        let shared = &self.shared;
        let mut state = shared.lock();
        let SharedOrigin { context, origin } = state.known(&shared.log, dead_letter);
        let identity = dead_letter.identity(&origin);
        if state.index.same(&identity).is_some() {
            return Ok(None);
        }
        if state.held_bytes() >= shared.options.max_bytes {
            state.turned_away.insert(dead_letter.table());
            shared.is_full.store(true, Ordering::Release);
            return Err(NotKept::Full { max_bytes: shared.options.max_bytes });
        }
        let Encoded { summary, payload } = dead_letter.encode(origin);
        let entry = Entry::new(summary, identity, payload.len());
        state.pending_bytes += entry.held_bytes;
        // If the log is closed, it answers at once.
        drop(state);
        let held_bytes = entry.held_bytes;
        let (sender, receiver) = oneshot::channel();
        let then = {
            let shared = shared.clone();
            move |id: RecordId, outcome: Result<(), CommitError>| {
                match outcome.is_ok() {
                    true => shared.list(DeadLetterId(id.0), entry),
                    false => shared.give_up(held_bytes),
                }
                // Whoever asked for it to be kept may have gone.
                let _ = sender.send(outcome);
            }
        };
        if let Err(full) = shared.log.append_then(L::KIND, Some(&context), payload, Room::Ordinary, then) {
            shared.give_up(held_bytes);
            return Err(NotKept::NotWritten(full.to_string()));
        }
        Ok(Some(receiver))
    }
}

impl DeadLetterStore for DeadLetters {
    fn keep(&self, dead_letters: Vec<FailedInsert>) -> Keeping<'_> {
        Box::pin(async move {
            let begun = dead_letters.into_iter().map(|dead_letter| (self.take_in(&dead_letter), dead_letter)).collect();
            self.written(begun).await.map_err(|(dead_letters, why)| KeepError { dead_letters, why: why.to_string() })
        })
    }

    fn refuses(&self, table: &TableKey) -> Option<DeadLettersFull> {
        let shared = &self.shared;
        if !self.is_full() {
            return None;
        }
        let state = shared.lock();
        let is_meant =
            state.turned_away.contains(table) || state.index.of_table(&table.database, &table.table).dead_letters > 0;
        is_meant.then_some(DeadLettersFull { max_bytes: shared.options.max_bytes })
    }

    fn holds(&self, journal_id: u64) -> bool {
        self.shared.lock().index.of_journal(journal_id).is_some()
    }
}

impl State {
    fn held_bytes(&self) -> u64 {
        self.index.all().bytes + self.pending_bytes
    }

    fn known<L: Incoming>(&mut self, log: &Log, dead_letter: &L) -> SharedOrigin {
        let key = (L::KIND, dead_letter.context());
        if self.contexts.len() >= MAX_CONTEXTS && !self.contexts.contains_key(&key) {
            self.contexts.clear();
        }
        let new = |(_, context): &(u8, Vec<u8>)| SharedOrigin {
            context: log.context(context.clone()),
            origin: Arc::new(dead_letter.origin()),
        };
        self.contexts.entry(key).or_insert_with_key(new).clone()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lists a dead letter that is on the disk.
    fn list(&self, id: DeadLetterId, mut entry: Entry) {
        entry.set_id(id);
        let mut state = self.lock();
        state.pending_bytes -= entry.held_bytes;
        // Whoever had it kept may have gone before it was written, and asked for it anew. As at a start, the later one
        // counts.
        let earlier = state.index.same(&entry.identity).and_then(|earlier| state.index.remove(earlier));
        let (origin, code) = (entry.summary.origin.clone(), entry.summary.code);
        state.index.insert(entry);
        self.metrics.added(&origin.database, &origin.table, code);
        self.metrics.kept(&origin.database, &origin.table, state.index.of_table(&origin.database, &origin.table));
        self.look_at_bound(&mut state);
        drop(state);
        if let Some(earlier) = earlier {
            self.log.release(RecordId(earlier.summary.id.0));
        }
    }

    /// Takes back the bytes of a dead letter that could not be written.
    fn give_up(&self, held_bytes: u64) {
        let mut state = self.lock();
        state.pending_bytes -= held_bytes;
        self.look_at_bound(&mut state);
    }

    /// Removes dead letters from the index. Returns the number of them that there were.
    fn drop_from_index(&self, ids: &[DeadLetterId]) -> u64 {
        let mut state = self.lock();
        let mut dropped = 0;
        for entry in ids.iter().filter_map(|id| state.index.remove(*id)).collect::<Vec<_>>() {
            let origin = &entry.summary.origin;
            self.metrics.kept(&origin.database, &origin.table, state.index.of_table(&origin.database, &origin.table));
            dropped += 1;
        }
        self.look_at_bound(&mut state);
        dropped
    }

    fn look_at_bound(&self, state: &mut State) {
        let is_full = state.held_bytes() >= self.options.max_bytes;
        if !is_full {
            state.turned_away.clear();
        }
        self.is_full.store(is_full, Ordering::Release);
    }
}
