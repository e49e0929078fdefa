//! Memory of stored inserts, and what follows from it for an insert that comes. It is pure: it is told the
//! time.
//!
//! The rules are ClickHouse's: an insert is remembered once for each partition that got rows of it. An insert
//! that comes again is not stored again in those partitions, and is in others. A table keeps its latest
//! entries, up to a number and an age.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use super::claim::Flight;
use super::keys::{DedupKeys, DeduplicationBounds};

/// A partition. `None` stands for the table as a whole, or says that nobody can tell.
pub(super) type Partition = Option<u64>;

/// Largest number of entries of a table, however much its settings ask for.
const MOST_ENTRIES: u64 = 1_000_000;

#[derive(Default)]
pub(super) struct State {
    tables: BTreeMap<u128, Entries>,
    /// Number of entries that a record of the log still speaks of.
    records: HashMap<u64, u64>,
    /// Records of which nothing is remembered any more.
    free_records: Vec<u64>,
}

#[derive(Default)]
struct Entries {
    by_key: HashMap<u128, Vec<Entry>>,
    /// Stored entries, the oldest first.
    stored: VecDeque<Stored>,
}

struct Entry {
    partition: Partition,
    state: EntryState,
}

enum EntryState {
    InFlight(Arc<Flight>),
    Stored,
}

struct Stored {
    key: u128,
    partition: Partition,
    at_micros: u64,
    record: Option<u64>,
}

/// The state of an insert that has come, as far as it is known.
pub(super) enum RepeatState {
    /// All of the insert is stored, or so safe that it may count as that.
    Repeat,
    /// Another insert with these keys is on its way.
    Wait(Arc<Flight>),
    /// The insert's rows for these partitions are not known; `None` stands for all of them.
    New { partitions: Vec<Partition> },
}

impl State {
    /// Finds out what is known of an insert. With `durable_will_do`, an insert that can't be lost any more
    /// counts as stored.
    pub(super) fn look(&mut self, keys: &DedupKeys, durable_will_do: bool, now_micros: u64) -> RepeatState {
        self.expire(keys.table, keys.bounds, now_micros);
        let entries_of_key = self.tables.get(&keys.table).and_then(|entries| entries.by_key.get(&keys.key));
        let entries_of_key = entries_of_key.map(Vec::as_slice).unwrap_or_default();
        let (mut new, mut under_way) = (Vec::new(), None);
        for wanted in wanted(keys) {
            let mut known = entries_of_key.iter().filter(|entry| overlap(entry.partition, wanted)).peekable();
            if known.peek().is_none() {
                new.push(wanted);
            }
            for entry in known {
                match &entry.state {
                    EntryState::Stored => {}
                    EntryState::InFlight(flight) if durable_will_do && flight.is_durable() => {}
                    EntryState::InFlight(flight) => under_way = Some(flight),
                }
            }
        }
        match under_way {
            Some(flight) => RepeatState::Wait(flight.clone()),
            None if new.is_empty() => RepeatState::Repeat,
            None => RepeatState::New { partitions: new },
        }
    }

    /// Notes that an insert sets out under these keys.
    pub(super) fn claim(&mut self, keys: &DedupKeys, flight: &Arc<Flight>) {
        let entries = self.tables.entry(keys.table).or_default();
        let entries_of_key = entries.by_key.entry(keys.key).or_default();
        for partition in wanted(keys) {
            // What is stored stays so: a claim from before a crash may be of what was stored.
            if !entries_of_key.iter().any(|entry| entry.partition == partition) {
                entries_of_key.push(Entry { partition, state: EntryState::InFlight(flight.clone()) });
            }
        }
    }

    /// Frees the keys of an insert that was not stored.
    pub(super) fn release(&mut self, table: u128, key: u128, flight: &Arc<Flight>) {
        let Some(entries) = self.tables.get_mut(&table) else { return };
        let Some(entries_of_key) = entries.by_key.get_mut(&key) else { return };
        entries_of_key
            .retain(|entry| !matches!(&entry.state, EntryState::InFlight(other) if Arc::ptr_eq(other, flight)));
        if entries_of_key.is_empty() {
            entries.by_key.remove(&key);
        }
        self.drop_if_empty(table);
    }

    /// Says whether an insert with these keys is stored, or on its way, with rows of whatever partition.
    pub(super) fn knows(&mut self, keys: &DedupKeys, now_micros: u64) -> bool {
        self.expire(keys.table, keys.bounds, now_micros);
        self.tables.get(&keys.table).is_some_and(|entries| entries.by_key.contains_key(&keys.key))
    }

    /// Says whether an insert with these keys is stored in every partition that this one has rows for.
    pub(super) fn is_stored(&self, keys: &DedupKeys) -> bool {
        let entries_of_key = self.tables.get(&keys.table).and_then(|entries| entries.by_key.get(&keys.key));
        let entries_of_key = entries_of_key.map(Vec::as_slice).unwrap_or_default();
        let is_stored = |wanted: Partition| {
            let mut known = entries_of_key.iter().filter(|entry| overlap(entry.partition, wanted));
            known.any(|entry| matches!(entry.state, EntryState::Stored))
        };
        wanted(keys).all(is_stored)
    }

    /// Returns the flight of an insert that sets out again under keys that it had already.
    pub(super) fn flight(&self, keys: &DedupKeys) -> Option<Arc<Flight>> {
        let entries_of_key = self.tables.get(&keys.table)?.by_key.get(&keys.key)?;
        let ours = entries_of_key.iter().filter(|entry| wanted(keys).any(|partition| partition == entry.partition));
        ours.into_iter().find_map(|entry| match &entry.state {
            EntryState::InFlight(flight) => Some(flight.clone()),
            EntryState::Stored => None,
        })
    }

    /// Notes that an insert is stored. `record` is where that stands in the log.
    pub(super) fn enter(&mut self, keys: &DedupKeys, at_micros: u64, record: Option<u64>) {
        let entries = self.tables.entry(keys.table).or_default();
        let entries_of_key = entries.by_key.entry(keys.key).or_default();
        for partition in wanted(keys) {
            match entries_of_key.iter_mut().find(|entry| entry.partition == partition) {
                Some(Entry { state: EntryState::Stored, .. }) => continue,
                Some(entry) => entry.state = EntryState::Stored,
                None => entries_of_key.push(Entry { partition, state: EntryState::Stored }),
            }
            entries.stored.push_back(Stored { key: keys.key, partition, at_micros, record });
            if let Some(record) = record {
                *self.records.entry(record).or_default() += 1;
            }
        }
        if let Some(record) = record.filter(|record| !self.records.contains_key(record)) {
            self.free_records.push(record);
        }
        self.expire(keys.table, keys.bounds, at_micros);
    }

    /// Forgets a table whose rows are gone. Inserts that are on their way stay.
    pub(super) fn forget(&mut self, table: u128) {
        while self.drop_oldest(table) {}
        self.drop_if_empty(table);
    }

    /// Takes the records of which nothing is remembered any more.
    pub(super) fn take_free_records(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.free_records)
    }

    /// Forgets the oldest entries of the table that has most of them. Returns false if there are none.
    pub(super) fn make_room(&mut self) -> bool {
        let largest = self.tables.iter().max_by_key(|(_, entries)| entries.stored.len());
        let Some((&table, most)) = largest.map(|(table, entries)| (table, entries.stored.len())) else { return false };
        let some = most.div_ceil(4);
        for _ in 0..some {
            self.drop_oldest(table);
        }
        self.drop_if_empty(table);
        some > 0
    }

    pub(super) fn tables(&self) -> Vec<u128> {
        self.tables.keys().copied().collect()
    }

    pub(super) fn entries(&self) -> u64 {
        self.tables.values().map(|entries| entries.stored.len() as u64).sum()
    }

    fn expire(&mut self, table: u128, bounds: DeduplicationBounds, now_micros: u64) {
        let most = usize::try_from(bounds.entries.min(MOST_ENTRIES)).unwrap_or(usize::MAX);
        loop {
            let Some(entries) = self.tables.get(&table) else { return };
            let Some(oldest) = entries.stored.front() else { return };
            let age_micros = now_micros.saturating_sub(oldest.at_micros);
            if entries.stored.len() <= most && bounds.age_micros.is_none_or(|most| age_micros <= most) {
                return;
            }
            self.drop_oldest(table);
        }
    }

    fn drop_oldest(&mut self, table: u128) -> bool {
        let Some(entries) = self.tables.get_mut(&table) else { return false };
        let Some(oldest) = entries.stored.pop_front() else { return false };
        if let Some(entries_of_key) = entries.by_key.get_mut(&oldest.key) {
            let is_it =
                |entry: &Entry| entry.partition == oldest.partition && matches!(entry.state, EntryState::Stored);
            entries_of_key.retain(|entry| !is_it(entry));
            if entries_of_key.is_empty() {
                entries.by_key.remove(&oldest.key);
            }
        }
        if let Some(record) = oldest.record {
            let left = self.records.entry(record).or_default();
            *left = left.saturating_sub(1);
            if *left == 0 {
                self.records.remove(&record);
                self.free_records.push(record);
            }
        }
        true
    }

    fn drop_if_empty(&mut self, table: u128) {
        if self.tables.get(&table).is_some_and(|entries| entries.by_key.is_empty()) {
            self.tables.remove(&table);
        }
    }
}

fn wanted(keys: &DedupKeys) -> impl Iterator<Item = Partition> + '_ {
    let whole = keys.partitions.is_empty().then_some(None);
    whole.into_iter().chain(keys.partitions.iter().copied().map(Some))
}

/// Says whether the partitions may be the same. Where nobody can tell, a repeat is one of all.
fn overlap(one: Partition, other: Partition) -> bool {
    one.is_none() || other.is_none() || one == other
}
