//! The state that has to survive a crash: which appends have a staging table, which are decided, and how each
//! ended.
//!
//! A log in `<data-dir>/appends/log`. An append is *opened* in it before its staging table is made, *decided*
//! before the first row of it goes to the target, *ended* when it is certain how, and *cleared* when its
//! staging table is gone. Committed appends are remembered for a week, 100,000 at most: their clients may ask.

use std::collections::{HashMap, VecDeque};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::sync::oneshot;
use windrow_clickhouse::ErrorCode;
use windrow_log::{Folder, Log, LogOptions, RecordId, Room};

use super::publication::Publication;
use super::record::{End, Event, Record};
use crate::error::AppendError;
use crate::id::AppendId;

const OPTIONS: LogOptions = LogOptions { segment_bytes: 4 << 20, max_bytes: 256 << 20, reserve_bytes: 16 << 20 };
const REMEMBERED: usize = 100_000;
/// The bytes of needed records beyond which ends are forgotten earlier: an open append must always find room.
const CROWDED_BYTES: u64 = 128 << 20;
const REMEMBERED_FOR_MS: u64 = 7 * 24 * 3600 * 1000;
/// The time that the last group commit may take when all ends.
const LAST_GROUP: Duration = Duration::from_secs(10);

#[derive(Clone)]
pub(super) struct StateLog {
    log: Log,
    states: Arc<Mutex<States>>,
    ended: Arc<Mutex<Option<oneshot::Receiver<()>>>>,
}

#[derive(Default)]
struct States {
    by_id: HashMap<u128, AppendState>,
    /// Appends that have ended and are cleared, in the order in which they were cleared.
    remembered: VecDeque<u128>,
    /// Records of appends that are forgotten.
    released: Vec<RecordId>,
}

/// The state of an append, as far as it is known.
#[derive(Clone, Debug, Default)]
pub(super) struct AppendState {
    pub(super) opened: Option<Opened>,
    pub(super) publication: Option<Box<Publication>>,
    pub(super) end: Option<End>,
    ended_at_ms: u64,
    pub(super) is_cleared: bool,
    records: Vec<RecordId>,
}

#[derive(Clone, Debug)]
pub(super) struct Opened {
    pub(super) database: String,
    pub(super) table: String,
}

impl StateLog {
    /// Reads the log that is there. Blocks.
    pub(super) fn open(directory: &Path) -> Result<StateLog, String> {
        let path = directory.join("log");
        let problem = |error: &dyn std::fmt::Display| format!("the log of appends in {}: {error}", path.display());
        let folder = Folder::open(&path).map_err(|error| problem(&error))?;
        let (mut states, mut unknown) = (States::default(), 0u64);
        let mut visit = |found: windrow_log::Recovered<'_>| match Record::decode(found.kind, found.payload) {
            Some(record) => states.note(found.id, record),
            None => unknown += 1,
        };
        let (log, committer) = windrow_log::open(folder, OPTIONS, &mut visit).map_err(|error| problem(&error))?;
        if unknown > 0 {
            tracing::error!(
                records = unknown,
                "the log of appends has records of a later version; they are left as they are"
            );
        }
        let (end, ended) = oneshot::channel();
        let work = move || {
            committer.run();
            // Nobody listens if the gateway did not end in order.
            let _ = end.send(());
        };
        let thread = std::thread::Builder::new().name("appends".to_owned());
        thread.spawn(work).map_err(|error| format!("cannot start the thread of the log of appends: {error}"))?;
        let state_log =
            StateLog { log, states: Arc::new(Mutex::new(states)), ended: Arc::new(Mutex::new(Some(ended))) };
        state_log.forget_old();
        Ok(state_log)
    }

    /// Writes an event, which is durable when this returns.
    pub(super) async fn write(&self, id: AppendId, event: Event) -> Result<(), AppendError> {
        let record = Record { id: id.as_u128(), event };
        // Only the beginning of an append takes room that isn't given back.
        let room = match record.event {
            Event::Opened { .. } => Room::Ordinary,
            _ => Room::Reserve,
        };
        let no_room = |error: &dyn std::fmt::Display| {
            AppendError::try_again(
                ErrorCode::NOT_ENOUGH_SPACE,
                &format!("The log of appends can't be written: {error}"),
            )
        };
        let bytes = record.encode();
        let appended = self.log.append(record.event.kind(), None, bytes, room).map_err(|error| no_room(&error))?;
        let position = appended.id;
        appended.durable.await.map_err(|error| no_room(&error))?;
        self.states().note(position, record);
        self.forget_old();
        Ok(())
    }

    pub(super) fn state(&self, id: AppendId) -> Option<AppendState> {
        self.states().by_id.get(&id.as_u128()).cloned()
    }

    /// Returns the appends of which something is left to do.
    pub(super) fn unfinished(&self) -> Vec<(AppendId, AppendState)> {
        let states = self.states();
        let unfinished = states.by_id.iter().filter(|(_, state)| !state.is_cleared);
        unfinished.map(|(id, state)| (AppendId::from_u128(*id), state.clone())).collect()
    }

    /// Closes the log. Events that were written before are on the disk afterwards, if the disk lets them.
    pub(super) async fn close(&self) {
        self.log.close();
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(ended) = ended {
            if tokio::time::timeout(LAST_GROUP, ended).await.is_err() {
                tracing::error!("the disk does not answer; the log of appends may lack its end");
            }
        }
    }

    fn forget_old(&self) {
        let is_crowded = self.log.usage().live_bytes > CROWDED_BYTES;
        let released = self.states().forget_old(now_ms(), is_crowded);
        self.log.release_all(released);
    }

    fn states(&self) -> MutexGuard<'_, States> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl States {
    fn note(&mut self, position: RecordId, record: Record) {
        let state = self.by_id.entry(record.id).or_default();
        state.records.push(position);
        match record.event {
            Event::Opened { database, table, user: _ } => state.opened = Some(Opened { database, table }),
            Event::Decided { publication } => state.publication = Some(publication),
            Event::Ended { at_ms, end } => {
                state.end = Some(end);
                state.ended_at_ms = at_ms;
                state.publication.iter_mut().for_each(|publication| publication.forget_details());
            }
            Event::Cleared => {
                state.is_cleared = true;
                match state.end {
                    Some(End::Committed { .. } | End::Unknown { .. }) => self.remembered.push_back(record.id),
                    // Of what was never stored nothing is remembered.
                    _ => self.forget(record.id),
                }
            }
        }
    }

    /// Forgets old appends. Returns the records that are not needed any more: for each append those that say
    /// that others are done go last.
    fn forget_old(&mut self, now_ms: u64, is_crowded: bool) -> Vec<RecordId> {
        let is_old = |state: &AppendState| state.ended_at_ms.saturating_add(REMEMBERED_FOR_MS) < now_ms;
        let limit = if is_crowded { self.remembered.len() / 2 } else { REMEMBERED };
        while let Some(&id) = self.remembered.front() {
            if self.remembered.len() <= limit && self.by_id.get(&id).is_some_and(|state| !is_old(state)) {
                break;
            }
            self.remembered.pop_front();
            self.forget(id);
        }
        std::mem::take(&mut self.released)
    }

    fn forget(&mut self, id: u128) {
        self.released.extend(self.by_id.remove(&id).into_iter().flat_map(|state| state.records));
    }
}

pub(super) fn now_ms() -> u64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clickhouse::record::WrittenAtomicity;

    fn note(states: &mut States, position: u64, id: u128, event: Event) {
        states.note(RecordId(position), Record { id, event });
    }

    fn opened() -> Event {
        Event::Opened { database: "d".to_owned(), table: "t".to_owned(), user: "u".to_owned() }
    }

    fn committed(at_ms: u64) -> Event {
        Event::Ended { at_ms, end: End::Committed { atomic: WrittenAtomicity::All } }
    }

    #[test]
    fn what_was_never_stored_is_forgotten_when_it_is_cleared() {
        let mut states = States::default();
        note(&mut states, 1, 7, opened());
        assert_eq!(states.forget_old(0, false), []);
        note(&mut states, 2, 7, Event::Cleared);
        assert_eq!(states.forget_old(0, false), [RecordId(1), RecordId(2)]);
        assert!(states.by_id.is_empty());
    }

    #[test]
    fn what_was_committed_is_remembered_for_a_week() {
        let mut states = States::default();
        for (id, at_ms) in [(1, 1000), (2, 5000)] {
            for (step, event) in [opened(), committed(at_ms), Event::Cleared].into_iter().enumerate() {
                note(&mut states, id as u64 * 10 + step as u64, id, event);
            }
        }
        assert_eq!(states.forget_old(1000 + REMEMBERED_FOR_MS, false), []);
        assert_eq!(states.forget_old(1001 + REMEMBERED_FOR_MS, false), [10, 11, 12].map(RecordId));
        assert!(states.by_id.contains_key(&2));
    }

    #[test]
    fn what_is_not_cleared_is_not_forgotten_and_a_crowded_log_forgets_earlier() {
        let mut states = States::default();
        note(&mut states, 1, 1, opened());
        note(&mut states, 2, 1, committed(0));
        assert_eq!(states.forget_old(u64::MAX, true), []);
        for id in 2..6u64 {
            note(&mut states, id * 10, u128::from(id), committed(u64::MAX));
            note(&mut states, id * 10 + 1, u128::from(id), Event::Cleared);
        }
        assert_eq!(states.forget_old(0, true), [20, 21, 30, 31].map(RecordId));
    }
}
