//! Batches that their source has gathered itself and can bring again: those of a Kafka pipeline.
//!
//! Such a batch goes past the buffers and their policy, straight into the lane of its shape, under the id and
//! with the members that its source has written down before. Nothing of the batch is journaled, and none of
//! its members becomes a dead letter here: after a crash its source pushes it again, as *sent before*, and
//! rows that are stored already are recognised by the batch's id.
//!
//! For that each attempt of a repeat has to send what an attempt of an earlier run sent:
//!
//! - A part of the batch is named by the batch's id and its members' places, which a repeat gives again.
//! - A batch is taken apart only where its rows say so by themselves: where the values of some are refused,
//!   or where they go into too many partitions. Other reasons may be gone the next time: a lack of memory for
//!   the moment, or of a right on the table. Then a batch that is partly stored in parts would be sent whole.
//!   Such a batch fails as a whole instead, or is tried again.
//! - There is no limit to how far a batch is taken apart: its rows tell where that ends.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::policy::Micros;
use crate::sink::{BatchId, Sink};
use tokio::sync::oneshot;
use windrow_columns::Rows;

use crate::feeder::FEEDER;
use crate::gatherer::Gatherer;
use crate::insert::{outcome_of, AckLevel, InsertError, InsertKind, Outcome, PushError, QueryId};
use crate::isolate::is_of_rows;
use crate::member::{Contents, Member};
use crate::shape::Shape;
use crate::signal::Signal;
use crate::table::Table;

/// A batch as its source has written it down: whenever it is pushed, it has this id, these members and their
/// rows.
pub struct PushedBatch {
    pub id: BatchId,
    /// Members, which are refused and answered one by one. The list is not empty.
    pub members: Vec<PushedMember>,
    /// The batch may have been pushed before, by any gateway.
    pub sent_before: bool,
}

pub struct PushedMember {
    /// Rows in their order, in one part or several. They are of the shape's form and columns, and not empty.
    pub rows: Vec<Rows>,
    /// Bytes of the rows as they came.
    pub payload_bytes: u64,
    /// Time for which the source has had the first of the rows.
    pub gathered_for: Duration,
    pub query_id: QueryId,
    pub kind: Arc<InsertKind>,
}

/// The state of a batch that has not come to its end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Progress {
    /// Number of attempts that have failed.
    pub failed_attempts: u32,
    pub last_error: Option<InsertError>,
}

/// The state that a pushed batch shares with whoever waits for it.
#[derive(Debug)]
pub(crate) struct SourceBatch {
    pub(crate) sent_before: bool,
    progress: Mutex<Progress>,
}

impl SourceBatch {
    pub(crate) fn attempt_failed(&self, error: &InsertError) {
        let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        progress.failed_attempts = progress.failed_attempts.saturating_add(1);
        progress.last_error = Some(error.clone());
    }
}

/// A pushed batch on its way. Dropping the ticket does not stop the batch.
pub struct BatchTicket {
    members: Vec<oneshot::Receiver<Outcome>>,
    batch: Arc<SourceBatch>,
    ended: Arc<Signal>,
}

/// A view of how far a batch has come, for others than the one who waits for its end.
#[derive(Debug, Clone)]
pub struct BatchProgress(Arc<SourceBatch>);

impl BatchProgress {
    pub fn get(&self) -> Progress {
        self.0.progress.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl BatchTicket {
    pub fn progress(&self) -> BatchProgress {
        BatchProgress(self.batch.clone())
    }

    /// Waits for the outcomes of all members, in their order. Outcomes that are not certain when the gatherer
    /// has been shut down are said to be unknown.
    pub async fn outcomes(self) -> Vec<Result<(), InsertError>> {
        let BatchTicket { members, ended, batch: _ } = self;
        let mut outcomes = Vec::with_capacity(members.len());
        for mut member in members {
            tokio::select! {
                biased;
                outcome = outcome_of(&mut member) => outcomes.push(outcome),
                () = ended.wait() => outcomes.push(outcome_at_end(&mut member)),
            }
        }
        outcomes
    }
}

fn outcome_at_end(member: &mut oneshot::Receiver<Outcome>) -> Outcome {
    member.try_recv().unwrap_or_else(|_| Err(InsertError::unanswered()))
}

impl InsertError {
    /// Says whether a member of a pushed batch was refused, by itself, for its rows' values. Then nothing of
    /// it is stored, and nothing will be however often it is pushed. With any other error its batch is to be
    /// pushed again, under the same id.
    pub fn is_of_rows(&self) -> bool {
        matches!(self, InsertError::Exception(exception) if is_of_rows(exception))
    }
}

impl<S: Sink> Gatherer<S> {
    /// Takes a batch that its source keeps until it knows the outcomes. The call ends when the batch has
    /// memory and its place in the lane, and waits as long as there is no room. Batches of a shape are stored
    /// in the order of the calls.
    ///
    /// # Errors
    /// Fails where the gatherer is shutting down.
    ///
    /// # Panics
    /// Panics if a member has no rows, or if rows are not of the shape's form and columns.
    pub async fn push_batch(&self, shape: &Arc<Shape>, batch: PushedBatch) -> Result<BatchTicket, PushError> {
        let table = &shape.table;
        let _turn = table.pushing.lock().await;
        self.refuse_when_closing()?;
        let PushedBatch { id, members, sent_before } = batch;
        let (sizes, parts) = measure(members);
        let rows = Rows::of_parts(parts);
        let room = table.budget.at_most(sizes.iter().map(|size| size.held_bytes).sum());
        table.budget.take_at_last(room).await;
        // Nothing is awaited from here on: what was taken goes with the members, or back.
        if let Err(error) = self.refuse_when_closing() {
            table.budget.give_back(room);
            return Err(error);
        }
        let now = table.clock.now();
        let (members, receivers) = enter(sizes, room, now);
        let bytes = members.iter().map(|member| member.payload_bytes).sum();
        if !sent_before {
            table.metrics.activity.arrived(members.len() as u64, rows.count() as u64, bytes);
        }
        let batch = Arc::new(SourceBatch { sent_before, progress: Mutex::default() });
        self.launch(table.push_batch(shape, id, batch.clone(), Contents::new(rows, members)));
        Ok(BatchTicket { members: receivers, batch, ended: self.core.ended.clone() })
    }
}

/// A member, and the size of its rows.
struct Measured {
    rows: usize,
    held_bytes: u64,
    member: PushedMember,
}

fn measure(members: Vec<PushedMember>) -> (Vec<Measured>, Vec<Rows>) {
    let mut parts = Vec::new();
    let measured = members.into_iter().map(|mut member| {
        let of_member = std::mem::take(&mut member.rows);
        let rows = of_member.iter().map(Rows::count).sum();
        assert!(rows > 0, "a member of a batch has rows");
        let bytes: usize = of_member.iter().map(Rows::bytes).sum();
        parts.extend(of_member);
        Measured { rows, held_bytes: bytes as u64 + Table::OVERHEAD_BYTES, member }
    });
    (measured.collect(), parts)
}

/// Returns the members as they stand in the batch, sharing `room`, and the receivers of their outcomes.
fn enter(sizes: Vec<Measured>, mut room: u64, now: Micros) -> (Vec<Member>, Vec<oneshot::Receiver<Outcome>>) {
    let members = (0..).zip(sizes).map(|(place, Measured { rows, held_bytes, member })| {
        let held_bytes = held_bytes.min(room);
        room -= held_bytes;
        let (sender, receiver) = oneshot::channel();
        let member = Member {
            // Given with its place in the lane.
            id: 0,
            rows,
            payload_bytes: member.payload_bytes,
            held_bytes,
            arrived_at: now - Micros(member.gathered_for.as_micros() as u64),
            query_id: member.query_id,
            writer: FEEDER,
            kind: member.kind,
            ack: AckLevel::Stored,
            outcome: Some(sender),
            attempts: 0,
            baggage: None,
            journaled: None,
            place: Some(place),
            left_over: false,
            withdrawn: false,
        };
        (member, receiver)
    });
    members.unzip()
}
