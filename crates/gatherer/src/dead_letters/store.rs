//! The store: what is in the log, and what is known of it in memory.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use prometheus_client::registry::Registry;
use tokio::sync::oneshot;
use windrow_journal::log::{CommitError, Committer, Context, Log, LogOptions, ReadError, RecordId, Room};
use windrow_journal::Disk;

use super::index::{Amount, Entry, Index, Listing};
use super::letter::{self, DeadLetter, Written};
use super::metrics::Metrics;
use super::record::{encode_gone, Gone, GONE, LETTER};
use super::recovery::{recover, LettersOpenError};
use super::selection::{Page, Selection};
use super::summary::LetterId;
use crate::commands::TableName;
use crate::letters::{DeadLetterStore, KeepError, Keeping, Letter, LettersFull};

#[derive(Debug, Clone, Copy)]
pub struct DeadLetterOptions {
    /// What letters may take, records and memory together.
    pub max_bytes: u64,
}

/// Ids in one record of those that are gone.
const MAX_GONE_AT_ONCE: usize = 10_000;
const MAX_CONTEXTS: usize = 256;
const LARGEST_SEGMENT_BYTES: u64 = 8 << 20;
const SMALLEST_SEGMENT_BYTES: u64 = 256 << 10;
const RESERVE_BYTES: u64 = 256 << 10;

impl DeadLetterOptions {
    /// The files may take more than the letters in them: segments are given back when few of their letters are left. The bound
    /// that counts is that of the letters, so that discarding one makes room for another at once.
    fn log_options(&self) -> LogOptions {
        let segment_bytes = (self.max_bytes / 8).clamp(SMALLEST_SEGMENT_BYTES, LARGEST_SEGMENT_BYTES);
        let max_bytes = self.max_bytes.saturating_mul(3).saturating_add(64 * segment_bytes);
        LogOptions { segment_bytes, max_bytes, reserve_bytes: RESERVE_BYTES }
    }
}

/// Why something could not be done with letters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LetterError {
    NotWritten(CommitError),
    NoRoom,
    Unreadable(String),
}

impl fmt::Display for LetterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LetterError::NotWritten(error) => error.fmt(f),
            LetterError::NoRoom => f.write_str("there is no room in the log of dead letters"),
            LetterError::Unreadable(why) => write!(f, "the letter can't be read: {why}"),
        }
    }
}

impl std::error::Error for LetterError {}

/// All dead letters there are. Clones are handles of the same store.
#[derive(Clone)]
pub struct DeadLetters {
    shared: Arc<Shared>,
}

struct Shared {
    log: Log,
    options: DeadLetterOptions,
    metrics: Metrics,
    state: Mutex<State>,
    /// Whether the bound is reached: what every insert looks at.
    is_full: AtomicBool,
}

#[derive(Default)]
struct State {
    index: Index,
    contexts: HashMap<Vec<u8>, Context>,
    /// Of letters that are being written.
    pending_bytes: u64,
    /// Tables that had letters when there was no room for them.
    turned_away: HashSet<TableName>,
}

impl DeadLetters {
    /// Reads what is there. The committer has to be run for anything to be written.
    pub fn open<D: Disk>(
        disk: D,
        options: DeadLetterOptions,
        registry: &mut Registry,
    ) -> Result<(DeadLetters, Committer<D>), LettersOpenError> {
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
        };
        Ok((DeadLetters { shared: Arc::new(shared) }, recovered.committer))
    }

    /// Whose committer is to be run, and ended.
    pub fn log(&self) -> Log {
        self.shared.log.clone()
    }

    pub fn list(&self, selection: &Selection, page: Page) -> Listing {
        self.shared.lock().index.list(selection, page)
    }

    /// The ids of all letters that are meant, in the order in which they became letters.
    pub fn select(&self, selection: &Selection) -> Vec<LetterId> {
        self.shared.lock().index.select(selection)
    }

    pub fn amount(&self) -> Amount {
        self.shared.lock().index.all()
    }

    /// How many of these letters, from the first on, have at most so many bytes of payload. At least one.
    pub fn how_many(&self, ids: &[LetterId], max_letters: usize, max_bytes: u64) -> usize {
        let state = self.shared.lock();
        let mut bytes = 0;
        let fits = |id: &&LetterId| {
            bytes += state.index.get(**id).map_or(0, |entry| entry.held_bytes);
            bytes <= max_bytes
        };
        ids.iter().take(max_letters).take_while(fits).count().max(1).min(ids.len())
    }

    /// Reads a letter with its rows; `None` if there is none of this id. Blocks.
    pub fn read(&self, id: LetterId) -> Result<Option<DeadLetter>, LetterError> {
        if self.shared.lock().index.get(id).is_none() {
            return Ok(None);
        }
        match self.shared.log.read(RecordId(id.0)) {
            Ok(record) => match DeadLetter::decode(id, &record) {
                Some(letter) => Ok(Some(letter)),
                None => Err(LetterError::Unreadable(format!("record {id} is not a letter of this version"))),
            },
            // It went while we looked.
            Err(ReadError::Gone) => Ok(None),
            Err(error) => Err(LetterError::Unreadable(error.to_string())),
        }
    }

    /// Forgets letters for ever; how many of them there were.
    pub async fn forget(&self, ids: &[LetterId], how: Gone) -> Result<u64, LetterError> {
        let mut forgotten = 0;
        for ids in ids.chunks(MAX_GONE_AT_ONCE) {
            forgotten += self.forget_some(ids, how).await?;
        }
        Ok(forgotten)
    }

    async fn forget_some(&self, ids: &[LetterId], how: Gone) -> Result<u64, LetterError> {
        let shared = &self.shared;
        let known: Vec<LetterId> = {
            let state = shared.lock();
            ids.iter().copied().filter(|id| state.index.get(*id).is_some()).collect()
        };
        if known.is_empty() {
            return Ok(0);
        }
        let gone = shared.log.append(GONE, None, encode_gone(&known, how), Room::Reserve);
        let gone = gone.map_err(|_full| LetterError::NoRoom)?;
        gone.durable.await.map_err(LetterError::NotWritten)?;
        let forgotten = shared.drop_from_index(&known);
        // What tells that they are gone may only go after them.
        shared.log.release_all(known.iter().map(|id| RecordId(id.0)));
        shared.log.release(gone.id);
        shared.metrics.gone(how, forgotten);
        Ok(forgotten)
    }

    /// Under which numbers these letters were in the journal, where they were.
    pub fn journal_ids(&self, ids: &[LetterId]) -> Vec<u64> {
        let state = self.shared.lock();
        ids.iter().filter_map(|id| state.index.get(*id)?.journal_id).collect()
    }

    /// Begins to write a letter; `None` if it is there already. It is listed as soon as it is on the disk, whoever waits for that.
    fn take_in(&self, letter: &Letter) -> Result<Option<oneshot::Receiver<Result<(), CommitError>>>, String> {
        let shared = &self.shared;
        let mut state = shared.lock();
        if letter.journal_id.is_some_and(|id| state.index.of_journal(id).is_some()) {
            return Ok(None);
        }
        if state.held_bytes() >= shared.options.max_bytes {
            state.turned_away.insert(table_of(letter));
            shared.is_full.store(true, Ordering::Release);
            return Err(format!("there are as many as dead_letters.max_bytes allows: {} bytes", state.held_bytes()));
        }
        let written = Written::of(letter);
        let context = state.context(&shared.log, letter::context(letter));
        let payload = written.encode(letter);
        let entry = Entry::new(written.into_summary(letter), letter.journal_id, payload.len());
        state.pending_bytes += entry.held_bytes;
        // If the log is closed, it answers at once.
        drop(state);
        let held_bytes = entry.held_bytes;
        let (sender, receiver) = oneshot::channel();
        let then = {
            let shared = shared.clone();
            move |id: RecordId, outcome: Result<(), CommitError>| {
                match outcome.is_ok() {
                    true => shared.list(LetterId(id.0), entry),
                    false => shared.give_up(held_bytes),
                }
                // Whoever asked for it to be kept may have gone.
                let _ = sender.send(outcome);
            }
        };
        if let Err(full) = shared.log.append_then(LETTER, Some(&context), payload, Room::Ordinary, then) {
            shared.give_up(held_bytes);
            return Err(full.to_string());
        }
        Ok(Some(receiver))
    }
}

impl DeadLetterStore for DeadLetters {
    fn keep(&self, letters: Vec<Letter>) -> Keeping<'_> {
        Box::pin(async move {
            // All of them are handed over before the first is waited for: one sync serves them all.
            let begun: Vec<_> = letters.into_iter().map(|letter| (self.take_in(&letter), letter)).collect();
            let (mut left, mut why) = (Vec::new(), None);
            for (taken, letter) in begun {
                let problem = match taken {
                    Ok(None) => continue,
                    Ok(Some(durable)) => match durable.await {
                        Ok(Ok(())) => continue,
                        Ok(Err(error)) => error.to_string(),
                        Err(_) => CommitError::Closed.to_string(),
                    },
                    Err(problem) => problem,
                };
                self.shared.metrics.not_kept();
                why.get_or_insert(problem);
                left.push(letter);
            }
            why.map_or(Ok(()), |why| Err(KeepError { letters: left, why }))
        })
    }

    fn refuses(&self, table: &TableName) -> Option<LettersFull> {
        let shared = &self.shared;
        if !shared.is_full.load(Ordering::Acquire) {
            return None;
        }
        let state = shared.lock();
        let is_meant =
            state.turned_away.contains(table) || state.index.of_table(&table.database, &table.table).letters > 0;
        is_meant.then_some(LettersFull { max_bytes: shared.options.max_bytes })
    }

    fn holds(&self, journal_id: u64) -> bool {
        self.shared.lock().index.of_journal(journal_id).is_some()
    }
}

impl State {
    fn held_bytes(&self) -> u64 {
        self.index.all().bytes + self.pending_bytes
    }

    fn context(&mut self, log: &Log, bytes: Vec<u8>) -> Context {
        if self.contexts.len() >= MAX_CONTEXTS && !self.contexts.contains_key(&bytes) {
            self.contexts.clear();
        }
        self.contexts.entry(bytes).or_insert_with_key(|bytes| log.context(bytes.clone())).clone()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A letter is on the disk.
    fn list(&self, id: LetterId, mut entry: Entry) {
        entry.set_id(id);
        let mut state = self.lock();
        state.pending_bytes -= entry.held_bytes;
        let (origin, code) = (entry.summary.origin.clone(), entry.summary.code);
        state.index.insert(entry);
        self.metrics.added(&origin.database, &origin.table, code);
        self.metrics.kept(&origin.database, &origin.table, state.index.of_table(&origin.database, &origin.table));
        self.look_at_bound(&mut state);
    }

    /// A letter could not be written.
    fn give_up(&self, held_bytes: u64) {
        let mut state = self.lock();
        state.pending_bytes -= held_bytes;
        self.look_at_bound(&mut state);
    }

    /// How many of these letters there were.
    fn drop_from_index(&self, ids: &[LetterId]) -> u64 {
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

fn table_of(letter: &Letter) -> TableName {
    TableName { database: letter.destination.database.clone(), table: letter.destination.table.clone() }
}
