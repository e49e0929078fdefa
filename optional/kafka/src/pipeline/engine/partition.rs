//! A partition that is ours: its fetched messages that wait to be read, and the age of its messages that are
//! not stored.

use std::collections::VecDeque;

use crate::consumer::{Claim, Fetched};
use crate::{TopicId, TopicPartition};

use crate::pipeline::engine::expired::Expired;
use crate::pipeline::engine::read::Fetch;
use crate::pipeline::latency::wall_ms;

pub(crate) struct Partition {
    pub(crate) claim: Claim,
    pub(crate) topic_id: TopicId,
    /// Number of the partition in the view.
    pub(crate) shown: u64,
    queue: VecDeque<Job>,
    /// Expired messages that follow the queue.
    pub(crate) expired: Expired,
    /// Timestamp of the oldest message in the job that is being read, if there is one.
    being_read_ms: Option<i64>,
    /// Number of the latest job, or of the latest time that everything was dropped. When a job comes back,
    /// the number shows whether it is an older one.
    job_number: u64,
    /// Messages that were read and are not stored, ascending by offset.
    unstored: VecDeque<Unstored>,
    /// Time when it was first seen that there are messages of which none is here, in milliseconds since 1970.
    behind_since_ms: Option<i64>,
}

/// Messages that are read at once.
pub(crate) struct Job {
    pub(crate) fetch: Fetch,
    /// Fetched records. They take a part of the prefetch budget for as long as they are kept.
    pub(crate) fetched: Vec<Fetched>,
    pub(crate) number: u64,
    /// Oldest first timestamp of the fetches. Messages that wait in Kafka and were not fetched are younger,
    /// as a rule.
    oldest_ms: i64,
}

struct Unstored {
    next_offset: i64,
    oldest_ms: i64,
}

const READ_AT_ONCE_BYTES: usize = 1 << 20;

impl Partition {
    pub(crate) fn new(claim: Claim, topic_id: TopicId, shown: u64) -> Partition {
        Partition {
            claim,
            topic_id,
            shown,
            queue: VecDeque::new(),
            expired: Expired::default(),
            being_read_ms: None,
            job_number: 0,
            unstored: VecDeque::new(),
            behind_since_ms: None,
        }
    }

    pub(crate) fn partition(&self) -> TopicPartition {
        TopicPartition { topic: self.claim.topic.clone(), partition: self.claim.partition }
    }

    /// Returns the time since when messages can be read, unless some are being read.
    pub(crate) fn ready_since_ms(&self) -> Option<i64> {
        let front = self.queue.front().filter(|_| self.being_read_ms.is_none());
        front.map(|job| job.fetch.fetched_ms)
    }

    /// Says whether messages were fetched and are not read.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.queue.is_empty() || self.being_read_ms.is_some()
    }

    /// Notes that the job of this number has come back, or can be tried again. Returns false if the job was
    /// dropped meanwhile: then another one may be read already.
    pub(crate) fn was_read(&mut self, number: u64) -> bool {
        let is_latest = number == self.job_number;
        if is_latest {
            self.being_read_ms = None;
        }
        is_latest
    }

    /// Puts back the rest of a job, or all of it, to be read before everything else. The job can't begin
    /// before [`Partition::was_read`] is called.
    pub(crate) fn put_back(&mut self, job: Job) {
        self.being_read_ms = Some(job.oldest_ms);
        self.queue.push_front(job);
    }

    /// Drops the queue, since neither the job nor the messages behind it are of use. Nothing is read before
    /// [`Partition::was_read`] is called with the number that this returns.
    pub(crate) fn begin_anew(&mut self, job: &Job) -> u64 {
        self.clear_queue();
        self.being_read_ms = Some(job.oldest_ms);
        self.job_number
    }

    pub(crate) fn queue(&mut self, fetched: Fetched) {
        let fetch = Fetch {
            partition: self.partition(),
            batches: vec![fetched.batches.clone()],
            first_offset: fetched.from_offset,
            next_offset: fetched.next_offset,
            fetched_ms: wall_ms(),
        };
        let first = fetched.batches.clone().next().and_then(Result::ok);
        let stamped = first.map(|batch| batch.base_timestamp_ms).filter(|timestamp_ms| *timestamp_ms >= 0);
        let oldest_ms = stamped.unwrap_or(fetch.fetched_ms);
        self.queue.push_back(Job { fetch, fetched: vec![fetched], number: 0, oldest_ms });
    }

    /// Returns the next messages from `next_offset` on, and drops those before. They are enough to be worth a
    /// thread, but not so many that gathered messages wait for them.
    pub(crate) fn next_job(&mut self, next_offset: i64) -> Option<Job> {
        let mut job = loop {
            let job = self.queue.pop_front()?;
            if job.fetch.next_offset > next_offset {
                break job;
            }
        };
        job.fetch.first_offset = job.fetch.first_offset.max(next_offset);
        let mut bytes: usize = job.bytes();
        let goes_on = |job: &Job, next: &Job| next.fetch.first_offset == job.fetch.next_offset;
        while let Some(next) = self.queue.pop_front() {
            if !goes_on(&job, &next) || bytes + next.bytes() > READ_AT_ONCE_BYTES {
                self.queue.push_front(next);
                break;
            }
            bytes += next.bytes();
            job.fetch.next_offset = next.fetch.next_offset;
            job.fetch.batches.extend(next.fetch.batches);
            job.fetched.extend(next.fetched);
            job.oldest_ms = job.oldest_ms.min(next.oldest_ms);
        }
        self.being_read_ms = Some(job.oldest_ms);
        self.job_number += 1;
        job.number = self.job_number;
        Some(job)
    }

    /// Drops everything that was fetched, read or gathered of the partition.
    pub(crate) fn clear(&mut self) {
        self.clear_queue();
        self.unstored.clear();
    }

    pub(crate) fn clear_queue(&mut self) {
        self.queue.clear();
        self.expired.clear();
        self.being_read_ms = None;
        self.job_number += 1;
    }

    pub(crate) fn gathered(&mut self, next_offset: i64, oldest_ms: i64) {
        self.unstored.push_back(Unstored { next_offset, oldest_ms });
    }

    pub(crate) fn stored(&mut self, next_offset: i64) {
        while self.unstored.front().is_some_and(|unstored| unstored.next_offset <= next_offset) {
            self.unstored.pop_front();
        }
    }

    /// Notes the number of messages behind the stored ones, here or still in Kafka.
    pub(crate) fn lags(&mut self, lag: i64) {
        match lag > 0 && self.oldest_here_ms().is_none() {
            true => drop(self.behind_since_ms.get_or_insert_with(wall_ms)),
            false => self.behind_since_ms = None,
        }
    }

    /// Returns the time since when a message waits to be stored, in milliseconds since 1970, according to the
    /// latest lag.
    pub(crate) fn oldest_ms(&self) -> Option<i64> {
        self.oldest_here_ms().or(self.behind_since_ms)
    }

    fn oldest_here_ms(&self) -> Option<i64> {
        let read = self.unstored.iter().map(|unstored| unstored.oldest_ms).min();
        read.or(self.being_read_ms).or_else(|| self.queue.front().map(|job| job.oldest_ms))
    }
}

impl Job {
    fn bytes(&self) -> usize {
        self.fetched.iter().map(|fetched| fetched.bytes).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn partition(queue: &[(i64, i64)]) -> Partition {
        let claim = Claim { topic: "events".into(), partition: 0, epoch: 1 };
        let mut own = Partition::new(claim, TopicId::default(), 0);
        for &(first_offset, next_offset) in queue {
            let (partition, batches) = (own.partition(), Vec::new());
            let fetch = Fetch { partition, batches, first_offset, next_offset, fetched_ms: 0 };
            own.queue.push_back(Job { fetch, fetched: Vec::new(), number: 0, oldest_ms: 0 });
        }
        own
    }

    fn jobs(queue: &[(i64, i64)], from: i64) -> Vec<(i64, i64)> {
        let (mut own, mut next_offset) = (partition(queue), from);
        let mut jobs = Vec::new();
        while let Some(job) = own.next_job(next_offset) {
            jobs.push((job.fetch.first_offset, job.fetch.next_offset));
            next_offset = job.fetch.next_offset;
        }
        jobs
    }

    #[test]
    fn what_follows_is_read_at_once() {
        assert_eq!(jobs(&[(0, 10), (10, 20), (20, 30)], 0), [(0, 30)]);
        assert_eq!(jobs(&[(0, 10), (10, 20)], 4), [(4, 20)]);
        assert_eq!(jobs(&[(0, 10), (10, 20)], 10), [(10, 20)]);
    }

    #[test]
    fn a_gap_is_left_to_be_seen() {
        // The one who reads is told that 10 to 20 are missing, and fetches them.
        assert_eq!(jobs(&[(0, 10), (20, 30), (10, 20)], 0), [(0, 10), (20, 30)]);
    }

    #[test]
    fn nothing_is_read_twice() {
        assert_eq!(jobs(&[(0, 10), (0, 20)], 0), [(0, 10), (10, 20)]);
    }

    #[test]
    fn a_job_that_was_dropped_while_it_was_read_does_not_pass_for_the_one_after_it() {
        let mut own = partition(&[(0, 10)]);
        let dropped = own.next_job(0).unwrap();
        own.clear();
        own.queue = partition(&[(0, 10), (10, 20)]).queue;
        let latest = own.next_job(0).unwrap();
        assert!(!own.was_read(dropped.number));
        assert_eq!(own.ready_since_ms(), None, "the latest is still read");
        assert!(own.is_waiting());
        assert!(own.was_read(latest.number));
        assert!(!own.is_waiting());
    }

    #[test]
    fn what_is_of_no_use_is_dropped_with_all_behind_it_and_nothing_is_read_until_it_is_time() {
        let mut own = partition(&[(0, 10)]);
        let damaged = own.next_job(0).unwrap();
        own.queue = partition(&[(10, 20)]).queue;
        assert!(own.was_read(damaged.number));
        let number = own.begin_anew(&damaged);
        own.queue = partition(&[(20, 30)]).queue;
        assert_eq!(own.ready_since_ms(), None);
        assert!(!own.was_read(damaged.number), "it has come back already");
        assert!(own.was_read(number));
        assert_eq!(own.ready_since_ms(), Some(0));
    }

    #[test]
    fn messages_that_are_not_even_fetched_grow_old_too() {
        let mut own = partition(&[]);
        own.lags(0);
        assert_eq!(own.oldest_ms(), None);
        own.lags(5);
        own.behind_since_ms = own.behind_since_ms.map(|since_ms| since_ms - 60_000);
        let since_ms = own.oldest_ms();
        assert!(since_ms.is_some());
        // However often one looks.
        assert_eq!(own.oldest_ms(), since_ms);
        own.lags(7);
        assert_eq!(own.oldest_ms(), since_ms);
        own.queue = partition(&[(0, 10)]).queue;
        own.lags(7);
        assert_eq!(own.oldest_ms(), Some(0), "one that is here says its own age");
        own.clear();
        own.lags(0);
        assert_eq!(own.oldest_ms(), None);
    }
}
