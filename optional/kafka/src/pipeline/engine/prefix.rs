//! Storing the messages before one that stops the pipeline, and none behind it.
//!
//! A refused range is stored in pieces. A refused piece is halved until the first message is found that is
//! refused alone. The ids of the pieces follow from the refused batch's id and from the offsets: the next
//! start repeats the same steps, and pieces that were already stored are recognised.

use std::sync::Arc;

use windrow_engine::{sink::Sink, InsertError, PushedBatch, QueryId};

use crate::pipeline::engine::chunk::{BadMessage, GroupMember, Reading};
use crate::pipeline::engine::isolate::{Refusal, Refused, Single, Singles};
use crate::pipeline::engine::push::{Failure, Pusher};
use crate::pipeline::latency::wall_ms;

/// Messages that are read at once. More would take much memory.
const MESSAGES_AT_ONCE: usize = 10_000;

/// Stores the messages up to the first one that is refused alone, and returns that message, or `None` if all
/// of them could be stored in pieces.
pub(crate) async fn store_prefix<S: Sink>(
    pusher: &Pusher<S>,
    reading: &Arc<Reading>,
    refused: &Refused<'_>,
) -> Result<Option<BadMessage>, Refusal> {
    let mut of_range = Singles::of(pusher, reading, refused);
    loop {
        let singles = of_range.next(MESSAGES_AT_ONCE).await?;
        if singles.is_empty() {
            return Ok(None);
        }
        // The next ones last.
        let mut waiting = vec![singles];
        while let Some(singles) = waiting.pop() {
            if let Err(error) = push_together(pusher, refused, &singles).await? {
                match <[Single; 1]>::try_from(singles) {
                    Ok([single]) => return Ok(Some(single.refused_by(&error))),
                    Err(singles) => waiting.extend(halves(singles)),
                }
            }
        }
    }
}

/// Returns the second half before the first, or only one piece if it can't be halved.
fn halves(mut singles: Vec<Single>) -> Vec<Vec<Single>> {
    let second = singles.split_off(singles.len().div_ceil(2));
    let mut halves = vec![second, singles];
    halves.retain(|half| !half.is_empty());
    halves
}

/// Pushes messages as one member of one batch: they are stored together, or not at all.
async fn push_together<S: Sink>(
    pusher: &Pusher<S>,
    refused: &Refused<'_>,
    singles: &[Single],
) -> Result<Result<(), InsertError>, Refusal> {
    let Refused { batch, span, target, sent_before, failures } = *refused;
    let (Some(first), Some(last)) = (singles.first(), singles.last()) else { return Ok(Ok(())) };
    let (partition, first_offset, last_offset) = (span.partition(), first.offset(), last.offset());
    let number = partition.partition.to_le_bytes();
    let (from, to) = (first_offset.to_le_bytes(), last_offset.to_le_bytes());
    let place = [b"together ".as_slice(), partition.topic.as_bytes(), &number, &from, &to].concat();
    let id = batch.derived(place);
    let member = GroupMember {
        partition,
        first_offset,
        last_offset,
        rows: singles.iter().flat_map(|single| single.rows().iter().cloned()).collect(),
        oldest_fetched_ms: wall_ms(),
    };
    let members = vec![pusher.member(member, QueryId::Random(id.0))];
    let shape = pusher.gatherer.shape((*target).clone());
    let pushed = pusher.gatherer.push_batch(&shape, PushedBatch { id, members, sent_before }).await;
    let ticket = pushed.map_err(|error| Failure::table(format!("{error:?}")))?;
    pusher.view.set_progress(Some(ticket.progress()));
    let outcome = ticket.outcomes().await.pop().unwrap_or(Ok(()));
    if let Err(error) = &outcome {
        pusher.judge(error, target.deduplicates, failures)?;
    }
    Ok(outcome)
}
