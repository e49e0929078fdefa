//! The accounts of a pipeline: how far each partition is gathered, on its way, stored and committed, and
//! which step comes next. It is a state machine without I/O.
//!
//! # Order of steps
//!
//! A batch is *sealed* (its ranges and its id are fixed), *recorded* (one commit writes its record beside the
//! stored offsets of all its partitions), *pushed* (attempts begin), *stored*, and *committed* (the offsets
//! behind it). One step is taken at a time, since each commit replaces the text that the one before it wrote
//! beside an offset. The commit behind one batch records the next, if that is sealed by then.
//!
//! # Why every message is stored once
//!
//! 1. Attempts under an id begin only when all partitions of the batch show its record. Every member that
//!    owns one of these partitions, then or later, finds the record beside the offset where the batch begins.
//!    It pushes the same ranges under the same id before anything else.
//! 2. A commit of a member that does not own a partition any more is refused as a whole. So a member that has
//!    lost a partition can't record, and begins no new attempt. The attempts that it had begun are recorded.
//! 3. Where it is not certain whether a record was written, no other batch is made from the same messages
//!    before the coordinator's state is known ([`Accounts::forget`], then as after an assignment).
//! 4. An offset passes a range only after the range is stored.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::Arc;

use crate::{TopicId, TopicPartition};
use windrow_engine::sink::BatchId;

use crate::pipeline::record::{BatchRecord, Range};

/// Largest number of offsets that are committed together. They are one message for the coordinator, whose
/// size is bounded. No record has so many ranges.
const MAX_ENTRIES: usize = 500;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The offset to go on at isn't known yet.
    Starting,
    /// A recorded batch has to be pushed first.
    Replaying,
    Running,
    /// The partition has to be given up when nothing of it is on its way.
    Revoked,
}

#[derive(Debug)]
struct Account {
    /// Epoch of the claim. A partition that was lost and came again has another one.
    epoch: u64,
    topic_id: TopicId,
    phase: Phase,
    committed: Option<i64>,
    /// Offset before which everything is stored.
    stored: i64,
    /// Offset before which everything is stored or in a sealed batch.
    sealed: i64,
    /// Offset before which everything is stored, on its way or gathered.
    gathered: i64,
    /// Epoch of the leader that wrote the last message before `gathered`.
    leader_epoch: i32,
}

impl Account {
    fn go_on_at(&mut self, offset: i64) {
        (self.stored, self.sealed, self.gathered) = (offset, offset, offset);
    }
}

/// A batch that was sealed.
#[derive(Debug)]
struct Sealed {
    record: Arc<BatchRecord>,
    /// True if the batch is recorded, so attempts may begin.
    is_recorded: bool,
    /// True if an earlier run, or another member, may have begun to push the batch.
    is_replay: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// Commits these offsets together, with the text beside each.
    Commit(Vec<Entry>),
    /// Stores the batch.
    Push { record: Arc<BatchRecord>, is_replay: bool },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub partition: TopicPartition,
    pub topic_id: TopicId,
    pub epoch: u64,
    pub offset: i64,
    pub record: Option<Arc<BatchRecord>>,
}

/// The rest of a sealed batch when some of its partitions are not ours any more.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Recut {
    /// The batch goes on with fewer ranges, under the same id, which was never written down.
    Shorter(Arc<BatchRecord>),
    Gone(BatchId),
}

/// The accounts of all partitions. The module's text describes them.
#[derive(Debug)]
pub(crate) struct Accounts {
    /// True if batches are recorded before they are pushed.
    records: bool,
    accounts: BTreeMap<TopicPartition, Account>,
    /// Sealed batches, the next one first. Replays come before all others.
    sealed: VecDeque<Sealed>,
    step: Option<Step>,
}

impl Accounts {
    pub(crate) fn new(records: bool) -> Accounts {
        Accounts { records, accounts: BTreeMap::new(), sealed: VecDeque::new(), step: None }
    }

    /// Sets whether batches are recorded from now on. It has to be called before the first of them is sealed.
    pub(crate) fn set_records(&mut self, records: bool) {
        self.records = records;
    }

    /// Adds a partition that is ours from now on. The coordinator has to be asked about it next.
    pub(crate) fn assign(&mut self, partition: TopicPartition, epoch: u64, topic_id: TopicId) {
        let account = Account {
            epoch,
            topic_id,
            phase: Phase::Starting,
            committed: None,
            stored: 0,
            sealed: 0,
            gathered: 0,
            leader_epoch: -1,
        };
        self.accounts.insert(partition, account);
    }

    /// Goes on at an offset. `committed` says whether the coordinator has this offset; otherwise the next
    /// step commits it.
    pub(crate) fn begin(&mut self, partition: &TopicPartition, offset: i64, committed: bool) {
        let Some(account) = self.accounts.get_mut(partition) else { return };
        if account.phase == Phase::Revoked {
            return;
        }
        account.phase = Phase::Running;
        account.committed = committed.then_some(offset);
        account.go_on_at(offset);
    }

    /// Adds a recorded batch that has to be stored before the partitions go on that show its record.
    pub(crate) fn replay(&mut self, record: BatchRecord, shown_by: &[TopicPartition]) {
        for partition in shown_by {
            let (Some(account), Some(range)) =
                (self.accounts.get_mut(partition), record.range_of(&partition.topic, partition.partition))
            else {
                continue;
            };
            if account.phase == Phase::Starting {
                account.phase = Phase::Replaying;
                account.committed = Some(range.first_offset);
                account.go_on_at(range.first_offset);
            }
        }
        let is_known = |sealed: &Sealed| sealed.record.id == record.id;
        if !self.sealed.iter().any(is_known) && !self.is_being_pushed(record.id) {
            let at = self.sealed.iter().take_while(|sealed| sealed.is_replay).count();
            self.sealed.insert(at, Sealed { record: Arc::new(record), is_recorded: true, is_replay: true });
        }
    }

    fn is_being_pushed(&self, id: BatchId) -> bool {
        matches!(&self.step, Some(Step::Push { record, .. }) if record.id == id)
    }

    pub(crate) fn phase(&self, partition: &TopicPartition) -> Option<Phase> {
        self.accounts.get(partition).map(|account| account.phase)
    }

    pub(crate) fn stored(&self, partition: &TopicPartition) -> Option<i64> {
        self.accounts.get(partition).filter(|account| account.phase != Phase::Starting).map(|account| account.stored)
    }

    pub(crate) fn committed(&self, partition: &TopicPartition) -> Option<i64> {
        self.accounts.get(partition).and_then(|account| account.committed)
    }

    /// Returns the offset where the next messages of a partition begin, if messages can be gathered from it.
    pub(crate) fn gathered(&self, partition: &TopicPartition) -> Option<i64> {
        self.accounts.get(partition).filter(|account| account.phase == Phase::Running).map(|account| account.gathered)
    }

    /// Counts all messages up to `next` as gathered into the open batch. A leader wrote the last of them in
    /// this epoch. Returns false if the partition is not ours to gather from.
    pub(crate) fn gather(&mut self, partition: &TopicPartition, next: i64, leader_epoch: i32) -> bool {
        let account = self.accounts.get_mut(partition).filter(|account| account.phase == Phase::Running);
        match account.filter(|account| next >= account.gathered) {
            Some(account) => {
                account.gathered = next;
                account.leader_epoch = leader_epoch;
                true
            }
            None => false,
        }
    }

    /// Says whether a batch that is sealed now would contain messages.
    pub(crate) fn has_open(&self) -> bool {
        self.open_ranges().next().is_some()
    }

    fn open_ranges(&self) -> impl Iterator<Item = Range> + '_ {
        let is_open = |account: &Account| account.phase == Phase::Running && account.gathered > account.sealed;
        self.accounts.iter().filter(move |(_, account)| is_open(account)).map(|(partition, account)| Range {
            topic: partition.topic.clone(),
            partition: partition.partition,
            topic_id: account.topic_id,
            first_offset: account.sealed,
            last_offset: account.gathered - 1,
            leader_epoch: account.leader_epoch,
        })
    }

    /// Seals all gathered messages as a batch. If its record would be too long, only some of the partitions
    /// are in it.
    pub(crate) fn seal(&mut self, id: BatchId) -> Option<Arc<BatchRecord>> {
        let mut record = BatchRecord { id, ranges: self.open_ranges().collect() };
        while record.ranges.len() > 1 && record.encode().is_err() {
            record.ranges.truncate(record.ranges.len() / 2);
        }
        if record.ranges.is_empty() {
            return None;
        }
        for range in &record.ranges {
            if let Some(account) = self.accounts.get_mut(&range.partition()) {
                account.sealed = range.next_offset();
            }
        }
        let record = Arc::new(record);
        self.sealed.push_back(Sealed { record: record.clone(), is_recorded: !self.records, is_replay: false });
        Some(record)
    }

    /// Returns the number of sealed batches whose turn hasn't come.
    pub(crate) fn waiting(&self) -> usize {
        self.sealed.len()
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.step.is_none()
    }

    /// Says whether all gathered messages are stored and committed.
    pub(crate) fn is_settled(&self) -> bool {
        self.step.is_none() && self.sealed.is_empty() && !self.has_open() && self.entries(None).is_empty()
    }

    /// Says whether nothing of the partition is on its way, so that all its gathered messages are stored.
    pub(crate) fn is_quiet(&self, partition: &TopicPartition) -> bool {
        let is_stored = |account: &Account| account.phase == Phase::Running && account.stored == account.gathered;
        let is_of = |sealed: &Sealed| sealed.record.range_of(&partition.topic, partition.partition).is_some();
        self.accounts.get(partition).is_some_and(is_stored)
            && !self.is_in_step(partition)
            && !self.sealed.iter().any(is_of)
    }

    fn is_in_step(&self, partition: &TopicPartition) -> bool {
        match &self.step {
            Some(Step::Commit(entries)) => entries.iter().any(|entry| entry.partition == *partition),
            Some(Step::Push { record, .. }) => record.range_of(&partition.topic, partition.partition).is_some(),
            None => false,
        }
    }

    pub(crate) fn is_pushing(&self) -> bool {
        matches!(self.step, Some(Step::Push { .. }))
    }

    /// Says whether a commit is on its way, so that the coordinator's state may change at any moment.
    pub(crate) fn is_committing(&self) -> bool {
        matches!(self.step, Some(Step::Commit(_)))
    }

    /// Returns what has to be done now, unless a step is being taken. Without `may_push` it can only be a commit.
    pub(crate) fn next_step(&mut self, may_push: bool) -> Option<Step> {
        if self.step.is_some() {
            return None;
        }
        let unrecorded = self.sealed.front().filter(|sealed| !sealed.is_recorded).map(|sealed| &sealed.record);
        let entries = self.entries(unrecorded);
        let step = match entries.is_empty() {
            false => Step::Commit(entries),
            true if !may_push => return None,
            true => {
                let Sealed { record, is_replay, .. } = self.sealed.pop_front()?;
                Step::Push { record, is_replay }
            }
        };
        self.step = Some(step.clone());
        Some(step)
    }

    /// Returns the offsets to commit. Those of the record come first, since they can't be committed separately.
    fn entries(&self, record: Option<&Arc<BatchRecord>>) -> Vec<Entry> {
        let entry = |(partition, account): (&TopicPartition, &Account)| {
            let record = record.filter(|record| record.range_of(&partition.topic, partition.partition).is_some());
            let is_due = record.is_some() || account.committed != Some(account.stored);
            let is_settled = matches!(account.phase, Phase::Running | Phase::Revoked);
            let entry = Entry {
                partition: partition.clone(),
                topic_id: account.topic_id,
                epoch: account.epoch,
                offset: account.stored,
                record: record.cloned(),
            };
            (is_due && is_settled).then_some(entry)
        };
        let mut entries: Vec<Entry> = self.accounts.iter().filter_map(entry).collect();
        entries.sort_by_key(|entry| entry.record.is_none());
        entries.truncate(MAX_ENTRIES);
        entries
    }

    /// Counts the commit as made.
    pub(crate) fn commit_succeeded(&mut self) {
        let Some(Step::Commit(entries)) = self.step.take() else { return };
        for Entry { partition, epoch, offset, record, .. } in entries {
            if let Some(account) = self.accounts.get_mut(&partition).filter(|account| account.epoch == epoch) {
                account.committed = Some(offset);
            }
            let sealed = record.and_then(|record| self.sealed.iter_mut().find(|sealed| sealed.record.id == record.id));
            if let Some(sealed) = sealed {
                sealed.is_recorded = true;
            }
        }
    }

    /// Undoes a commit that was refused because a partition is not ours any more. Batches that it was to
    /// record are undone, since only the coordinator can say whether they are recorded. Returns their
    /// partitions that are still ours, which have to be looked up again.
    pub(crate) fn commit_fenced(&mut self) -> Undone {
        let Some(Step::Commit(entries)) = self.step.take() else { return Undone::default() };
        let undone = entries.into_iter().filter(|entry| entry.record.is_some()).map(|entry| entry.partition).collect();
        self.forget(undone)
    }

    /// Counts the batch as stored and its dead letters as kept. Returns the partitions that may go on, each
    /// with its offset.
    pub(crate) fn push_succeeded(&mut self) -> Vec<(TopicPartition, i64)> {
        let Some(Step::Push { record, .. }) = self.step.take() else { return Vec::new() };
        let mut begun = Vec::new();
        for range in &record.ranges {
            let partition = range.partition();
            let Some(account) = self.accounts.get_mut(&partition) else { continue };
            // It may have been lost, and come again, in the meantime.
            if account.stored != range.first_offset || account.phase == Phase::Starting {
                continue;
            }
            account.stored = range.next_offset();
            account.sealed = account.sealed.max(account.stored);
            account.gathered = account.gathered.max(account.stored);
            // Also where the batch was ours before the partition was lost and came again.
            if account.phase == Phase::Replaying {
                account.phase = Phase::Running;
                begun.push((partition, account.stored));
            }
        }
        begun
    }

    /// Counts the batch as stored except for messages of these partitions from these offsets on. They are not
    /// to be stored at all, and messages that were gathered behind them are dropped.
    pub(crate) fn push_stopped(&mut self, stops: &[(TopicPartition, i64)]) -> Vec<Recut> {
        self.push_succeeded();
        for (partition, offset) in stops {
            if let Some(account) = self.accounts.get_mut(partition).filter(|account| account.stored > *offset) {
                account.go_on_at(*offset);
            }
        }
        let partitions: Vec<TopicPartition> = stops.iter().map(|(partition, _)| partition.clone()).collect();
        self.cut_out(&partitions)
    }

    /// Puts a batch back that can't be stored for now, to be pushed again unchanged. If other members own all
    /// of it by now, it is dropped: its record obliges them to push it.
    pub(crate) fn push_failed(&mut self) {
        let Some(Step::Push { record, is_replay }) = self.step.take() else { return };
        let is_awaited = |range: &Range| {
            let account = self.accounts.get(&range.partition());
            account.is_some_and(|account| account.phase != Phase::Starting && account.stored == range.first_offset)
        };
        if record.ranges.iter().any(is_awaited) {
            self.sealed.push_front(Sealed { record, is_recorded: true, is_replay });
        }
    }

    /// Prepares to give up partitions. Messages that are only gathered are dropped; a batch that is on its
    /// way ends first.
    pub(crate) fn revoke(&mut self, partitions: &[TopicPartition]) -> Vec<Recut> {
        for partition in partitions {
            if let Some(account) = self.accounts.get_mut(partition) {
                // What was to be replayed is there for the next owner.
                if matches!(account.phase, Phase::Starting | Phase::Replaying) {
                    account.committed = Some(account.stored);
                }
                account.phase = Phase::Revoked;
            }
        }
        let recut = self.cut_out(partitions);
        self.drop_needless_replays();
        recut
    }

    /// Returns the revoked partitions of which nothing is on its way. They are not ours from now on.
    pub(crate) fn given_up(&mut self) -> Vec<TopicPartition> {
        let is_free = |partition: &TopicPartition, account: &Account| {
            let is_recorded = |sealed: &Sealed| {
                sealed.is_recorded
                    && !sealed.is_replay
                    && sealed.record.range_of(&partition.topic, partition.partition).is_some()
            };
            // In this order: it is asked often, of partitions that are mostly not revoked.
            account.phase == Phase::Revoked
                && account.committed == Some(account.stored)
                && !self.is_in_step(partition)
                && !self.sealed.iter().any(is_recorded)
        };
        let free: Vec<TopicPartition> = self
            .accounts
            .iter()
            .filter(|(partition, account)| is_free(partition, account))
            .map(|(p, _)| p.clone())
            .collect();
        self.remove(&free);
        free
    }

    fn remove(&mut self, partitions: &[TopicPartition]) {
        for partition in partitions {
            self.accounts.remove(partition);
        }
    }

    /// Removes partitions that are not ours any more. A batch that has begun goes on: it is recorded, so the
    /// new owner is obliged to push it, too.
    pub(crate) fn lose(&mut self, partitions: &[TopicPartition]) -> Vec<Recut> {
        self.remove(partitions);
        let recut = self.cut_out(partitions);
        self.drop_needless_replays();
        recut
    }

    /// Forgets the state of partitions whose state at the coordinator isn't known any more. Those that are
    /// ours start again; all that is sealed or gathered of them is dropped.
    pub(crate) fn forget(&mut self, mut partitions: Vec<TopicPartition>) -> Undone {
        let recut = self.cut_out(&partitions);
        partitions.retain(|partition| match self.accounts.get_mut(partition) {
            Some(account) if account.phase == Phase::Revoked => {
                account.committed = Some(account.stored);
                false
            }
            Some(account) => {
                account.phase = Phase::Starting;
                account.go_on_at(account.stored);
                true
            }
            None => false,
        });
        Undone { recut, to_start: partitions }
    }

    /// Removes the ranges of these partitions from sealed batches that are not written down.
    fn cut_out(&mut self, partitions: &[TopicPartition]) -> Vec<Recut> {
        let being_recorded = match &self.step {
            Some(Step::Commit(entries)) => {
                entries.iter().find_map(|entry| entry.record.as_ref().map(|record| record.id))
            }
            _ => None,
        };
        let mut recut = Vec::new();
        self.sealed.retain_mut(|sealed| {
            let is_fixed = sealed.is_replay || sealed.is_recorded && self.records;
            if is_fixed || Some(sealed.record.id) == being_recorded {
                return true;
            }
            let is_out = |range: &Range| partitions.contains(&range.partition());
            if !sealed.record.ranges.iter().any(is_out) {
                return true;
            }
            let ranges: Vec<Range> = sealed.record.ranges.iter().filter(|range| !is_out(range)).cloned().collect();
            if ranges.is_empty() {
                recut.push(Recut::Gone(sealed.record.id));
                return false;
            }
            sealed.record = Arc::new(BatchRecord { id: sealed.record.id, ranges });
            recut.push(Recut::Shorter(sealed.record.clone()));
            true
        });
        recut
    }

    /// Drops replays that none of our partitions waits for: they are left to the new owners.
    fn drop_needless_replays(&mut self) {
        let accounts = &self.accounts;
        let is_awaited = |range: &Range| {
            let account = accounts.get(&range.partition());
            account.is_some_and(|account| account.phase == Phase::Replaying && account.stored == range.first_offset)
        };
        self.sealed.retain(|sealed| !sealed.is_replay || sealed.record.ranges.iter().any(is_awaited));
    }
}

/// The work that is left after [`Accounts::forget`].
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Undone {
    pub(crate) recut: Vec<Recut>,
    pub(crate) to_start: Vec<TopicPartition>,
}

/// The coordinator's state of a partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shown {
    pub(crate) offset: i64,
    /// Epoch of the leader that wrote the message before the offset, or -1 if it isn't known.
    pub(crate) leader_epoch: i32,
    /// Id of the topic that the offset was committed for, if no batch begins at it. It is unknown if the text
    /// doesn't say so.
    pub(crate) topic_id: TopicId,
    pub(crate) record: Option<BatchRecord>,
}

/// The cause why a record doesn't count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RecordRejection {
    /// The offset was moved since, by hand.
    Moved,
    /// The topic is another one of the same name.
    OtherTopic,
    /// Another partition of the batch shows neither the record nor an offset behind its range. The batch was
    /// never begun, or offsets were moved.
    NotShownBy(TopicPartition),
}

impl fmt::Display for RecordRejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecordRejection::Moved => f.write_str("the committed offset is not where it begins"),
            RecordRejection::OtherTopic => f.write_str("the topic was deleted and created again since"),
            RecordRejection::NotShownBy(other) => write!(f, "{other} shows neither the record nor an offset behind it"),
        }
    }
}

/// Decides whether the batch of a record that a partition shows has to be stored before the partition goes
/// on. `is_gone` says whether the topic of a range was deleted.
pub(crate) fn judge(
    record: &BatchRecord,
    partition: &TopicPartition,
    topic_id: TopicId,
    shown: impl Fn(&TopicPartition) -> Option<Shown>,
    is_gone: impl Fn(&Range) -> bool,
) -> Result<(), RecordRejection> {
    let range = record.range_of(&partition.topic, partition.partition).ok_or(RecordRejection::Moved)?;
    if range.topic_id.is_other(topic_id) {
        return Err(RecordRejection::OtherTopic);
    }
    if shown(partition).is_none_or(|shown| shown.offset != range.first_offset) {
        return Err(RecordRejection::Moved);
    }
    for range in &record.ranges {
        let other = range.partition();
        let is_bound = shown(&other).is_some_and(|shown| {
            // The log has lost messages of the range since, and the partition was read on from there.
            let is_of_later_leader = range.leader_epoch >= 0 && shown.leader_epoch > range.leader_epoch;
            shown.offset > range.last_offset
                || shown.record.as_ref().is_some_and(|shown| shown.id == record.id)
                || is_of_later_leader
        });
        // A topic takes its offsets along: what else is in the batch may be stored all the same.
        if !is_bound && !is_gone(range) {
            return Err(RecordRejection::NotShownBy(other));
        }
    }
    Ok(())
}
