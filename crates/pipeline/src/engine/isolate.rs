//! A range that was refused is fetched again and stored message by message, so that only the guilty ones are left out.
//!
//! The messages go as members of further batches of [`MESSAGES_TOGETHER`] at most, under ids that follow from the refused one's and from their
//! offsets: a repeat, also by another member of the group, makes the same batches.

use std::sync::Arc;

use windrow_block::Rows;
use windrow_gatherer::{InsertError, PushedBatch, QueryId};
use windrow_messages::{Message, MessageReader};
use windrow_sink::{BatchId, Destination, Sink};

use crate::engine::chunk::{BadMessage, GroupMember, Reading};
use crate::engine::push::{Failure, Pusher};
use crate::engine::read::{bad_message, Fetch, ReadTrouble, Readers};
use crate::engine::replay::{on_thread, Parts};
use crate::record::Range;

pub(crate) const MESSAGES_TOGETHER: usize = 1_000;

#[derive(Debug)]
pub(crate) enum Refusal {
    Fetch(String),
    Failure(Failure),
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Refusal {
        Refusal::Failure(failure)
    }
}

/// A range whose rows for `target` were refused together, as a part of `batch`.
pub(crate) struct Refused<'r> {
    pub(crate) batch: BatchId,
    pub(crate) span: &'r Range,
    pub(crate) target: &'r Arc<Destination>,
    pub(crate) sent_before: bool,
    /// How often the whole batch could not be stored so far.
    pub(crate) failures: u32,
}

/// A message with its rows, and as it came.
pub(crate) struct Single {
    message: BadMessage,
    rows: Vec<Rows>,
}

impl Single {
    pub(crate) fn offset(&self) -> i64 {
        self.message.offset
    }

    pub(crate) fn rows(&self) -> &[Rows] {
        &self.rows
    }

    pub(crate) fn row_count(&self) -> u64 {
        self.rows.iter().map(|rows| rows.count() as u64).sum()
    }

    pub(crate) fn refused_by(self, error: &InsertError) -> BadMessage {
        refused_by(self.message, error)
    }
}

fn refused_by(message: BadMessage, error: &InsertError) -> BadMessage {
    let (code, error) = match error {
        InsertError::Exception(exception) => (exception.code, exception.line.clone()),
        other => (0, other.to_string()),
    };
    BadMessage { code, error, was_read: true, ..message }
}

/// The messages of the range that have rows for its target.
pub(crate) async fn fetch_singles<S: Sink>(
    pusher: &Pusher<S>,
    reading: &Arc<Reading>,
    refused: &Refused<'_>,
) -> Result<Vec<Single>, Refusal> {
    let Refused { span, target, .. } = refused;
    let mut singles = Vec::new();
    let mut parts = Parts::of(&pusher.client, span);
    while let Some(fetch) = parts.next().await.map_err(Refusal::Fetch)? {
        singles.extend(read_part(pusher, reading, fetch, target).await?);
    }
    match singles.is_empty() {
        true => Err(nothing_found(span)),
        false => Ok(singles),
    }
}

/// What was refused had rows. If they are not found any more, they are not stored either.
fn nothing_found(span: &Range) -> Refusal {
    Refusal::Fetch(format!("{span} was refused, and its rows are not there to be stored one by one"))
}

async fn read_part<S: Sink>(
    pusher: &Pusher<S>,
    reading: &Arc<Reading>,
    fetch: Fetch,
    target: &Arc<Destination>,
) -> Result<Vec<Single>, Refusal> {
    let (readers, reading, target) = (pusher.readers.clone(), reading.clone(), target.clone());
    let singles = on_thread(move || read_singles(&readers, &reading, fetch, &target)).await;
    singles.map_err(|trouble| Refusal::Fetch(trouble.into_text()))
}

/// Stores the range's messages one by one; those that are refused alone. `not_stored` counts their rows.
pub(crate) async fn isolate<S: Sink>(
    pusher: &Pusher<S>,
    reading: &Arc<Reading>,
    refused: &Refused<'_>,
    not_stored: &mut u64,
) -> Result<Vec<BadMessage>, Refusal> {
    let Refused { span, target, .. } = refused;
    let mut waiting: Vec<Single> = Vec::new();
    let mut bad = Vec::new();
    let mut are_found = false;
    let mut parts = Parts::of(&pusher.client, span);
    while let Some(fetch) = parts.next().await.map_err(Refusal::Fetch)? {
        waiting.extend(read_part(pusher, reading, fetch, target).await?);
        are_found |= !waiting.is_empty();
        while waiting.len() >= MESSAGES_TOGETHER {
            let rest = waiting.split_off(MESSAGES_TOGETHER);
            let together = std::mem::replace(&mut waiting, rest);
            bad.extend(push_singles(pusher, refused, together, not_stored).await?);
        }
    }
    if !are_found {
        return Err(nothing_found(span));
    }
    if !waiting.is_empty() {
        bad.extend(push_singles(pusher, refused, waiting, not_stored).await?);
    }
    Ok(bad)
}

fn read_singles(
    readers: &Readers,
    reading: &Reading,
    fetch: Fetch,
    target: &Arc<Destination>,
) -> Result<Vec<Single>, ReadTrouble> {
    let Fetch { partition, batches, first_offset, next_offset, .. } = fetch;
    let mut singles = Vec::new();
    readers.with_decompressor(|decompressor| {
        for batch in batches.into_iter().flatten() {
            let damaged = |error: windrow_kafka::BatchError| ReadTrouble::Fetched(format!("{partition}: {error}"));
            let batch = batch.map_err(damaged)?;
            for record in decompressor.records(&batch).map_err(damaged)? {
                let record = record.map_err(damaged)?;
                if record.offset < first_offset {
                    continue;
                }
                if record.offset >= next_offset {
                    return Ok(());
                }
                let mut reader = MessageReader::new(&reading.plan, &partition.topic, partition.partition);
                // What can't be read was a letter before the batch was pushed.
                if readers.read_one(reading, &mut reader, &Message::from(record))?.is_err() {
                    continue;
                }
                let runs = reader.finish().into_iter().map(|run| reading.rows(run));
                let rows = runs.filter(|rows| rows.target == *target).map(|rows| Rows::Typed(rows.block));
                let rows: Vec<Rows> = rows.collect();
                if !rows.is_empty() {
                    singles.push(Single { message: bad_message(&record, 0, String::new()), rows });
                }
            }
        }
        Ok(())
    })?;
    Ok(singles)
}

async fn push_singles<S: Sink>(
    pusher: &Pusher<S>,
    refused: &Refused<'_>,
    singles: Vec<Single>,
    not_stored: &mut u64,
) -> Result<Vec<BadMessage>, Refusal> {
    let Refused { batch, span, target, sent_before, failures } = *refused;
    let Some(first) = singles.first() else { return Ok(Vec::new()) };
    let (partition, first_offset) = (span.partition(), first.message.offset);
    let place = [partition.topic.as_bytes(), &partition.partition.to_le_bytes(), &first_offset.to_le_bytes()].concat();
    let id = batch.derived(place);
    let now_ms = crate::latency::wall_ms();
    let (members, messages): (Vec<_>, Vec<_>) = singles
        .into_iter()
        .map(|single| {
            let (row_count, offset) = (single.row_count(), single.offset());
            let Single { message, rows } = single;
            let member = GroupMember {
                partition: partition.clone(),
                first_offset: offset,
                last_offset: offset,
                rows,
                oldest_fetched_ms: now_ms,
            };
            (pusher.member(member, QueryId::Random(id.0)), (message, row_count))
        })
        .unzip();
    let shape = pusher.gatherer.shape((**target).clone());
    let pushed = pusher.gatherer.push_batch(&shape, PushedBatch { id, members, sent_before }).await;
    let ticket = pushed.map_err(|error| Failure::table(format!("{error:?}")))?;
    pusher.view.set_progress(Some(ticket.progress()));
    let mut bad = Vec::new();
    for ((message, row_count), outcome) in messages.into_iter().zip(ticket.outcomes().await) {
        let Err(error) = outcome else { continue };
        pusher.judge(&error, target.deduplicates, failures)?;
        *not_stored += row_count;
        bad.push(refused_by(message, &error));
    }
    Ok(bad)
}
