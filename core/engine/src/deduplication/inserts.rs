//! The use of the deduplication index for inserts: before they are taken, and when they are stored.

use crate::sink::Sink;

use super::cut::cut_known;
use super::{DeduplicationIndex, Entered, Resolved};
use crate::gatherer::{Core, Gatherer};
use crate::insert::{AckLevel, Insert, InsertError, PushError};
use crate::push::overloaded;
use crate::settle::Settled;
use crate::shape::Shape;
use crate::table::Table;

/// The result of claiming an insert's keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Claimed {
    /// The insert is to be stored, or what is left of it.
    New,
    /// The insert is stored already, or as safe as it asks to be: it is to be answered with success.
    Repeat,
}

impl<S: Sink> Gatherer<S> {
    /// Returns the deduplication index, where inserts are deduplicated.
    pub fn deduplication(&self) -> Option<&DeduplicationIndex> {
        self.core.stores.deduplication.as_ref()
    }

    /// Claims the insert's keys. While another insert with these keys is on its way this one waits, for as
    /// long as its sender would.
    pub(crate) async fn claim_keys(&self, shape: &Shape, insert: &mut Insert) -> Result<Claimed, PushError> {
        let Some(deduplication) = self.deduplication() else { return Ok(Claimed::New) };
        let Some(keys) = insert.dedup.take() else { return Ok(Claimed::New) };
        let patience = match insert.ack {
            AckLevel::Stored => insert.patience,
            AckLevel::Memory | AckLevel::Disk => self.core.options.overload_wait,
        };
        let _waiting = self.registry.budget.wait_with(Table::held_bytes(insert)).map_err(overloaded)?;
        let resolved = tokio::select! {
            biased;
            resolved = tokio::time::timeout(patience, deduplication.resolve(keys, insert.ack)) => resolved,
            () = self.core.gave_up.wait() => return Err(PushError::ShuttingDown),
        };
        match resolved.map_err(|_| PushError::Behind)? {
            Resolved::Mine { keys, known } if cut_known(&mut insert.rows, shape.destination(), &known) => {
                insert.dedup = Some(keys);
                Ok(Claimed::New)
            }
            // Told once, by what the table was then.
            Resolved::Mine { .. } => Err(PushError::Failed(InsertError::OutcomeUnknown(
                "a part of it is stored already, under the same token, and it can't be told which".to_owned(),
            ))),
            Resolved::Repeat => {
                shape.table.metrics.repeats.add(1, insert.rows.count() as u64, insert.payload_bytes);
                Ok(Claimed::Repeat)
            }
        }
    }
}

/// Enters the inserts that are stored. Nothing that says that they are done may be written before the result
/// has resolved.
pub(crate) fn enter_stored<S: Sink>(core: &Core<S>, settled: &mut [Settled]) -> Option<Entered> {
    let deduplication = core.stores.deduplication.as_ref()?;
    let stored = settled.iter_mut().filter(|settled| settled.outcome.is_ok());
    let keys: Vec<_> = stored.filter_map(|settled| settled.member.baggage.as_mut()?.dedup.take()).collect();
    (!keys.is_empty()).then(|| deduplication.enter(keys))
}
