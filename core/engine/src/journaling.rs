//! Records that the gatherer writes into the journal: an insert before it is acknowledged, a piece before its
//! first attempt, and at an insert's end that it is done.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::records;
use crate::sink::BatchId;
use tokio::sync::Notify;
use windrow_log::{Context, Durable, Log, LogFull, RecordId, Room};

use crate::insert::{Insert, InsertKind};
use crate::member::Member;
use crate::shape::Shape;
#[cfg(test)]
use crate::simulation::sabotage::{self, Sabotage};
use crate::table::Table;

/// The record of a member in the journal, and its size.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Journaled {
    pub(crate) record: RecordId,
    pub(crate) bytes: u64,
}

/// The part of the journal that belongs to inserts that have not come to their end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Leftovers {
    pub inserts: u64,
    pub bytes: u64,
}

pub(crate) struct Journaling {
    pub(crate) log: Log,
    pub(crate) max_bytes: u64,
    inserts: AtomicU64,
    bytes: AtomicU64,
    /// Inserts that are done, though the record that says so could not be written. If the process ends before
    /// it is written, they are stored again, under the id that they were stored under.
    unwritten: Mutex<Vec<RecordId>>,
    pub(crate) unwritten_grew: Arc<Notify>,
    /// Number of inserts that are damaged in the journal.
    pub(crate) damaged: AtomicU64,
}

impl Journaling {
    pub(crate) fn new(log: Log, max_bytes: u64) -> Journaling {
        Journaling {
            log,
            max_bytes,
            inserts: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            unwritten: Mutex::default(),
            unwritten_grew: Arc::default(),
            damaged: AtomicU64::new(0),
        }
    }

    pub(crate) fn leftovers(&self) -> Leftovers {
        Leftovers { inserts: self.inserts.load(Ordering::Relaxed), bytes: self.bytes.load(Ordering::Relaxed) }
    }

    /// Encodes the insert as it will stand in the journal.
    pub(crate) fn encode(&self, shape: &Shape, insert: &Insert, wall_micros: u64) -> Encoded {
        let context = shape.contexts.context(&self.log, shape, &insert.kind);
        let history = insert.history;
        let head = records::InsertHead {
            arrived_micros: history.map_or(wall_micros, |history| history.arrived_wall_micros),
            query_id: insert.query_id.clone(),
            payload_bytes: insert.payload_bytes,
            ack: insert.ack,
            attempts: history.map_or(0, |history| history.attempts),
            dedup: insert.dedup.as_ref().map_or_else(Vec::new, |dedup| dedup.encode()),
        };
        Encoded { context, payload: records::encode_insert(&head, &insert.rows) }
    }

    pub(crate) fn append(&self, table: &Table, insert: Encoded) -> Result<Appended, LogFull> {
        let bytes = insert.bytes();
        let appended = self.log.append(records::INSERT, Some(&insert.context), insert.payload, Room::Ordinary)?;
        self.count(table, 1, bytes);
        #[cfg(test)]
        if sabotage::is(Sabotage::DropsSegmentsEarly) {
            self.log.release(appended.id);
        }
        Ok(Appended { journaled: Journaled { record: appended.id, bytes }, durable: appended.durable })
    }

    /// Says whether there may be inserts whose records could not be written.
    pub(crate) fn has_failed(&self) -> bool {
        self.log.has_failed()
    }

    /// Says whether the insert's record could not be written. Then the insert must not be sent: after a crash
    /// nobody would know of it, and a client that sends it again would have it stored twice.
    pub(crate) fn is_unkept(&self, member: &Member) -> bool {
        member.journaled.is_some_and(|journaled| self.log.is_missing(journaled.record))
    }

    /// Counts inserts that are in the journal and have not come to their end.
    pub(crate) fn count(&self, table: &Table, inserts: u64, bytes: u64) {
        self.inserts.fetch_add(inserts, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        table.journal_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn uncount(&self, table: &Table, inserts: u64, bytes: u64) {
        self.inserts.fetch_sub(inserts, Ordering::Relaxed);
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        table.journal_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Writes to the journal which members are about to be sent under which id. When the result is `Ok`, that
    /// is durable.
    pub(crate) async fn record_piece(&self, id: BatchId, members: &[Member]) -> Result<Option<RecordId>, String> {
        let records: Vec<RecordId> = members.iter().filter_map(|member| Some(member.journaled?.record)).collect();
        if records.is_empty() {
            return Ok(None);
        }
        #[cfg(test)]
        if sabotage::is(Sabotage::WritesDoneEarly) {
            let done = self.log.append_about(records::DONE, records::encode_done(&records), records.clone());
            done.into_iter().for_each(|done| self.log.release(done.id));
        }
        let payload = records::encode_piece(&records::Piece { batch: id, members: records.clone() });
        let appended = self.log.append_about(records::PIECE, payload, records).map_err(|full| full.to_string())?;
        match appended.durable.await {
            Ok(()) => Ok(Some(appended.id)),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Writes that these inserts have come to their end. Nobody waits until that is on the disk.
    pub(crate) fn done(self: &Arc<Self>, table: &Table, inserts: &[Journaled]) {
        self.uncount(table, inserts.len() as u64, inserts.iter().map(|insert| insert.bytes).sum());
        self.write_done(inserts.iter().map(|insert| insert.record).collect());
    }

    /// Writes that inserts are done. Inserts that were never written, or whose file is gone by now, are left
    /// out.
    pub(crate) fn write_done(self: &Arc<Self>, mut inserts: Vec<RecordId>) {
        self.log.retain_there(&mut inserts);
        if inserts.is_empty() {
            return;
        }
        let payload = records::encode_done(&inserts);
        let (this, ids) = (self.clone(), inserts.clone());
        let appended = self.log.append_about_then(records::DONE, payload, inserts.clone(), move |_, written| {
            if written.is_err() {
                this.write_later(&ids);
            }
        });
        if appended.is_err() {
            self.write_later(&inserts);
        }
        // In this order: what says that inserts are done must not be dropped before they are.
        self.log.release_all(inserts);
        if let Ok(done) = appended {
            self.log.release(done);
        }
    }

    /// Writes like `done` that an insert is done, and waits until it is on the disk: a sender that is told
    /// that its insert was not stored must not meet it after a crash. Returns false if nobody knows whether
    /// it is on the disk.
    pub(crate) async fn done_for_sure(self: &Arc<Self>, table: &Table, insert: Journaled) -> bool {
        let payload = records::encode_done(&[insert.record]);
        let Ok(appended) = self.log.append_about(records::DONE, payload, vec![insert.record]) else {
            self.done(table, &[insert]);
            return false;
        };
        self.uncount(table, 1, insert.bytes);
        self.log.release(insert.record);
        self.log.release(appended.id);
        let written = appended.durable.await.is_ok();
        if !written {
            self.write_later(&[insert.record]);
        }
        written
    }

    /// Writes once more that these inserts are done, and waits until that is on the disk. Fails with the
    /// reason.
    pub(crate) async fn ensure_done(&self, inserts: &[RecordId]) -> Result<(), String> {
        let payload = records::encode_done(inserts);
        let appended =
            self.log.append_about(records::DONE, payload, inserts.to_vec()).map_err(|full| full.to_string())?;
        // Whoever has yet to end them does so again, which changes nothing.
        self.log.release_all(inserts.iter().copied());
        self.log.release(appended.id);
        appended.durable.await.map_err(|error| error.to_string())
    }

    fn write_later(&self, inserts: &[RecordId]) {
        self.lock().extend_from_slice(inserts);
        self.unwritten_grew.notify_one();
    }

    /// Tries again to write which inserts are done, where that could not be written.
    pub(crate) fn write_what_is_left(self: &Arc<Self>) {
        let inserts = std::mem::take(&mut *self.lock());
        self.write_done(inserts);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<RecordId>> {
        self.unwritten.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Journaling {
    fn drop(&mut self) {
        // Whoever waits for this looks whether it is still there.
        self.unwritten_grew.notify_one();
    }
}

/// Records of the pieces of one batch. They are needed until all inserts of the batch are done: an insert
/// that is not done, and whose piece is gone, would be stored under another id after a crash.
#[derive(Default)]
pub(crate) struct PieceRecords {
    state: Mutex<PieceState>,
}

#[derive(Default)]
struct PieceState {
    records: Vec<RecordId>,
    /// Number of holders, which still have inserts of the batch to bring to their end.
    holders: u32,
}

impl PieceRecords {
    fn lock(&self) -> MutexGuard<'_, PieceState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, record: RecordId) {
        self.lock().records.push(record);
    }

    pub(crate) fn hold(&self) {
        self.lock().holders += 1;
    }

    /// Ends one hold; after the last one the records are released. A holder that never lets go keeps them in
    /// the journal until the next start, which is on the safe side.
    pub(crate) fn let_go(&self, journal: &Journaling) {
        let mut state = self.lock();
        state.holders = state.holders.saturating_sub(1);
        if state.holders == 0 && !state.records.is_empty() {
            let records = std::mem::take(&mut state.records);
            drop(state);
            journal.log.release_all(records);
        }
    }
}

/// An insert's record, and the context that it shares with others.
pub(crate) struct Encoded {
    pub(crate) context: Context,
    pub(crate) payload: Vec<u8>,
}

impl Encoded {
    /// Returns the bytes that the insert takes in the journal, or a little less.
    pub(crate) fn bytes(&self) -> u64 {
        self.payload.len() as u64
    }
}

pub(crate) struct Appended {
    pub(crate) journaled: Journaled,
    pub(crate) durable: Durable,
}

/// The contexts of one shape's inserts: one for each statement.
#[derive(Default)]
pub(crate) struct Contexts {
    known: Mutex<Vec<KnownContext>>,
}

struct KnownContext {
    kind: Arc<InsertKind>,
    context: Context,
}

/// Number of statements of a shape whose contexts have their text. Statements may differ without end, in a
/// comment or a token. Those that come later are kept without their text, which only serves the log: contexts
/// stay in memory for as long as their records do.
const MOST_STATEMENTS: usize = 16;

impl Contexts {
    fn context(&self, log: &Log, shape: &Shape, kind: &Arc<InsertKind>) -> Context {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known.iter().find(|known| Arc::ptr_eq(&known.kind, kind)) {
            return known.context.clone();
        }
        // What is prepared anew now and then mostly is what it was.
        let same = |known: &&mut KnownContext| known.kind.query == kind.query && known.kind.format == kind.format;
        if let Some(known) = known.iter_mut().find(same) {
            known.kind = kind.clone();
            return known.context.clone();
        }
        let kind = if known.len() < MOST_STATEMENTS { kind.clone() } else { Arc::new(without_text(shape, kind)) };
        let same = |known: &&KnownContext| known.kind.query == kind.query && known.kind.format == kind.format;
        if let Some(known) = known.iter().find(same) {
            return known.context.clone();
        }
        let context = log.context(records::encode_context(&records::ContextRecord {
            destination: &shape.destination,
            query: &kind.query,
            format: &kind.format,
        }));
        known.push(KnownContext { kind, context: context.clone() });
        context
    }
}

fn without_text(shape: &Shape, kind: &InsertKind) -> InsertKind {
    let (database, table) = (&shape.destination.database, &shape.destination.table);
    InsertKind { query: format!("INSERT INTO {database}.{table} FORMAT {}", kind.format), ..kind.clone() }
}
