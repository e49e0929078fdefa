//! A partition whose log was cut: its leader lacks messages that were read, and has others at their offsets,
//! or will have. The epoch tells where the logs part. If it can't, and the log ends before what was read,
//! nobody knows which of its messages are new, and all of them are read.
//!
//! Messages that were read are gathered and stored as if nothing had happened: their batches have the rows in
//! memory, and ids of their own. When nothing of the partition is on its way any more, it goes back to where
//! the logs part. Messages from there are gathered into other batches, with other ids.

use std::ops::Range;

use crate::consumer::Claim;
use crate::TopicPartition;
use windrow_engine::sink::Sink;

use super::Session;
use crate::pipeline::view::error_now;

#[derive(Debug, Clone, Copy)]
pub(super) struct Truncation {
    /// Number of the consumer's start, which shows whether the partition was started again since.
    pub(super) start: u64,
    /// Offset where reading would have gone on.
    pub(super) offset: i64,
    pub(super) diverged: i64,
    /// Epoch of the present leader, or -1.
    pub(super) leader_epoch: i32,
}

impl<S: Sink> Session<S> {
    pub(super) fn log_was_cut(&mut self, claim: &Claim, truncation: Truncation) {
        let partition = TopicPartition { topic: claim.topic.clone(), partition: claim.partition };
        let is_ours = self.partitions.get(&partition).is_some_and(|own| own.claim == *claim);
        if !is_ours || !self.consumer.is_started_as(claim, truncation.start) {
            return;
        }
        let Truncation { offset, diverged, leader_epoch, .. } = truncation;
        let text = format!(
            "{partition}: Kafka has lost {} offsets that were read already, {diverged} to {}: its leader of epoch {leader_epoch} lacks their messages; \
             what was read of them is stored, and reading goes on at {diverged}",
            offset - diverged,
            offset - 1
        );
        self.pipeline.view.kafka_trouble(&text);
        self.pipeline.view.update(&partition, |shown| {
            shown.metrics.truncated.inc_by(u64::try_from(offset - diverged).unwrap_or_default());
            shown.last_error = Some(error_now(&text));
        });
        self.truncated.insert(partition, truncation);
    }

    /// Notes a log that ends before the offset to go on with, though its leader knows of no election in between.
    pub(super) fn log_is_another(&mut self, partition: &TopicPartition, start: u64, offset: i64, there: Range<i64>) {
        let Range { start: earliest, end: latest } = there;
        let text = format!(
            "{partition}: the log ends at {latest}, before offset {offset}, where reading would go on: its end was lost, or it is another log. \
             Which of its messages are new can't be told; all of them are read, from {earliest} on"
        );
        self.pipeline.view.kafka_trouble(&text);
        self.pipeline.view.update(partition, |shown| shown.last_error = Some(error_now(&text)));
        self.truncated.insert(partition.clone(), Truncation { start, offset, diverged: earliest, leader_epoch: -1 });
    }

    /// Goes back in partitions of which nothing is on its way any more.
    pub(super) fn go_back(&mut self) {
        if self.truncated.is_empty() || self.ending.is_some() {
            // The next start is told the same.
            return;
        }
        let is_over = |(partition, truncation): (&TopicPartition, &Truncation)| {
            let is_whole = self.accounts.gathered(partition).is_some_and(|gathered| gathered >= truncation.offset);
            is_whole && self.accounts.is_quiet(partition)
        };
        let over: Vec<TopicPartition> =
            self.truncated.iter().filter(|each| is_over(*each)).map(|(partition, _)| partition.clone()).collect();
        for partition in over {
            let Some(truncation) = self.truncated.remove(&partition) else { continue };
            let Some(own) = self.partitions.get_mut(&partition) else { continue };
            if !self.consumer.is_started_as(&own.claim, truncation.start) {
                continue;
            }
            own.clear();
            let claim = own.claim.clone();
            self.accounts.begin(&partition, truncation.diverged, false);
            self.fetch(&claim, truncation.diverged, truncation.leader_epoch);
        }
    }
}
