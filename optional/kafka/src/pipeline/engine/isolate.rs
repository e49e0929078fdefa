//! Isolation of a refused range: it is fetched again and stored message by message, so that only culprits are
//! left out.
//!
//! The messages go as members of further batches of [`MESSAGES_TOGETHER`] at most. Their ids follow from the
//! refused batch's id and from the messages' offsets: a repeat, also by another member of the group, makes
//! the same batches.

use std::sync::Arc;

use crate::messages::{Message, MessageReader};
use windrow_clickhouse::ErrorCode;
use windrow_columns::Rows;
use windrow_engine::{
    sink::{BatchId, Destination, Sink},
    InsertError, PushedBatch, QueryId,
};

use crate::pipeline::engine::chunk::{BadMessage, GroupMember, Reading};
use crate::pipeline::engine::push::{Failure, Pusher};
use crate::pipeline::engine::read::{bad_message, Fetch, ReadTrouble, Readers};
use crate::pipeline::engine::replay::{on_thread, Parts};
use crate::pipeline::record::Range;

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
    /// Number of times that the whole batch could not be stored so far.
    pub(crate) failures: u32,
}

/// A message with its rows, and in the form that it came in.
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
        other => (ErrorCode::OK, other.to_string()),
    };
    BadMessage { code, error, was_read: true, ..message }
}

/// A reader of the messages of a range that have rows for its target. It reads some at a time, since a
/// message by itself takes many times the memory that it takes among others.
pub(crate) struct Singles<'r> {
    parts: Parts,
    /// The part of the latest fetch that is not read yet.
    rest: Option<Fetch>,
    readers: Arc<Readers>,
    reading: &'r Arc<Reading>,
    refused: &'r Refused<'r>,
    are_found: bool,
}

impl<'r> Singles<'r> {
    pub(crate) fn of<S: Sink>(pusher: &Pusher<S>, reading: &'r Arc<Reading>, refused: &'r Refused<'r>) -> Singles<'r> {
        let parts = Parts::of(&pusher.client, refused.span);
        Singles { parts, rest: None, readers: pusher.readers.clone(), reading, refused, are_found: false }
    }

    /// Returns the next `count` messages. There are fewer at the end, and none behind it.
    pub(crate) async fn next(&mut self, count: usize) -> Result<Vec<Single>, Refusal> {
        let mut singles = Vec::new();
        while singles.len() < count {
            let fetch = match self.rest.take() {
                Some(rest) => Some(rest),
                None => self.parts.next().await.map_err(Refusal::Fetch)?,
            };
            let Some(mut fetch) = fetch else { break };
            let (readers, reading, target) = (self.readers.clone(), self.reading.clone(), self.refused.target.clone());
            let (again, most) = (fetch.clone(), count - singles.len());
            let read = on_thread(move || read_singles(&readers, &reading, again, &target, most)).await;
            let (some, next_offset) = read.map_err(|trouble| Refusal::Fetch(trouble.into_text()))?;
            singles.extend(some);
            fetch.first_offset = next_offset;
            self.rest = (fetch.first_offset < fetch.next_offset).then_some(fetch);
        }
        self.are_found |= !singles.is_empty();
        match self.are_found {
            true => Ok(singles),
            // What was refused had rows. If they are not found any more, they are not stored either.
            false => Err(Refusal::Fetch(format!(
                "{} was refused, and its rows are not there to be stored one by one",
                self.refused.span
            ))),
        }
    }
}

/// Stores the range's messages one by one, and returns those that are refused alone. Adds their rows to `not_stored`.
pub(crate) async fn isolate<S: Sink>(
    pusher: &Pusher<S>,
    reading: &Arc<Reading>,
    refused: &Refused<'_>,
    not_stored: &mut u64,
) -> Result<Vec<BadMessage>, Refusal> {
    let mut singles = Singles::of(pusher, reading, refused);
    let mut bad = Vec::new();
    loop {
        let together = singles.next(MESSAGES_TOGETHER).await?;
        if together.is_empty() {
            return Ok(bad);
        }
        bad.extend(push_singles(pusher, refused, together, not_stored).await?);
    }
}

/// Reads at most `most` messages. Returns them with the offset where the rest begins.
fn read_singles(
    readers: &Readers,
    reading: &Reading,
    fetch: Fetch,
    target: &Arc<Destination>,
    most: usize,
) -> Result<(Vec<Single>, i64), ReadTrouble> {
    let Fetch { partition, batches, first_offset, mut next_offset, .. } = fetch;
    let mut singles = Vec::new();
    readers.with_decompressor(|decompressor| {
        for batch in batches.into_iter().flatten() {
            let damaged = |error: crate::BatchError| ReadTrouble::Fetched(format!("{partition}: {error}"));
            let batch = batch.map_err(damaged)?;
            if batch.last_offset < first_offset {
                continue;
            }
            for record in decompressor.records(&batch).map_err(damaged)? {
                let record = record.map_err(damaged)?;
                if record.offset < first_offset {
                    continue;
                }
                if record.offset >= next_offset {
                    return Ok(());
                }
                if singles.len() >= most {
                    next_offset = record.offset;
                    return Ok(());
                }
                let mut reader = MessageReader::new(&reading.plan, &partition.topic, partition.partition);
                // What can't be read was a dead letter before the batch was pushed.
                if readers.read_one(reading, &mut reader, &Message::from(record))?.is_err() {
                    continue;
                }
                let runs = reader.finish().into_iter().map(|run| reading.rows(run));
                let rows = runs.filter(|rows| rows.target == *target).map(|rows| Rows::Parsed(rows.block));
                let rows: Vec<Rows> = rows.collect();
                if !rows.is_empty() {
                    singles.push(Single { message: bad_message(&record, ErrorCode::OK, String::new()), rows });
                }
            }
        }
        Ok(())
    })?;
    Ok((singles, next_offset))
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
    let now_ms = crate::pipeline::latency::wall_ms();
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
    let shape = pusher.gatherer.shape((*target).clone());
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

#[cfg(test)]
mod tests {
    use crate::{FetchedPartition, Isolation, KafkaErrorCode, TopicPartition, VisibleBatches};
    use bytes::Bytes;
    use windrow_columns::{ColumnSpec, DataType, DefaultKind};

    use super::*;
    use crate::pipeline::options::{FormatOptions, OnError};
    use crate::pipeline::plan::plan_for;
    use crate::pipeline::tables::tests::{description, NoTable};

    fn reading() -> Reading {
        let description = description(&[("a", "UInt8")]);
        let format = FormatOptions { name: "JSONEachRow".to_owned(), ..FormatOptions::default() };
        let data_type = DataType::parse("UInt8").unwrap();
        let columns = vec![ColumnSpec { name: "a".to_owned(), data_type, default_kind: DefaultKind::None }];
        let plan = plan_for(&format, &[], columns, &description).unwrap();
        Reading::new(Arc::new(plan), description)
    }

    /// Makes a batch of messages with these values, in the form that brokers send.
    fn batch(base_offset: i64, values: &[&str]) -> Vec<u8> {
        let mut records = Vec::new();
        for (delta, value) in values.iter().enumerate() {
            // Numbers as Kafka writes them, all of them below 64: no attributes, no time, no key and no headers.
            let mut record = vec![0, 0, 2 * delta as u8, 1, 2 * value.len() as u8];
            record.extend_from_slice(value.as_bytes());
            record.push(0);
            records.push(2 * record.len() as u8);
            records.extend(record);
        }
        let count = values.len() as i32;
        let checked = [
            &0i16.to_be_bytes()[..],
            &(count - 1).to_be_bytes(),
            &[0; 16],
            &[0xff; 14],
            &count.to_be_bytes(),
            &records,
        ]
        .concat();
        let counted = [&0i32.to_be_bytes()[..], &[2], &crc32c::crc32c(&checked).to_be_bytes(), &checked].concat();
        [&base_offset.to_be_bytes()[..], &(counted.len() as i32).to_be_bytes(), &counted].concat()
    }

    fn fetch(batches: &[Vec<u8>], first_offset: i64, next_offset: i64) -> Fetch {
        let fetched = FetchedPartition {
            partition: 0,
            error: KafkaErrorCode::NONE,
            high_watermark: next_offset,
            last_stable_offset: next_offset,
            log_start_offset: 0,
            aborted_transactions: Vec::new(),
            records: Bytes::from(batches.concat()),
        };
        Fetch {
            partition: TopicPartition::new("events", 0),
            batches: vec![VisibleBatches::new(&fetched, Isolation::ReadCommitted, first_offset)],
            first_offset,
            next_offset,
            fetched_ms: 0,
        }
    }

    #[test]
    fn some_of_the_messages_are_read_at_a_time() {
        let (readers, reading) =
            (Readers::new(Arc::new(NoTable::NobodyToAsk), None, OnError::DeadLetter, Vec::new()), reading());
        // One without rows, and one that can't be read.
        let batches =
            [batch(10, &[r#"{"a":0}"#, r#"{"a":1}"#, ""]), batch(13, &[r#"{"a":3}"#, "x", r#"{"a":5}"#, r#"{"a":6}"#])];
        let fetch = fetch(&batches, 11, 16);
        let whole = crate::pipeline::engine::read::read(&readers, &reading, fetch.clone(), &[]).unwrap();
        let target = whole.rows[0].target.clone();
        let read = |first_offset: i64, most: usize| {
            let fetch = Fetch { first_offset, ..fetch.clone() };
            let (singles, next_offset) = read_singles(&readers, &reading, fetch, &target, most).unwrap();
            assert!(singles.iter().all(|single| single.row_count() == 1));
            (singles.iter().map(Single::offset).collect::<Vec<_>>(), next_offset)
        };
        assert_eq!(read(11, 100), (vec![11, 13, 15], 16));
        assert_eq!(read(11, 3), (vec![11, 13, 15], 16));
        // Bit by bit it is the same.
        assert_eq!(read(11, 2), (vec![11, 13], 14));
        assert_eq!(read(14, 2), (vec![15], 16));
        assert_eq!(read(11, 1), (vec![11], 12));
        assert_eq!(read(12, 1), (vec![13], 14));
        assert_eq!(read(16, 1), (vec![], 16));
    }
}
