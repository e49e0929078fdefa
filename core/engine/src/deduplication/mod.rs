//! The deduplication index: which inserts are stored, or on their way, by the keys that they are known by, so
//! that a repeat is recognised.
//!
//! An insert with [`DedupKeys`] *claims* them when it comes ([`DeduplicationIndex::resolve`]). A repeat that
//! comes meanwhile waits for the first one's end; a repeat that comes later is answered with success and
//! stores nothing. An insert that isn't stored frees its keys.
//!
//! Stored inserts stand in a log of their own, before the journal says that they are done. So after a crash
//! an insert is in the journal, and claims its keys again, or in the deduplication index, or in both, and
//! then it is sent under the id that it had. A record of the log is released when a table's bounds, or its
//! end, have taken all entries of the record. So the log is as large as what is remembered, and reading it at
//! the start forgets again by the same rules.
//!
//! The use of the index for inserts is in `inserts.rs`, its structure in `state.rs`, the right to store in
//! `claim.rs`, and the form of what is written in `record.rs` and `keys.rs`.

mod claim;
mod cut;
mod inserts;
mod keys;
mod record;
mod state;
#[cfg(test)]
mod tests;

use std::borrow::Borrow;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use windrow_log::{Committer, Disk, Durable, Log, LogOptions, OpenError, RecordId, Room};

use crate::environment::Environment;
use crate::insert::AckLevel;
pub use claim::ClaimHandle;
use claim::{Claim, Flight};
pub(crate) use inserts::{enter_stored, Claimed};
pub use keys::{table_by_name, DedupKeys, DeduplicationBounds};
use record::Record;
use state::{RepeatState, State};

/// A handle of the deduplication index; cheap to clone.
#[derive(Clone)]
pub struct DeduplicationIndex {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    log: Option<Log>,
    environment: Arc<dyn Environment>,
}

/// The answer of the deduplication index for an insert.
pub enum Resolved {
    /// All of the insert is stored, or as safe as it asks to be.
    Repeat,
    /// The insert is to be stored under these keys, which are claimed. Its rows for the partitions `known`
    /// are stored already.
    Mine { keys: DedupKeys, known: Vec<u64> },
}

/// The reason why a deduplication index can't be opened.
#[derive(Debug)]
pub enum DeduplicationIndexError {
    Log(OpenError),
    /// A record is whole, and its kind or version is not known here.
    Unknown {
        record: u64,
        kind: u8,
    },
}

impl fmt::Display for DeduplicationIndexError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeduplicationIndexError::Log(error) => write!(f, "the deduplication index: {error}"),
            DeduplicationIndexError::Unknown { record, kind } => write!(
                f,
                "the deduplication index: record {record} is of a kind ({kind}) or version that this version of Windrow does \
                 not know; it was written by a newer one"
            ),
        }
    }
}

impl std::error::Error for DeduplicationIndexError {}

/// Entries of the index on their way to the disk.
#[must_use]
pub struct Entered {
    durables: Vec<Durable>,
}

impl Entered {
    /// Waits until the entries are on the disk. If the disk fails, that is logged: what was entered then
    /// holds until the process ends.
    pub async fn wait(self) {
        for durable in self.durables {
            if let Err(error) = durable.await {
                tracing::error!(%error, "stored inserts could not be written to the deduplication index: after a restart their repeats won't be recognised");
            }
        }
    }
}

/// Number of times that oldest entries make room for new ones before a full log is taken as it is.
const TIMES_TO_MAKE_ROOM: u32 = 8;

impl DeduplicationIndex {
    /// Creates an index that remembers nothing over restarts.
    pub fn in_memory(environment: Arc<dyn Environment>) -> DeduplicationIndex {
        DeduplicationIndex { shared: Arc::new(Shared { state: Mutex::default(), log: None, environment }) }
    }

    /// Opens the index, and reads what is remembered. The committer is to be run on a thread of its own.
    ///
    /// # Errors
    /// Fails where the log can't be opened, or has a record that is not known here.
    pub fn open<D: Disk>(
        disk: D,
        options: LogOptions,
        environment: Arc<dyn Environment>,
    ) -> Result<(DeduplicationIndex, Committer<D>), DeduplicationIndexError> {
        let (mut state, mut forgotten, mut unknown) = (State::default(), Vec::new(), None);
        let opened = windrow_log::open(disk, options, &mut |recovered| match record::decode(
            recovered.kind,
            recovered.payload,
        ) {
            Some(Record::Stored { at_micros, inserts }) => {
                inserts.iter().for_each(|keys| state.enter(keys, at_micros, Some(recovered.id.0)));
            }
            Some(Record::Forgotten { table }) => {
                state.forget(table);
                forgotten.push(recovered.id);
            }
            None => unknown = Some(DeduplicationIndexError::Unknown { record: recovered.id.0, kind: recovered.kind }),
        });
        let (log, committer) = opened.map_err(DeduplicationIndexError::Log)?;
        if let Some(unknown) = unknown {
            return Err(unknown);
        }
        let deduplication =
            DeduplicationIndex { shared: Arc::new(Shared { state: Mutex::new(state), log: Some(log), environment }) };
        deduplication.release_free_records();
        // After what they made free.
        deduplication.release(forgotten);
        Ok((deduplication, committer))
    }

    /// Finds out whether an insert is a repeat. Waits while another insert with its keys is on its way;
    /// dropping the future changes nothing.
    pub async fn resolve(&self, mut keys: DedupKeys, ack: AckLevel) -> Resolved {
        // Who doesn't wait until it is stored is answered when it can't be lost.
        let durable_will_do = ack != AckLevel::Stored;
        loop {
            let now_micros = self.shared.environment.wall_micros();
            let known = self.shared.lock().look(&keys, durable_will_do, now_micros);
            self.release_free_records();
            match known {
                RepeatState::Repeat => return Resolved::Repeat,
                RepeatState::Wait(flight) => flight.wait(durable_will_do).await,
                RepeatState::New { .. } => {
                    if let Some(known) = self.claim(&mut keys, durable_will_do, now_micros) {
                        return Resolved::Mine { keys, known };
                    }
                }
            }
        }
    }

    /// Says whether an insert with these keys is stored or on its way.
    pub fn knows(&self, keys: &DedupKeys) -> bool {
        self.knows_any(std::iter::once(keys))
    }

    /// Says whether one of these inserts is stored or on its way.
    pub fn knows_any<K: Borrow<DedupKeys>>(&self, keys: impl IntoIterator<Item = K>) -> bool {
        let now_micros = self.shared.environment.wall_micros();
        let mut state = self.shared.lock();
        let knows = keys.into_iter().any(|keys| state.knows(keys.borrow(), now_micros));
        drop(state);
        self.release_free_records();
        knows
    }

    /// Claims what is new of the insert, and returns the partitions that are not. Returns `None` if another
    /// insert was faster.
    fn claim(&self, keys: &mut DedupKeys, durable_will_do: bool, now_micros: u64) -> Option<Vec<u64>> {
        let mut state = self.shared.lock();
        let RepeatState::New { partitions } = state.look(keys, durable_will_do, now_micros) else { return None };
        let new: Vec<u64> = partitions.into_iter().flatten().collect();
        let known = keys.partitions.iter().copied().filter(|partition| !new.contains(partition)).collect();
        keys.partitions = new;
        let flight = Arc::new(Flight::new());
        state.claim(keys, &flight);
        drop(state);
        keys.claim = Some(self.claim_of(keys, flight));
        Some(known)
    }

    /// Takes the keys of an insert that an earlier run left in the journal, until the insert is claimed by
    /// [`reclaim`](Self::reclaim). Returns false if it is stored, and the journal only doesn't say so.
    pub fn reclaim_left(&self, keys: DedupKeys) -> bool {
        if self.shared.lock().is_stored(&keys) {
            return false;
        }
        self.reclaim(keys).park();
        true
    }

    /// Claims the keys of an insert that comes back from the journal: after a crash, or from where it was
    /// parked.
    pub fn reclaim(&self, mut keys: DedupKeys) -> DedupKeys {
        let mut state = self.shared.lock();
        let flight = state.flight(&keys).unwrap_or_else(|| {
            let flight = Arc::new(Flight::new());
            state.claim(&keys, &flight);
            flight
        });
        drop(state);
        let claim = self.claim_of(&keys, flight);
        claim.handle().tell_durable();
        keys.claim = Some(claim);
        keys
    }

    fn claim_of(&self, keys: &DedupKeys, flight: Arc<Flight>) -> Claim {
        Claim { deduplication: Arc::downgrade(&self.shared), table: keys.table, key: keys.key, flight, holds: true }
    }

    /// Enters inserts that are stored. From now on their repeats are recognised, and after a restart once the
    /// result has resolved.
    pub fn enter(&self, mut stored: Vec<DedupKeys>) -> Entered {
        let mut claims = Vec::with_capacity(stored.len());
        for claim in stored.iter_mut().filter_map(|keys| keys.claim.take()) {
            claims.push(claim);
        }
        let at_micros = self.shared.environment.wall_micros();
        let mut durables = Vec::new();
        for inserts in stored.chunk_by(|one, other| one.table == other.table) {
            let appended = self.append_stored(at_micros, inserts);
            let record = appended.as_ref().map(|(id, _)| id.0);
            let mut state = self.shared.lock();
            inserts.iter().for_each(|keys| state.enter(keys, at_micros, record));
            drop(state);
            durables.extend(appended.map(|(_, durable)| durable));
        }
        for mut claim in claims {
            claim.holds = false;
            claim.flight.end();
        }
        self.release_free_records();
        Entered { durables }
    }

    fn append_stored(&self, at_micros: u64, inserts: &[DedupKeys]) -> Option<(RecordId, Durable)> {
        let log = self.shared.log.as_ref()?;
        for _ in 0..TIMES_TO_MAKE_ROOM {
            let payload = record::encode_stored(at_micros, inserts);
            match log.append(record::STORED, None, payload, Room::Ordinary) {
                Ok(appended) => return Some((appended.id, appended.durable)),
                Err(full) => {
                    tracing::warn!(%full, "the deduplication index has no room: the oldest entries of its largest table are forgotten");
                    let made_room = self.shared.lock().make_room();
                    self.release_free_records();
                    if !made_room {
                        break;
                    }
                }
            }
        }
        tracing::error!(
            inserts = inserts.len(),
            "stored inserts do not fit into the deduplication index: after a restart their repeats won't be recognised"
        );
        None
    }

    /// Forgets a table whose rows are gone, or some of them: nothing that was stored is a repeat any more.
    /// Ends when that is on the disk.
    pub async fn forget(&self, table: u128) {
        self.shared.lock().forget(table);
        self.release_free_records();
        let Some(log) = &self.shared.log else { return };
        match log.append(record::FORGOTTEN, None, record::encode_forgotten(table), Room::Reserve) {
            Ok(appended) => {
                log.release(appended.id);
                if let Err(error) = appended.durable.await {
                    tracing::error!(%error, "the deduplication index could not be told that a table's rows are gone");
                }
            }
            Err(full) => {
                tracing::error!(%full, "the deduplication index could not be told that a table's rows are gone")
            }
        }
    }

    /// Forgets all tables, as [`forget`](Self::forget) does with one.
    pub async fn forget_all(&self) {
        let tables = self.shared.lock().tables();
        for table in tables {
            self.forget(table).await;
        }
    }

    /// Returns the log that the index is kept in, for whoever has to close that at the end.
    pub fn log(&self) -> Option<Log> {
        self.shared.log.clone()
    }

    /// Returns the number of entries that are remembered.
    pub fn entries(&self) -> u64 {
        self.shared.lock().entries()
    }

    fn release_free_records(&self) {
        let free = self.shared.lock().take_free_records();
        if !free.is_empty() {
            self.release(free.into_iter().map(RecordId).collect());
        }
    }

    fn release(&self, records: Vec<RecordId>) {
        if let Some(log) = &self.shared.log {
            log.release_all(records);
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
