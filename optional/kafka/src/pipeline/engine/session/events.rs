//! Events of the consumer: partitions come and go.

use std::ops::Range;

use crate::consumer::{Claim, Event, Fetched};
use crate::TopicPartition;
use tokio::time::Instant;
use windrow_engine::sink::Sink;

use super::truncated::Truncation;
use super::{Session, SessionEnd};
use crate::pipeline::accounts::{Recut, Undone};
use crate::pipeline::engine::chunk::{Chunk, RangeRows};
use crate::pipeline::engine::partition::Partition;
use crate::pipeline::engine::start::Given;

impl<S: Sink> Session<S> {
    pub(super) fn event(&mut self, event: Option<Event>) {
        match event {
            Some(Event::Assigned(assigned)) => {
                self.pipeline.view.metrics.rebalances.inc();
                for each in assigned {
                    self.assigned(Given { claim: each.claim, topic_id: each.topic_id });
                }
            }
            Some(Event::Revoking(claims)) => {
                self.pipeline.view.metrics.rebalances.inc();
                let partitions = self.ours(&claims);
                let recut = self.accounts.revoke(&partitions);
                self.drop_rows(&partitions, recut);
                // Whatever of them was lost in the meantime is given up by that.
                let unknown: Vec<Claim> =
                    claims.into_iter().filter(|claim| !partitions.iter().any(|own| is_of(own, claim))).collect();
                self.consumer.given_up(&unknown);
            }
            Some(Event::Lost(claims)) => {
                let partitions = self.ours(&claims);
                let recut = self.accounts.lose(&partitions);
                self.drop_rows(&partitions, recut);
                partitions.iter().for_each(|partition| self.forget_partition(partition));
            }
            Some(Event::OutOfRange { claim, start, offset, earliest, latest }) => {
                self.out_of_range(&claim, start, offset, earliest..latest);
            }
            Some(Event::Truncated { claim, start, offset, diverged, leader_epoch }) => {
                self.log_was_cut(&claim, Truncation { start, offset, diverged, leader_epoch });
            }
            Some(Event::Trouble(text)) => self.pipeline.view.kafka_trouble(&text),
            Some(Event::Ended(error)) => {
                self.pipeline.view.kafka_trouble(&error.to_string());
                self.ending.get_or_insert(SessionEnd::Again);
            }
            None => {
                self.ending.get_or_insert(SessionEnd::Again);
                // Nothing can be committed any more.
                self.ends_by = Some(Instant::now());
            }
        }
        self.show_partitions();
    }

    pub(super) fn assigned(&mut self, given: Given) {
        let partition = given.partition();
        if self.partitions.contains_key(&partition) {
            let recut = self.accounts.lose(std::slice::from_ref(&partition));
            self.drop_rows(std::slice::from_ref(&partition), recut);
        }
        self.truncated.remove(&partition);
        self.accounts.assign(partition.clone(), given.claim.epoch, given.topic_id);
        let shown = self.pipeline.view.assigned(&partition);
        self.partitions.insert(partition.clone(), Partition::new(given.claim.clone(), given.topic_id, shown));
        if self.is_paused {
            self.consumer.pause(&given.claim);
        }
        self.to_look_up.insert(partition);
    }

    pub(super) fn ours(&self, claims: &[Claim]) -> Vec<TopicPartition> {
        let is_ours = |own: &&Partition| claims.contains(&own.claim);
        self.partitions.values().filter(is_ours).map(Partition::partition).collect()
    }

    /// Drops gathered rows of partitions that are no longer ours to gather from, and the ranges that were
    /// removed from sealed batches.
    pub(super) fn drop_rows(&mut self, partitions: &[TopicPartition], recut: Vec<Recut>) {
        let mut dropped = 0;
        for partition in partitions {
            let chunks = self.open.remove(partition).unwrap_or_default();
            dropped += chunks.iter().map(|chunk| chunk.held_bytes).sum::<u64>();
            if let Some(own) = self.partitions.get_mut(partition) {
                own.clear();
            }
        }
        for recut in recut {
            let (id, left) = match recut {
                Recut::Gone(id) => (id, None),
                Recut::Shorter(record) => (record.id, Some(record)),
            };
            let Some(ranges) = self.sealed.remove(&id.0) else { continue };
            let is_left = |rows: &RangeRows| left.as_ref().is_some_and(|record| record.ranges.contains(&rows.range));
            let (kept, gone): (Vec<_>, Vec<_>) = ranges.into_iter().partition(is_left);
            dropped += gone.iter().map(RangeRows::held_bytes).sum::<u64>();
            if !kept.is_empty() {
                self.sealed.insert(id.0, kept);
            }
        }
        self.release(dropped);
        if self.open.is_empty() {
            self.policy.dropped();
        }
    }

    pub(super) fn undo(&mut self, undone: Undone) {
        let Undone { recut, to_start } = undone;
        self.drop_rows(&to_start, recut);
        self.to_look_up.extend(to_start);
    }

    /// Handles an offset that is not in the log. `there` are the offsets that the log has.
    pub(super) fn out_of_range(&mut self, claim: &Claim, start: u64, offset: i64, there: Range<i64>) {
        let partition = TopicPartition { topic: claim.topic.clone(), partition: claim.partition };
        let Some(own) = self.partitions.get_mut(&partition).filter(|own| own.claim == *claim) else { return };
        if self.accounts.gathered(&partition).is_none() || self.ending.is_some() {
            // It isn't known yet where it goes on, or a recorded batch comes first: it is fetched anew then.
            return;
        }
        if offset < there.start {
            own.expired.note(offset..there.start);
            self.pass_over_expired(&partition);
        } else if self.consumer.is_started_as(claim, start) {
            self.log_is_another(&partition, start, offset, there);
        }
    }

    /// Goes on behind messages that have expired, if all that was fetched before them is gathered.
    pub(super) fn pass_over_expired(&mut self, partition: &TopicPartition) {
        let Some(gathered) = self.accounts.gathered(partition).filter(|_| self.ending.is_none()) else { return };
        let Some(own) = self.partitions.get_mut(partition) else { return };
        let Some(lost) = own.expired.take(gathered) else { return };
        let claim = own.claim.clone();
        let text = format!(
            "{partition}: {} messages from offset {} on had expired before they were read; reading goes on at {}",
            lost.end - lost.start,
            lost.start,
            lost.end
        );
        self.pipeline.view.kafka_trouble(&text);
        // It is committed like any other, also where nothing comes behind.
        self.gather(partition.clone(), Chunk::without_messages(lost.end));
        self.fetch(&claim, lost.end, -1);
    }

    pub(super) fn fetched(&mut self, fetched: Fetched) {
        let partition = TopicPartition { topic: fetched.claim.topic.clone(), partition: fetched.claim.partition };
        let is_ours = |own: &&mut Partition| own.claim == fetched.claim;
        if let Some(own) = self.partitions.get_mut(&partition).filter(is_ours) {
            own.queue(fetched);
        }
    }

    pub(super) fn give_up(&mut self) {
        let free = self.accounts.given_up();
        if free.is_empty() {
            return;
        }
        let claims: Vec<Claim> =
            free.iter().filter_map(|partition| self.partitions.get(partition)).map(|own| own.claim.clone()).collect();
        free.iter().for_each(|partition| self.forget_partition(partition));
        self.consumer.given_up(&claims);
    }

    pub(super) fn forget_partition(&mut self, partition: &TopicPartition) {
        if let Some(own) = self.partitions.remove(partition) {
            self.pipeline.view.gone(partition, own.shown);
        }
        self.to_look_up.remove(partition);
        self.truncated.remove(partition);
    }
}

fn is_of(partition: &TopicPartition, claim: &Claim) -> bool {
    partition.topic == claim.topic && partition.partition == claim.partition
}
