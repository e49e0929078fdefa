//! The way of messages into batches: fetched messages are read, read ones are gathered, gathered ones are sealed.

use std::time::Duration;

use crate::consumer::Claim;
use crate::TopicPartition;
use tokio::time::Instant;
use windrow_engine::{
    policy::{DeadlinePolicy, Lane, Micros, SealReason, Verdict},
    sink::{BatchId, Sink},
};

use super::{Done, Session, SessionEnd};
use crate::pipeline::engine::chunk::{Chunk, RangeRows};
use crate::pipeline::engine::partition::Job;
use crate::pipeline::engine::read::{read, ReadTrouble};
use crate::pipeline::latency::wall_ms;

/// Pause after a message or a fetch that can't be read for now.
const READ_AGAIN_AFTER: Duration = Duration::from_millis(500);

impl<S: Sink> Session<S> {
    /// Starts to read while threads are free. Messages that have waited longest come first, so that no
    /// partition is left behind.
    pub(super) fn start_reads(&mut self) {
        while self.readers < self.max_readers && !self.is_paused && self.ending.is_none() && self.start_read() {}
    }

    fn start_read(&mut self) -> bool {
        let Some(reading) = &self.reading else { return false };
        let ready =
            self.partitions.iter_mut().filter_map(|(partition, own)| Some((own.ready_since_ms()?, partition, own)));
        let Some((_, partition, own)) = ready.min_by_key(|(since_ms, ..)| *since_ms) else { return false };
        let Some(next_offset) = self.accounts.gathered(partition) else {
            own.clear();
            return true;
        };
        let Some(job) = own.next_job(next_offset) else { return true };
        if job.fetch.first_offset > next_offset {
            // Something between was dropped.
            own.clear_queue();
            let claim = own.claim.clone();
            self.fetch(&claim, next_offset, -1);
            return true;
        }
        self.readers += 1;
        let (readers, reading) = (self.pipeline.readers.clone(), reading.clone());
        let (claim, fetch) = (own.claim.clone(), job.fetch.clone());
        self.tasks.spawn_blocking(move || {
            let outcome = read(&readers, &reading, fetch, &[]);
            Done::Read { claim, job, outcome }
        });
        true
    }

    pub(super) fn was_read(&mut self, claim: Claim, mut job: Job, outcome: Result<Chunk, ReadTrouble>) {
        self.readers -= 1;
        let partition = TopicPartition { topic: claim.topic.clone(), partition: claim.partition };
        let Some(own) = self.partitions.get_mut(&partition).filter(|own| own.claim == claim) else { return };
        if !own.was_read(job.number) {
            return;
        }
        let gathered = self.accounts.gathered(&partition);
        if gathered != Some(job.fetch.first_offset) || self.ending.is_some() {
            return;
        }
        match outcome {
            Ok(chunk) => {
                if chunk.next_offset < job.fetch.next_offset && chunk.stopped_by.is_none() {
                    let number = job.number;
                    job.fetch.first_offset = chunk.next_offset;
                    own.put_back(job);
                    own.was_read(number);
                }
                self.gather(partition.clone(), chunk);
                self.pass_over_expired(&partition);
            }
            Err(trouble @ ReadTrouble::Fetched(_)) => {
                self.pipeline.view.kafka_trouble(&trouble.into_text());
                let (number, offset) = (own.begin_anew(&job), job.fetch.first_offset);
                let consumer = self.consumer.clone();
                self.tasks.spawn(async move {
                    tokio::time::sleep(READ_AGAIN_AFTER).await;
                    consumer.start_behind(&claim, offset, -1);
                    Done::ReadAgain(claim, number)
                });
            }
            Err(trouble) => {
                let (kind, number) = (trouble.kind(), job.number);
                self.pipeline.view.trouble(kind, &trouble.into_text());
                own.put_back(job);
                self.tasks.spawn(async move {
                    tokio::time::sleep(READ_AGAIN_AFTER).await;
                    Done::ReadAgain(claim, number)
                });
            }
        }
    }

    pub(super) fn gather(&mut self, partition: TopicPartition, mut chunk: Chunk) {
        let leader_epoch =
            self.partitions.get(&partition).map_or(-1, |own| self.consumer.leader_epoch(&own.claim, chunk.next_offset));
        if !self.accounts.gather(&partition, chunk.next_offset, leader_epoch) {
            return;
        }
        self.held_bytes += chunk.held_bytes;
        if chunk.timing.messages > 0 {
            if let Some(own) = self.partitions.get_mut(&partition) {
                own.gathered(chunk.next_offset, chunk.timing.oldest_ms);
            }
        }
        let now = self.now();
        tell(&mut self.policy, now, &chunk);
        let stopped_by = chunk.stopped_by.take();
        self.open.entry(partition.clone()).or_default().push(chunk);
        if let Some(bad) = stopped_by {
            self.end(SessionEnd::Refused(format!("{partition}:{}: {}", bad.offset, bad.error)));
        }
    }

    /// Fetches from an offset on. `leader_epoch` is that of the message before the offset, or -1 if nobody
    /// knows it better than the consumer.
    pub(super) fn fetch(&self, claim: &Claim, offset: i64, leader_epoch: i32) {
        // If it isn't ours any more, that is told otherwise.
        self.consumer.start_behind(claim, offset, leader_epoch);
    }

    /// Seals the open batch if it is time. Otherwise it returns when to ask again, if that is known.
    pub(super) fn seal_if_due(&mut self) -> Option<Instant> {
        if !self.accounts.has_open() {
            return None;
        }
        let is_free = self.accounts.is_idle() && self.accounts.waiting() == 0;
        let now = self.now();
        let verdict = match self.ending {
            Some(_) => Verdict::Seal(SealReason::Shutdown),
            None => self.policy.decide(now, if is_free { Lane::Free } else { Lane::Busy }),
        };
        match verdict {
            // One may wait behind the one that is on its way.
            Verdict::Seal(_) if self.accounts.waiting() == 0 => {
                self.seal(now);
                None
            }
            Verdict::Seal(_) | Verdict::HoldForFlush => None,
            Verdict::HoldUntil(at) => self.started_at.checked_add(Duration::from_micros(at.0)),
        }
    }

    pub(super) fn seal(&mut self, now: Micros) {
        let Some(record) = self.accounts.seal(random_id()) else { return };
        let ranges = record.ranges.iter().map(|range| {
            let chunks = self.open.remove(&range.partition()).unwrap_or_default();
            RangeRows { range: range.clone(), chunks }
        });
        let ranges = ranges.collect();
        self.sealed.insert(record.id.0, ranges);
        self.policy.sealed(now);
        // What its record had no room for.
        for chunk in self.open.values().flatten() {
            tell(&mut self.policy, now, chunk);
        }
    }
}

fn tell(policy: &mut DeadlinePolicy, now: Micros, chunk: &Chunk) {
    let age_ms = wall_ms().saturating_sub(chunk.timing.oldest_ms).max(0) as u64;
    policy.gather(now, chunk.row_count, chunk.held_bytes, Micros::from_millis(age_ms));
}

/// Returns a random version 4 UUID.
fn random_id() -> BatchId {
    let mut bytes = [0u8; 16];
    if getrandom::fill(&mut bytes).is_err() {
        // Without the system's randomness uniqueness is what counts, and this generator was seeded per thread.
        bytes = fastrand::u128(..).to_le_bytes();
    }
    BatchId(u128::from_le_bytes(bytes) & !(0xf << 76) & !(0x3 << 62) | (4 << 76) | (2 << 62))
}
