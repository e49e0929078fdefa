//! Pushing a recorded batch: its groups are stored one after another, refused ranges message by message, and
//! bad messages are treated as `on_error` says.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::{Client, TopicPartition};
use windrow_clickhouse::ErrorCode;
use windrow_engine::{
    dead_letters::DeadLetters, sink::Sink, Gatherer, InsertError, InsertKind, PushedBatch, PushedMember, QueryId,
};

use crate::pipeline::engine::chunk::{groups, BadMessage, Group, GroupMember, RangeRows, Reading};
use crate::pipeline::engine::dead_letters;
use crate::pipeline::engine::isolate::{isolate, Refusal, Refused};
use crate::pipeline::engine::prefix::store_prefix;
use crate::pipeline::engine::read::Readers;
use crate::pipeline::engine::replay::fetch_batch;
use crate::pipeline::latency::{wall_ms, Timing};
use crate::pipeline::metrics::ErrorKind;
use crate::pipeline::options::{OnError, PipelineOptions};
use crate::pipeline::record::{BatchRecord, Range};
use crate::pipeline::view::{error_now, View};

/// Number of attempts to send a batch to a table that can't recognise it, when each attempt may store a part of it.
const MAX_UNRECOGNISED_ATTEMPTS: u32 = 3;

/// The services and options that pushing a batch needs.
pub(crate) struct Pusher<S: Sink> {
    pub(crate) gatherer: Gatherer<S>,
    pub(crate) dead_letters: Option<Arc<DeadLetters>>,
    pub(crate) client: Client,
    pub(crate) readers: Arc<Readers>,
    pub(crate) options: Arc<PipelineOptions>,
    pub(crate) view: Arc<View>,
    pub(crate) kind: Arc<InsertKind>,
}

impl<S: Sink> Clone for Pusher<S> {
    fn clone(&self) -> Self {
        Pusher {
            gatherer: self.gatherer.clone(),
            dead_letters: self.dead_letters.clone(),
            client: self.client.clone(),
            readers: self.readers.clone(),
            options: self.options.clone(),
            view: self.view.clone(),
            kind: self.kind.clone(),
        }
    }
}

/// A batch whose turn has come.
pub(crate) struct Due {
    pub(crate) record: Arc<BatchRecord>,
    /// Rows of the batch, or `None` if they have to be fetched again.
    pub(crate) rows: Option<Vec<RangeRows>>,
    /// True if the batch may have been pushed before, by any member.
    pub(crate) sent_before: bool,
    /// Number of times that the batch could not be stored so far.
    pub(crate) failures: u32,
}

#[derive(Debug)]
pub(crate) enum PushEnd {
    Stored(StoredBatch),
    /// The batch can't be stored for now.
    Again(Trouble),
    /// The batch can't be stored, and no other one may be.
    Stop(String),
}

#[derive(Debug)]
pub(crate) struct Trouble {
    pub(crate) kind: ErrorKind,
    pub(crate) text: String,
}

#[derive(Debug)]
pub(crate) struct StoredBatch {
    pub(crate) ranges: Vec<StoredRange>,
    pub(crate) rows: u64,
    pub(crate) pushed_ms: i64,
    pub(crate) stored_ms: i64,
    pub(crate) had_too_many_parts: bool,
    /// Messages that stop the pipeline. Nothing of their partitions is stored from these messages on.
    pub(crate) stopped_by: Vec<(TopicPartition, BadMessage)>,
}

/// The result for one range.
#[derive(Debug)]
pub(crate) struct StoredRange {
    pub(crate) range: Range,
    pub(crate) timings: Vec<Timing>,
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
    pub(crate) tombstones: u64,
    /// Number of messages that were not stored.
    pub(crate) refused: u64,
}

impl StoredRange {
    /// Shortens the range: the messages behind are read again. The stored rows of the rest are not counted,
    /// since that would take another reading.
    fn end_before(&mut self, offset: i64) {
        self.range.last_offset = offset - 1;
        self.timings.clear();
        (self.rows, self.bytes, self.tombstones) = (0, 0, 0);
    }
}

impl<S: Sink> Pusher<S> {
    pub(crate) async fn push(self, reading: Arc<Reading>, due: Due) -> PushEnd {
        let Due { record, rows, sent_before, failures } = due;
        let rows = match rows {
            Some(rows) => Ok(rows),
            None => self.fetch(&reading, &record, sent_before).await,
        };
        let end = match rows {
            Ok(rows) => self.push_rows(&reading, &record, rows, sent_before, failures).await,
            Err(trouble) => Err(Failure::Again(trouble)),
        };
        self.view.set_progress(None);
        match end {
            Ok(stored) => PushEnd::Stored(stored),
            Err(Failure::Again(trouble)) => PushEnd::Again(trouble),
            Err(Failure::Stop(text)) => PushEnd::Stop(text),
        }
    }

    async fn fetch(
        &self,
        reading: &Arc<Reading>,
        record: &BatchRecord,
        sent_before: bool,
    ) -> Result<Vec<RangeRows>, Trouble> {
        let left_out = |range: &Range| match &self.dead_letters {
            // They could not be read in the earlier life, and are dead letters since. (What the table refused was in
            // the batch.)
            Some(store) if sent_before => {
                let source = dead_letters::source(&self.options, range);
                store.unread_offsets(&source, range.partition, range.first_offset..=range.last_offset)
            }
            _ => Vec::new(),
        };
        let fetched = fetch_batch(&self.client, &self.readers, reading, record, left_out).await;
        fetched
            .map_err(|text| Trouble { kind: ErrorKind::Kafka, text: format!("a batch can't be fetched again: {text}") })
    }

    async fn push_rows(
        &self,
        reading: &Arc<Reading>,
        record: &BatchRecord,
        mut ranges: Vec<RangeRows>,
        sent_before: bool,
        failures: u32,
    ) -> Result<StoredBatch, Failure> {
        let pushed_ms = wall_ms();
        let mut had_too_many_parts = false;
        let mut refused: BTreeMap<TopicPartition, Vec<BadMessage>> = BTreeMap::new();
        let mut not_stored = 0;
        let mut stopped: BTreeMap<TopicPartition, BadMessage> = BTreeMap::new();
        for mut group in groups(record.id, &mut ranges) {
            let (target, id) = (group.target.clone(), group.id);
            group.members.retain(|member| !stopped.contains_key(&member.partition));
            if group.members.is_empty() {
                continue;
            }
            let spans: Vec<_> = group
                .members
                .iter()
                .map(|member| (member.partition.clone(), member.first_offset, member.last_offset))
                .collect();
            let outcomes = self.push_group(group, sent_before, &mut had_too_many_parts).await?;
            for ((partition, first_offset, last_offset), outcome) in spans.into_iter().zip(outcomes) {
                let Err(error) = outcome else { continue };
                self.judge(&error, target.deduplicates, failures)?;
                let span = Range { first_offset, last_offset, ..range_of(record, &partition) };
                let of_batch = Refused { batch: id, span: &span, target: &target, sent_before, failures };
                if self.options.on_error == OnError::Stop {
                    let bad = store_prefix(self, reading, &of_batch).await?;
                    stopped.extend(bad.map(|bad| (partition, bad)));
                    continue;
                }
                let bad = isolate(self, reading, &of_batch, &mut not_stored).await?;
                refused.entry(partition).or_default().extend(bad);
            }
        }
        let mut stored = Vec::with_capacity(ranges.len());
        for RangeRows { range, chunks } in ranges {
            let mut bad = refused.remove(&range.partition()).unwrap_or_default();
            let mut of_range = StoredRange {
                timings: Vec::with_capacity(chunks.len()),
                rows: chunks.iter().map(|chunk| chunk.row_count).sum(),
                bytes: chunks.iter().map(|chunk| chunk.bytes).sum(),
                tombstones: chunks.iter().map(|chunk| chunk.tombstones).sum(),
                refused: 0,
                range,
            };
            for chunk in chunks {
                of_range.timings.push(chunk.timing);
                bad.extend(chunk.bad);
            }
            if let Some(stop) = stopped.get(&of_range.range.partition()) {
                of_range.end_before(stop.offset);
            }
            of_range.refused = bad.len() as u64;
            self.settle(&of_range.range, bad).await;
            stored.push(of_range);
        }
        let rows = stored.iter().map(|range| range.rows).sum::<u64>().saturating_sub(not_stored);
        let stopped_by = stopped.into_iter().collect();
        Ok(StoredBatch { stopped_by, ranges: stored, rows, pushed_ms, stored_ms: wall_ms(), had_too_many_parts })
    }

    async fn push_group(
        &self,
        group: Group,
        sent_before: bool,
        had_too_many_parts: &mut bool,
    ) -> Result<Vec<Result<(), InsertError>>, Failure> {
        let Group { id, target, members } = group;
        let members = members.into_iter().map(|member| self.member(member, QueryId::Random(id.0))).collect();
        let shape = self.gatherer.shape(target.clone());
        let pushed = self.gatherer.push_batch(&shape, PushedBatch { id, members, sent_before }).await;
        let ticket = pushed.map_err(|error| Failure::table(format!("{error:?}")))?;
        let progress = ticket.progress();
        self.view.set_progress(Some(progress.clone()));
        let outcomes = ticket.outcomes().await;
        let last_error = progress.get().last_error;
        if let Some(InsertError::Exception(exception)) = last_error {
            *had_too_many_parts |= exception.code == ErrorCode::TOO_MANY_PARTS;
        }
        Ok(outcomes)
    }

    pub(crate) fn member(&self, member: GroupMember, query_id: QueryId) -> PushedMember {
        let payload_bytes = member.rows.iter().map(|rows| rows.bytes() as u64).sum();
        let gathered_ms = wall_ms().saturating_sub(member.oldest_fetched_ms).max(0) as u64;
        PushedMember {
            rows: member.rows,
            payload_bytes,
            gathered_for: Duration::from_millis(gathered_ms),
            query_id,
            kind: self.kind.clone(),
        }
    }

    /// Returns `Ok` if the error concerns the rows of one member. Otherwise the whole batch has to be
    /// pushed again, or the pipeline stops after too many attempts that the table could not recognise.
    pub(crate) fn judge(&self, error: &InsertError, deduplicates: bool, failures: u32) -> Result<(), Failure> {
        if error.is_of_rows() {
            return Ok(());
        }
        let is_repeated = matches!(error, InsertError::Failed(_)) && !deduplicates;
        if is_repeated && failures + 1 >= MAX_UNRECOGNISED_ATTEMPTS {
            return Err(Failure::Stop(format!(
                "a part of the batch may be stored, and the table could not recognise it if it came again: {error}"
            )));
        }
        Err(Failure::table(error.to_string()))
    }

    /// Treats messages that can't be stored as the pipeline's `on_error` says.
    async fn settle(&self, range: &Range, mut bad: Vec<BadMessage>) {
        let Some(last) = bad.iter().max_by_key(|message| message.offset) else { return };
        let (partition, text) = (range.partition(), format!("offset {}: {}", last.offset, last.error));
        self.view.metrics.error(ErrorKind::Message);
        tracing::warn!(pipeline = self.view.name(), %partition, messages = bad.len(), "can't be stored: {text}");
        let count = bad.len() as u64;
        let keeps = self.options.on_error == OnError::DeadLetter;
        if let Some(store) = self.dead_letters.as_ref().filter(|_| keeps) {
            bad.sort_by_key(|message| message.offset);
            dead_letters::keep(store, &self.options, range, bad, &self.view).await;
        }
        self.view.update(&partition, |shown| {
            let counter = if keeps { &shown.metrics.dead_letters } else { &shown.metrics.skipped };
            counter.inc_by(count);
            shown.last_error = Some(error_now(&text));
        });
    }
}

fn range_of(record: &BatchRecord, partition: &TopicPartition) -> Range {
    let range = record.range_of(&partition.topic, partition.partition);
    range.expect("a member is of one of the batch's ranges").clone()
}

/// The cause why a batch is not stored.
#[derive(Debug)]
pub(crate) enum Failure {
    Again(Trouble),
    Stop(String),
}

impl Failure {
    pub(crate) fn table(text: String) -> Failure {
        Failure::Again(Trouble { kind: ErrorKind::Table, text })
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Failure {
        match refusal {
            Refusal::Fetch(text) => Failure::Again(Trouble { kind: ErrorKind::Kafka, text }),
            Refusal::Failure(failure) => failure,
        }
    }
}
