//! All dead letters, in memory, without their rows.

use std::collections::{BTreeMap, HashMap};
use std::ops::RangeInclusive;
use std::sync::Arc;

use super::selection::{Page, Selection};
use super::summary::{DeadLetterId, DeadLetterSummary, Origin, Stream};

/// The memory of an entry beside its texts, in bytes. It is counted with the entry's record, so that the
/// bound on disk space also bounds the memory that a flood of tiny dead letters takes.
const ENTRY_BYTES: u64 = 512;

pub(super) struct Entry {
    pub(super) summary: Arc<DeadLetterSummary>,
    pub(super) identity: Identity,
    /// Bytes that the dead letter counts against the bound.
    pub(super) held_bytes: u64,
}

/// The mark by which two dead letters are one and the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Identity {
    /// The insert was in memory only, so no other dead letter is known to be the same.
    Unknown,
    /// The id of the journal's record that the dead letter was.
    Journaled(u64),
    Message(MessageKey),
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct MessageKey {
    pub(super) stream: Arc<Stream>,
    pub(super) partition: i32,
    pub(super) offset: i64,
}

impl Entry {
    pub(super) fn new(summary: DeadLetterSummary, identity: Identity, record_bytes: usize) -> Entry {
        let held_bytes = record_bytes as u64 + ENTRY_BYTES;
        Entry { summary: Arc::new(summary), identity, held_bytes }
    }

    /// Sets the id of a dead letter whose entry was made before the id was known.
    pub(super) fn set_id(&mut self, id: DeadLetterId) {
        Arc::make_mut(&mut self.summary).id = id;
    }
}

/// A number of dead letters, and their bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Amount {
    pub dead_letters: u64,
    /// Bytes that the dead letters count against the bound.
    pub bytes: u64,
}

impl Amount {
    fn add(&mut self, entry: &Entry) {
        self.dead_letters += 1;
        self.bytes += entry.held_bytes;
    }

    fn subtract(&mut self, entry: &Entry) {
        self.dead_letters -= 1;
        self.bytes -= entry.held_bytes;
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct TableKey {
    database: String,
    table: String,
}

impl TableKey {
    fn of(origin: &Origin) -> TableKey {
        TableKey { database: origin.database.clone(), table: origin.table.clone() }
    }
}

/// A part of the selected dead letters.
#[derive(Debug, PartialEq, Eq)]
pub struct Listing {
    /// The number of all selected dead letters.
    pub total: usize,
    /// Dead letters, the latest first.
    pub dead_letters: Vec<Arc<DeadLetterSummary>>,
}

#[derive(Default)]
pub(super) struct Index {
    dead_letters: BTreeMap<DeadLetterId, Entry>,
    by_journal_id: HashMap<u64, DeadLetterId>,
    by_message: BTreeMap<MessageKey, DeadLetterId>,
    tables: BTreeMap<TableKey, Amount>,
    all: Amount,
    /// The text of the latest error. A broken table gives many dead letters the same error: its text is kept
    /// once while they follow each other.
    latest_error: Option<Arc<str>>,
}

impl Index {
    pub(super) fn insert(&mut self, mut entry: Entry) {
        self.share_error(&mut entry);
        let id = entry.summary.id;
        match &entry.identity {
            Identity::Unknown => {}
            Identity::Journaled(journal_id) => drop(self.by_journal_id.insert(*journal_id, id)),
            Identity::Message(key) => drop(self.by_message.insert(key.clone(), id)),
        }
        self.tables.entry(TableKey::of(&entry.summary.origin)).or_default().add(&entry);
        self.all.add(&entry);
        self.dead_letters.insert(id, entry);
    }

    fn share_error(&mut self, entry: &mut Entry) {
        match &self.latest_error {
            Some(latest) if *latest == entry.summary.error => {
                if let Some(summary) = Arc::get_mut(&mut entry.summary) {
                    summary.error = latest.clone();
                }
            }
            _ => self.latest_error = Some(entry.summary.error.clone()),
        }
    }

    pub(super) fn remove(&mut self, id: DeadLetterId) -> Option<Entry> {
        let entry = self.dead_letters.remove(&id)?;
        match &entry.identity {
            Identity::Unknown => {}
            Identity::Journaled(journal_id) => drop(self.by_journal_id.remove(journal_id)),
            Identity::Message(key) => drop(self.by_message.remove(key)),
        }
        let key = TableKey::of(&entry.summary.origin);
        if let Some(amount) = self.tables.get_mut(&key) {
            amount.subtract(&entry);
            if amount.dead_letters == 0 {
                self.tables.remove(&key);
            }
        }
        self.all.subtract(&entry);
        Some(entry)
    }

    pub(super) fn get(&self, id: DeadLetterId) -> Option<&Entry> {
        self.dead_letters.get(&id)
    }

    /// Returns the dead letter that this record of the journal has become.
    pub(super) fn of_journal(&self, journal_id: u64) -> Option<DeadLetterId> {
        self.by_journal_id.get(&journal_id).copied()
    }

    /// Returns the dead letter that has the same identity.
    pub(super) fn same(&self, identity: &Identity) -> Option<DeadLetterId> {
        match identity {
            Identity::Unknown => None,
            Identity::Journaled(journal_id) => self.of_journal(*journal_id),
            Identity::Message(key) => self.by_message.get(key).copied(),
        }
    }

    /// Returns the offsets of a partition's messages, within `offsets`, that could not be read.
    pub(super) fn unread_offsets(
        &self,
        stream: &Arc<Stream>,
        partition: i32,
        offsets: RangeInclusive<i64>,
    ) -> Vec<i64> {
        if offsets.is_empty() {
            return Vec::new();
        }
        let key = |offset: i64| MessageKey { stream: stream.clone(), partition, offset };
        let found = self.by_message.range(key(*offsets.start())..=key(*offsets.end()));
        let is_unread = |id: &DeadLetterId| {
            let message = self.dead_letters.get(id).and_then(|entry| entry.summary.message);
            message.is_some_and(|message| !message.was_read)
        };
        found.filter(|(_, id)| is_unread(id)).map(|(key, _)| key.offset).collect()
    }

    pub(super) fn all(&self) -> Amount {
        self.all
    }

    pub(super) fn of_table(&self, database: &str, table: &str) -> Amount {
        let key = TableKey { database: database.to_owned(), table: table.to_owned() };
        self.tables.get(&key).copied().unwrap_or_default()
    }

    /// Returns every table that has dead letters.
    pub(super) fn by_table(&self) -> impl Iterator<Item = TableAmount> + '_ {
        let amount = |(key, amount): (&TableKey, &Amount)| TableAmount {
            database: key.database.clone(),
            table: key.table.clone(),
            amount: *amount,
        };
        self.tables.iter().map(amount)
    }

    pub(super) fn list(&self, selection: &Selection, page: Page) -> Listing {
        let mut listing = Listing { total: 0, dead_letters: Vec::new() };
        for entry in self.matching(selection).rev() {
            if listing.total >= page.offset && listing.dead_letters.len() < page.limit {
                listing.dead_letters.push(entry.summary.clone());
            }
            listing.total += 1;
        }
        listing
    }

    /// Returns the ids of all selected dead letters, in the order in which they became dead letters.
    pub(super) fn select(&self, selection: &Selection) -> Vec<DeadLetterId> {
        self.matching(selection).map(|entry| entry.summary.id).collect()
    }

    fn matching<'a>(&'a self, selection: &'a Selection) -> Box<dyn DoubleEndedIterator<Item = &'a Entry> + 'a> {
        let matches = |entry: &&Entry| selection.matches(&entry.summary);
        match selection.ids.is_empty() {
            true => Box::new(self.dead_letters.values().filter(matches)),
            false => Box::new(selection.ids.iter().filter_map(|id| self.dead_letters.get(id)).filter(matches)),
        }
    }
}

/// The dead letters of a table: their number and bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableAmount {
    pub database: String,
    pub table: String,
    pub amount: Amount,
}
