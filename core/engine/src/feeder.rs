//! The feeder brings a table's backlog from the journal into its buffers, as memory allows.
//!
//! There is one feeder for each table with a backlog. Records are read and decoded some at a time, on a
//! thread that may wait for the disk. Records that the disk does not give now are asked for again, for as
//! long as it takes. A damaged record can't be stored: it stays in the journal, and is reported.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::policy::SealReason;
use crate::records::{self, InsertHead, InsertRecord, RecordedContext};
use crate::sink::Sink;
use windrow_columns::Rows;
use windrow_log::{ContextKey, OwnedRecord, ReadError, Reader, RecordId};

use crate::backlog::{LeftPiece, Sender, ToFeed};
use crate::gatherer::Gatherer;
use crate::insert::{AckLevel, DataKind, DedupKeys, History, Insert, InsertKind};
use crate::journaling::{Journaled, Journaling};
use crate::member::Arriving;
#[cfg(test)]
use crate::simulation::sabotage::{self, Sabotage};
use crate::table::Table;

/// Bytes after which one reading ends. Its last record may go beyond them.
const READ_BYTES: usize = 1 << 20;
const PAUSE: Duration = Duration::from_secs(1);
/// Writer number of inserts that come from the journal or from a pipeline. Other inserts have the numbers of
/// their connections, which are small.
pub(crate) const FEEDER: u64 = u64::MAX;

/// Feeds the table until there is no backlog any more.
pub(crate) async fn feed<S: Sink>(gatherer: Gatherer<S>, journal: Arc<Journaling>, table: Arc<Table>) {
    let reading = Reading { reader: journal.log.reader(), contexts: BTreeMap::new() };
    let mut feeder = Feeder { gatherer, journal, table, reading: Some(reading), senders: BTreeMap::new() };
    loop {
        match feeder.table.next_to_feed() {
            ToFeed::Piece(piece) => feeder.feed_piece(piece).await,
            ToFeed::Inserts(ids) => feeder.feed_inserts(ids).await,
            ToFeed::Nothing => feeder.table.to_feed.notified().await,
            ToFeed::Over => return,
        }
    }
}

struct Feeder<S: Sink> {
    gatherer: Gatherer<S>,
    journal: Arc<Journaling>,
    table: Arc<Table>,
    /// The reader of records, which is lent to the thread that reads.
    reading: Option<Reading>,
    senders: BTreeMap<ContextKey, Sender>,
}

/// An insert as it was read from the journal.
struct Fed {
    journaled: Journaled,
    context: ContextKey,
    recorded: Arc<RecordedContext>,
    head: InsertHead,
    rows: Rows,
}

impl<S: Sink> Feeder<S> {
    async fn feed_inserts(&mut self, ids: Vec<RecordId>) {
        let mut ids = ids;
        while !ids.is_empty() {
            let Batch { fed, rest, damaged } = self.read(ids).await;
            for fed in fed {
                self.feed_one(fed).await;
            }
            self.table.fed(damaged, 0);
            ids = rest;
        }
        if !self.table.has_more_of_run() {
            self.seal();
        }
    }

    async fn feed_one(&mut self, fed: Fed) {
        let sender = self.sender(&fed);
        let bytes = fed.journaled.bytes;
        let left_over = sender.shape.destination.own_account;
        let journaled = fed.journaled;
        let insert = self.insert_of(fed, sender.kind);
        let held_bytes = self.table.budget.at_most(Table::held_bytes(&insert));
        self.take(held_bytes).await;
        let arriving = Arriving { insert, held_bytes, outcome: None, journaled: Some(journaled), left_over };
        let pushed = self.table.push(&sender.shape, arriving);
        self.gatherer.launch(pushed.launch);
        self.table.fed(1, bytes);
    }

    /// Feeds a batch that was attempted before as it was: past the buffers, under its id.
    async fn feed_piece(&mut self, piece: LeftPiece) {
        #[cfg(test)]
        let piece = match sabotage::is(Sabotage::ForgetsIdAfterCrash) {
            true => {
                LeftPiece { batch: crate::sink::BatchId(self.gatherer.core.stores.environment.random_u128()), ..piece }
            }
            false => piece,
        };
        let members = piece.members.len() as u64;
        let (mut arriving, mut shape, mut bytes, mut ids) = (Vec::new(), None, 0, piece.members);
        while !ids.is_empty() {
            let Batch { fed, rest, .. } = self.read(ids).await;
            for fed in fed {
                let sender = self.sender(&fed);
                bytes += fed.journaled.bytes;
                let journaled = fed.journaled;
                let insert = self.insert_of(fed, sender.kind);
                shape.get_or_insert(sender.shape);
                let held_bytes = Table::held_bytes(&insert);
                arriving.push(Arriving {
                    insert,
                    held_bytes,
                    outcome: None,
                    journaled: Some(journaled),
                    left_over: true,
                });
            }
            ids = rest;
        }
        let mut room = self.table.budget.at_most(arriving.iter().map(|arriving| arriving.held_bytes).sum());
        self.take(room).await;
        for arriving in &mut arriving {
            arriving.held_bytes = arriving.held_bytes.min(room);
            room -= arriving.held_bytes;
        }
        if let Some(shape) = shape {
            self.gatherer.launch(self.table.push_piece(&shape, piece.batch, piece.record, arriving));
        }
        self.table.fed(members, bytes);
    }

    /// Takes memory for rows. Where there is none, the table's buffers are sealed and sent, to free some.
    async fn take(&self, bytes: u64) {
        if self.table.budget.try_take(bytes).is_err() {
            self.seal();
            self.table.budget.take_at_last(bytes).await;
        }
    }

    fn seal(&self) {
        self.gatherer.launch(self.table.flush(SealReason::Size).launches);
    }

    fn sender(&mut self, fed: &Fed) -> Sender {
        if let Some(sender) = self.senders.get(&fed.context) {
            return sender.clone();
        }
        let sender = self.table.sender_of(fed.context).unwrap_or_else(|| self.stranger(&fed.recorded));
        self.senders.insert(fed.context, sender.clone());
        sender
    }

    /// Returns the sender of an insert of an earlier run. Nobody has its password any more, so the gateway's
    /// own account stores the insert.
    fn stranger(&self, recorded: &RecordedContext) -> Sender {
        let kind = InsertKind {
            query: recorded.query.clone(),
            format: recorded.format.clone(),
            data_kind: DataKind::Parsed,
            limits: crate::policy::FlushLimits::default(),
        };
        Sender { shape: self.gatherer.own_shape(recorded.destination.clone()), kind: Arc::new(kind) }
    }

    fn insert_of(&self, fed: Fed, kind: Arc<InsertKind>) -> Insert {
        let Fed { head, rows, .. } = fed;
        let keys = DedupKeys::decode(&head.dedup);
        let dedup = keys.and_then(|keys| Some(self.gatherer.deduplication()?.reclaim(keys)));
        Insert {
            rows,
            payload_bytes: head.payload_bytes,
            writer: FEEDER,
            back_after: None,
            // Whoever waited for it is gone; it is kept like those that were to be kept on disk.
            ack: AckLevel::Disk,
            patience: Duration::ZERO,
            at_once: false,
            dedup,
            history: Some(History { arrived_wall_micros: head.arrived_micros, attempts: head.attempts }),
            query_id: head.query_id,
            kind,
            // Whoever traced it isn't known any more.
            trace: None,
        }
    }

    /// Reads some of these records, in order.
    async fn read(&mut self, ids: Vec<RecordId>) -> Batch {
        let mut reading = self.reading.take().expect("it comes back from each reading");
        let (reading, found) = match self.gatherer.core.stores.environment.reads_in_threads() {
            false => {
                let found = reading.read(ids);
                (reading, found)
            }
            true => {
                let read = tokio::task::spawn_blocking(move || {
                    let found = reading.read(ids);
                    (reading, found)
                });
                match read.await {
                    Ok(read) => read,
                    Err(error) => match error.try_into_panic() {
                        Ok(panic) => std::panic::resume_unwind(panic),
                        // The runtime ends, and with it this task.
                        Err(_) => std::future::pending().await,
                    },
                }
            }
        };
        self.reading = Some(reading);
        let JournaledInserts { fed, rest, obstacle } = found;
        match obstacle {
            None => {}
            Some(Obstacle::Disk(error)) => {
                self.report(&error, "the journal can't be read now; trying again");
                tokio::time::sleep(PAUSE).await;
            }
            Some(Obstacle::Damaged(error)) => {
                self.journal.damaged.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                self.report(&error, "an insert in the journal is damaged and can't be stored");
                self.table.leftovers_settled(1);
                return Batch { fed, rest, damaged: 1 };
            }
        }
        Batch { fed, rest, damaged: 0 }
    }

    fn report(&self, error: &str, text: &str) {
        let name = &self.table.name;
        tracing::error!(database = name.database, table = name.table, error, "{text}");
    }
}

struct Batch {
    fed: Vec<Fed>,
    rest: Vec<RecordId>,
    damaged: u64,
}

/// The part of the feeder that may wait for a disk.
struct Reading {
    reader: Reader,
    contexts: BTreeMap<ContextKey, Arc<RecordedContext>>,
}

enum Obstacle {
    Disk(String),
    /// One record is damaged, which is not in `rest`.
    Damaged(String),
}

struct JournaledInserts {
    fed: Vec<Fed>,
    rest: Vec<RecordId>,
    obstacle: Option<Obstacle>,
}

impl Reading {
    fn read(&mut self, ids: Vec<RecordId>) -> JournaledInserts {
        let (mut fed, mut bytes) = (Vec::new(), 0);
        for (place, &id) in ids.iter().enumerate() {
            if bytes >= READ_BYTES {
                return JournaledInserts { fed, rest: ids[place..].to_vec(), obstacle: None };
            }
            match self.read_one(id) {
                Ok(one) => {
                    bytes += one.journaled.bytes as usize;
                    fed.push(one);
                }
                Err(obstacle) => {
                    let first = if let Obstacle::Damaged(_) = obstacle { place + 1 } else { place };
                    return JournaledInserts { fed, rest: ids[first..].to_vec(), obstacle: Some(obstacle) };
                }
            }
        }
        JournaledInserts { fed, rest: Vec::new(), obstacle: None }
    }

    fn read_one(&mut self, id: RecordId) -> Result<Fed, Obstacle> {
        let OwnedRecord { context, payload, .. } = self.reader.read(id).map_err(|error| match error {
            ReadError::Io(text) => Obstacle::Disk(text),
            ReadError::Gone | ReadError::Corrupt(_) => Obstacle::Damaged(format!("record {id}: {error}")),
        })?;
        let damaged = |error: &dyn std::fmt::Display| Obstacle::Damaged(format!("record {id}: {error}"));
        let context = context.ok_or_else(|| damaged(&"it does not say where it is to go"))?;
        let recorded = match self.contexts.get(&context.key()) {
            Some(recorded) => recorded.clone(),
            None => {
                let recorded = Arc::new(records::decode_context(context.bytes()).map_err(|error| damaged(&error))?);
                self.contexts.insert(context.key(), recorded.clone());
                recorded
            }
        };
        let InsertRecord { head, rows } =
            records::decode_insert(&payload, &recorded).map_err(|error| damaged(&error))?;
        let journaled = Journaled { record: id, bytes: payload.len() as u64 };
        Ok(Fed { journaled, context: context.key(), recorded, head, rows })
    }
}
