//! The ways in which an insert comes in: at once, behind others, through the journal, or not at all.
//!
//! - An insert whose sender waits for the sink, or asked for memory only, is put into a buffer. Where the
//!   table has a backlog the insert waits for its turn, so that a writer's inserts keep their order whatever
//!   levels it asks for.
//! - An insert whose sender asked for the disk is written to the journal *and* put into a buffer, with no
//!   await in between: the insert is in both, or in neither. Where memory is full or the table has a backlog,
//!   the insert is only written to the journal, behind the others.

use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::Duration;

use crate::records;
use crate::sink::Sink;
use tokio::sync::oneshot;
use windrow_log::{Bound, CommitError, LogFull, Room};

use crate::backlog::{Sender, Turn};
use crate::budget::Exhausted;
use crate::deduplication::Claimed;
use crate::feeder::feed;
use crate::gatherer::Gatherer;
use crate::insert::{outcome_of, AckLevel, DedupKeys, Insert, InsertError, PushError, Ticket};
use crate::journaling::{Appended, Encoded, Journaled, Journaling};
use crate::member::Arriving;
use crate::shape::Shape;
#[cfg(test)]
use crate::simulation::sabotage::{self, Sabotage};
use crate::table::Table;

/// Time between two attempts to take an insert out of a batch that is under way.
const WITHDRAWN_AGAIN: Duration = Duration::from_millis(10);

impl<S: Sink> Gatherer<S> {
    /// Takes an insert. For an insert whose sender waits, the ticket brings the outcome; for others the end
    /// of this call is the acknowledgement, at the level that the insert asks for.
    ///
    /// A repeat of what is stored has no ticket either: there is nothing left to be done for it.
    ///
    /// # Errors
    /// Fails where the insert is not taken: no room, too long a wait, a failed journal or batch, a shutdown.
    pub async fn push(&self, shape: &Arc<Shape>, mut insert: Insert) -> Result<Option<Ticket>, PushError> {
        if insert.dedup.is_some() && self.claim_keys(shape, &mut insert).await? == Claimed::Repeat {
            return Ok(None);
        }
        let (rows, bytes) = (insert.rows.count() as u64, insert.payload_bytes);
        let pushed = match &self.core.journal {
            Some(journal) if insert.ack == AckLevel::Disk => self.push_to_disk(journal, shape, insert).await,
            Some(journal) if insert.dedup.is_some() => self.push_in_turn(Some(journal), shape, insert).await,
            _ => self.push_in_turn(None, shape, insert).await,
        };
        if pushed.is_ok() {
            shape.table.metrics.activity.arrived(1, rows, bytes);
        }
        pushed
    }

    /// Puts an insert into a buffer, when there is room in memory and no insert in front of it.
    async fn push_in_turn(
        &self,
        journal: Option<&Arc<Journaling>>,
        shape: &Arc<Shape>,
        insert: Insert,
    ) -> Result<Option<Ticket>, PushError> {
        let table = &shape.table;
        let bytes = Table::held_bytes(&insert);
        if let Some(turn) = table.has_to_wait(None) {
            let _waiting = self.registry.budget.wait_with(bytes).map_err(overloaded)?;
            self.wait_for_turn(table, turn, self.patience(&insert)).await?;
        }
        table.budget.take(bytes, self.core.options.overload_wait).await.map_err(overloaded)?;
        if let Err(error) = self.check(table, &insert) {
            table.budget.give_back(bytes);
            return Err(error);
        }
        let journaled = match journal {
            None => None,
            Some(journal) => match self.append(journal, shape, &insert) {
                // Nobody waits for it here: what could not be written is not sent.
                Ok(Appended { journaled, durable: _ }) => Some(journaled),
                Err(error) => {
                    table.budget.give_back(bytes);
                    return Err(error);
                }
            },
        };
        let waits = insert.ack == AckLevel::Stored;
        let (sender, receiver) = if waits { Some(oneshot::channel()).unzip() } else { (None, None) };
        let pushed =
            table.push(shape, Arriving { insert, held_bytes: bytes, outcome: sender, journaled, left_over: false });
        self.launch(pushed.launch);
        Ok(receiver.map(|outcome| Ticket {
            outcome,
            table: Arc::downgrade(table),
            member: pushed.member,
            journal: journal.zip(journaled).map(|(journal, journaled)| (journal.clone(), journaled)),
            gave_up: self.core.gave_up.clone(),
        }))
    }

    /// Waits for the inserts in front: not for ever, and only briefly where the table has too many parts for
    /// those as well.
    async fn wait_for_turn(&self, table: &Table, turn: Turn, patience: Duration) -> Result<(), PushError> {
        tokio::select! {
            biased;
            turn = tokio::time::timeout(patience, table.turn_comes(turn)) => turn.map_err(|_| PushError::Behind),
            exception = table.refuses_parts(self.core.options.too_many_parts_wait) => {
                Err(PushError::Failed(InsertError::Exception(exception)))
            }
            () = self.core.gave_up.wait() => Err(PushError::ShuttingDown),
        }
    }

    fn patience(&self, insert: &Insert) -> Duration {
        match insert.ack {
            AckLevel::Stored => insert.patience,
            AckLevel::Memory | AckLevel::Disk => self.core.options.overload_wait,
        }
    }

    /// Writes the insert to the journal and puts it into a buffer, or parks it. The call ends when the insert
    /// is on the disk.
    async fn push_to_disk(
        &self,
        journal: &Arc<Journaling>,
        shape: &Arc<Shape>,
        insert: Insert,
    ) -> Result<Option<Ticket>, PushError> {
        let table = &shape.table;
        self.check(table, &insert)?;
        let bytes = Table::held_bytes(&insert);
        if table.has_backlog() || table.budget.try_take(bytes).is_err() {
            return self.park(journal, shape, insert).await.map(|()| None);
        }
        let Appended { journaled, durable } = match self.append(journal, shape, &insert) {
            Ok(appended) => appended,
            Err(error) => {
                table.budget.give_back(bytes);
                return Err(error);
            }
        };
        let claim = insert.dedup.as_ref().and_then(DedupKeys::handle);
        let (sender, mut receiver) = oneshot::channel();
        let pushed = table.push(
            shape,
            Arriving { insert, held_bytes: bytes, outcome: Some(sender), journaled: Some(journaled), left_over: false },
        );
        self.launch(pushed.launch);
        #[cfg(test)]
        if sabotage::is(Sabotage::AcknowledgesEarly) {
            return Ok(None);
        }
        if let Err(error) = durable.await {
            // It is taken back; where that is too late, its batch leaves it behind before it is sent.
            loop {
                if table.withdraw(pushed.member).is_some() {
                    journal.done(table, &[journaled]);
                    return Err(not_journaled(&error));
                }
                if let Ok(end) = tokio::time::timeout(WITHDRAWN_AGAIN, outcome_of(&mut receiver)).await {
                    return end.map(|()| None).map_err(|end| match end {
                        // It was not sent, and the journal may show it all the same after a crash.
                        InsertError::Unreachable(_) => not_journaled(&error),
                        end => PushError::Failed(end),
                    });
                }
            }
        }
        // From here on a failure makes a dead letter; one that came before is told.
        receiver.close();
        if let Some(claim) = claim {
            claim.tell_durable();
        }
        match receiver.try_recv() {
            Ok(Err(error)) => Err(PushError::Failed(error)),
            Ok(Ok(())) | Err(_) => Ok(None),
        }
    }

    fn append(&self, journal: &Journaling, shape: &Arc<Shape>, insert: &Insert) -> Result<Appended, PushError> {
        let encoded = self.encode(journal, shape, insert)?;
        journal.append(&shape.table, encoded).map_err(journal_full)
    }

    fn encode(&self, journal: &Journaling, shape: &Arc<Shape>, insert: &Insert) -> Result<Encoded, PushError> {
        let encoded = journal.encode(shape, insert, self.core.stores.environment.wall_micros());
        let max_bytes = self.core.options.max_table_journal_bytes;
        match shape.table.journal_bytes.load(Ordering::Relaxed).saturating_add(encoded.bytes()) > max_bytes {
            true => Err(PushError::JournalFull { max_bytes, whose: "this table" }),
            false => Ok(encoded),
        }
    }

    /// Writes the insert to the journal, behind all others of its table; the feeder will bring it into a
    /// buffer.
    async fn park(&self, journal: &Arc<Journaling>, shape: &Arc<Shape>, mut insert: Insert) -> Result<(), PushError> {
        let table = shape.table.clone();
        let encoded = self.encode(journal, shape, &insert)?;
        let sender = Sender { shape: shape.clone(), kind: insert.kind.clone() };
        let mut keys = insert.dedup.take();
        drop(insert);
        let (bytes, context) = (encoded.bytes(), encoded.context.clone());
        if table.begin_parking(bytes) {
            tokio::spawn(feed(self.clone(), journal.clone(), table.clone()));
        }
        journal.count(&table, 1, bytes);
        let (tell, told) = oneshot::channel();
        let then = {
            let (table, journal) = (table.clone(), journal.clone());
            move |record, written: Result<(), CommitError>| {
                match &written {
                    Ok(()) => {
                        keys.iter_mut().for_each(DedupKeys::park);
                        table.parked(record, context.key(), &sender);
                    }
                    Err(_) => table.not_parked(bytes),
                }
                if written.is_err() {
                    journal.done(&table, &[Journaled { record, bytes }]);
                }
                // Whoever waited may have gone; the insert is parked all the same.
                let _ = tell.send(written);
            }
        };
        let appended =
            journal.log.append_then(records::INSERT, Some(&encoded.context), encoded.payload, Room::Ordinary, then);
        if let Err(full) = appended {
            journal.uncount(&table, 1, bytes);
            table.not_parked(bytes);
            return Err(journal_full(full));
        }
        table.metrics.parked.inc();
        match told.await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(not_journaled(&error)),
            Err(_) => Err(not_journaled(&CommitError::Closed)),
        }
    }

    /// Fails where an insert is refused whatever room there is: it might become a dead letter that can't be
    /// kept, or the gatherer ends.
    fn check(&self, table: &Table, insert: &Insert) -> Result<(), PushError> {
        // What nobody waits for may become a dead letter, and is refused if that could not be kept. One that was a dead
        // letter makes room.
        if insert.ack != AckLevel::Stored && insert.history.is_none() {
            let full =
                self.core.stores.dead_letters.as_ref().and_then(|dead_letters| dead_letters.refuses(&table.name));
            if let Some(full) = full {
                return Err(PushError::DeadLettersFull { max_bytes: full.max_bytes });
            }
        }
        self.refuse_when_closing()
    }

    pub(crate) fn refuse_when_closing(&self) -> Result<(), PushError> {
        match self.closing.load(Ordering::Acquire) {
            true => Err(PushError::ShuttingDown),
            false => Ok(()),
        }
    }
}

pub(crate) fn overloaded(exhausted: Exhausted) -> PushError {
    match exhausted {
        Exhausted::Total { max_bytes } => PushError::Overloaded { max_bytes, whose: "all tables" },
        Exhausted::Waiting { max_bytes } => PushError::Overloaded { max_bytes, whose: "inserts that wait for others" },
        Exhausted::Table { max_bytes } => PushError::Overloaded { max_bytes, whose: "this table" },
    }
}

fn not_journaled(error: &CommitError) -> PushError {
    let is_certain = !matches!(error, CommitError::Io { certain: false, .. });
    PushError::NotJournaled { cause: error.to_string(), is_certain }
}

fn journal_full(full: LogFull) -> PushError {
    let LogFull { max_bytes, bound } = full;
    match bound {
        Bound::Disk => PushError::JournalFull { max_bytes, whose: "all tables" },
        Bound::Queue => PushError::Overloaded { max_bytes, whose: "what waits for the disk" },
    }
}
