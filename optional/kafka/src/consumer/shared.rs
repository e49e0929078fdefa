//! The state that the conductor, the fetchers and the handles share: our partitions, and the position of each.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use crate::consumer::budget::Budget;
use crate::consumer::event::{Claim, Commit, Watermarks};
use crate::consumer::leader_epochs::LeaderEpochs;
use crate::consumer::options::FetchSizes;
use crate::consumer::records::Delivery;
use crate::topic_partition::TopicPartition;
use crate::wire::TopicId;

#[derive(Debug)]
pub(crate) struct Shared {
    state: Mutex<State>,
    /// The signal that there may be something new to fetch.
    pub changed: Arc<Notify>,
    pub budget: Arc<Budget>,
    pub sizes: FetchSizes,
}

#[derive(Debug)]
pub(super) struct State {
    pub partitions: BTreeMap<TopicPartition, Partition>,
    /// Generation and member id with which offsets are committed.
    pub generation: Option<(i32, String)>,
    /// Id of the broker that coordinates the group, as far as it is known.
    pub coordinator: Option<i32>,
    /// Brokers that lead a partition of ours. The time is until when a broker's first request may wait, while
    /// there is one under way.
    pub brokers: HashMap<i32, Option<Instant>>,
    pub last_request: u64,
    last_start: u64,
}

/// A partition that is ours and was announced.
#[derive(Debug)]
pub(super) struct Partition {
    pub epoch: u64,
    pub topic_id: TopicId,
    pub leader: Option<Leader>,
    /// True while the partition is still ours only to finish what is under way.
    pub is_revoking: bool,
    pub is_paused: bool,
    /// The next offset to fetch, or `None` while the partition isn't started.
    pub position: Option<i64>,
    /// Epochs of the leaders that wrote the records before the position.
    pub epochs: LeaderEpochs,
    /// Epoch of the leader whose log is known to have these records.
    pub checked_in: Option<i32>,
    /// Number of the start, which tells later starts from earlier ones.
    pub start: u64,
    /// Number of the request that asks for the partition at present.
    pub asked_in: Option<u64>,
    /// Number of the last request that brought something. The partition with the lowest number is asked for first.
    pub served_in: u64,
    /// Time before which the partition is not asked for again, after an error.
    pub not_before: Option<Instant>,
    pub watermarks: Option<Watermarks>,
    pub watermarks_at: Option<Instant>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Leader {
    pub node_id: i32,
    pub epoch: i32,
}

impl Partition {
    fn new(epoch: u64, topic_id: TopicId, leader: Option<Leader>) -> Self {
        Self {
            epoch,
            topic_id,
            leader,
            is_revoking: false,
            is_paused: false,
            position: None,
            epochs: LeaderEpochs::default(),
            checked_in: None,
            start: 0,
            asked_in: None,
            served_in: 0,
            not_before: None,
            watermarks: None,
            watermarks_at: None,
        }
    }

    /// Says whether the partition is to be fetched from this broker. `not_before` is not looked at.
    pub fn is_due(&self, node_id: i32) -> bool {
        let is_wanted = self.position.is_some() && !self.is_paused && !self.is_revoking && self.asked_in.is_none();
        is_wanted && self.leader.is_some_and(|leader| leader.node_id == node_id)
    }

    /// Returns the epoch that the leader has to be asked by before it is fetched from, or `None` if the leader need
    /// not be asked. Another leader's log may have other records than were read before the position.
    pub fn unchecked(&self) -> Option<i32> {
        let leader = self.leader.filter(|leader| leader.epoch >= 0 && self.checked_in != Some(leader.epoch))?;
        let epoch = self.epochs.before(self.position?)?;
        // What it wrote itself it has.
        (epoch != leader.epoch).then_some(epoch)
    }

    fn stop(&mut self) {
        self.position = None;
        self.asked_in = None;
    }
}

impl Shared {
    pub(crate) fn new(sizes: FetchSizes, max_prefetch_bytes: usize) -> Self {
        let changed = Arc::new(Notify::new());
        let state = State {
            partitions: BTreeMap::new(),
            generation: None,
            coordinator: None,
            brokers: HashMap::new(),
            last_request: 0,
            last_start: 0,
        };
        let budget = Budget::new(max_prefetch_bytes, changed.clone());
        Self { state: Mutex::new(state), changed, budget, sizes }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_current(&self, delivery: &Delivery) -> bool {
        let mut state = self.state();
        let partition = state.of(&delivery.fetched.claim);
        partition.is_some_and(|partition| partition.start == delivery.start && !partition.is_revoking)
    }

    pub(crate) fn owns(&self, claim: &Claim) -> bool {
        self.state().of(claim).is_some()
    }

    pub(crate) fn watermarks(&self, claim: &Claim) -> Option<Watermarks> {
        self.state().of(claim)?.watermarks
    }

    pub(crate) fn set_paused(&self, claim: &Claim, is_paused: bool) {
        if let Some(partition) = self.state().of(claim) {
            partition.is_paused = is_paused;
        }
        self.changed.notify_waiters();
    }

    /// Says whether the partition was not started again since this start.
    pub(crate) fn is_started_as(&self, claim: &Claim, start: u64) -> bool {
        self.state().of(claim).is_some_and(|partition| partition.start == start)
    }

    pub(crate) fn leader_epoch(&self, claim: &Claim, offset: i64) -> Option<i32> {
        self.state().of(claim)?.epochs.before(offset)
    }

    /// Forgets the epochs before committed offsets, since these are not committed again.
    pub(crate) fn forget_epochs_before(&self, commits: &[Commit]) {
        let mut state = self.state();
        for commit in commits {
            if let Some(partition) = state.of(&commit.claim) {
                partition.epochs.forget_before(commit.offset);
            }
        }
    }

    /// Starts a partition, and says whether it is ours. `leader_epoch` is that of the record before the
    /// offset, if it is known.
    pub(crate) fn start(&self, claim: &Claim, offset: i64, leader_epoch: Option<i32>) -> bool {
        let mut state = self.state();
        state.last_start += 1;
        let start = state.last_start;
        let Some(partition) = state.of(claim) else { return false };
        partition.position = Some(offset);
        partition.epochs.begin(offset, leader_epoch);
        partition.checked_in = None;
        partition.start = start;
        partition.asked_in = None;
        partition.not_before = None;
        drop(state);
        self.changed.notify_waiters();
        true
    }

    /// Goes on with a partition whose offset seemed to be out of range, unless it was started again meanwhile.
    pub(crate) fn go_on(&self, claim: &Claim, start: u64, offset: i64, after: Duration) {
        if let Some(partition) = self.state().of(claim).filter(|partition| partition.start == start) {
            partition.position = Some(offset);
            partition.not_before = Some(Instant::now() + after);
        }
        self.changed.notify_waiters();
    }
}

impl State {
    pub fn of(&mut self, claim: &Claim) -> Option<&mut Partition> {
        let named = TopicPartition { topic: claim.topic.clone(), partition: claim.partition };
        self.partitions.get_mut(&named).filter(|partition| partition.epoch == claim.epoch)
    }

    pub fn add(&mut self, partition: TopicPartition, epoch: u64, topic_id: TopicId, leader: Option<Leader>) -> Claim {
        let claim = claim(&partition, epoch);
        self.partitions.insert(partition, Partition::new(epoch, topic_id, leader));
        claim
    }

    pub fn revoke(&mut self, partition: &TopicPartition) -> Option<Claim> {
        let found = self.partitions.get_mut(partition)?;
        found.is_revoking = true;
        found.stop();
        Some(claim(partition, found.epoch))
    }

    pub fn remove(&mut self, partition: &TopicPartition) -> Option<Claim> {
        self.partitions.remove(partition).map(|found| claim(partition, found.epoch))
    }

    /// Returns the bytes that each request may ask for, so that two requests to each broker together stay
    /// within the budget.
    pub fn share_of_broker(&self, budget: &Budget) -> usize {
        budget.max_bytes() / (2 * self.brokers.len().max(1))
    }
}

pub(super) fn claim(partition: &TopicPartition, epoch: u64) -> Claim {
    Claim { topic: partition.topic.clone(), partition: partition.partition, epoch }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Span;

    fn leader(node_id: i32, epoch: i32) -> Option<Leader> {
        Some(Leader { node_id, epoch })
    }

    #[test]
    fn only_a_leader_of_a_later_epoch_is_asked_for_its_log() {
        let shared = Shared::new(FetchSizes::default(), 1 << 20);
        let named = TopicPartition::new("events", 0);
        let claim = shared.state().add(named.clone(), 1, TopicId::default(), leader(1, 4));
        let unchecked = || shared.state().partitions[&named].unchecked();
        let set = |change: &dyn Fn(&mut Partition)| {
            if let Some(partition) = shared.state().partitions.get_mut(&named) {
                change(partition);
            }
        };
        assert_eq!(unchecked(), None, "nothing is to be fetched");
        shared.start(&claim, 100, None);
        assert_eq!(unchecked(), None, "nobody knows what was before");
        shared.start(&claim, 100, Some(4));
        assert_eq!(unchecked(), None, "it has written that itself");
        shared.start(&claim, 100, Some(3));
        assert_eq!(unchecked(), Some(3));
        set(&|partition| partition.checked_in = Some(4));
        assert_eq!(unchecked(), None);
        set(&|partition| partition.leader = leader(2, 5));
        assert_eq!(unchecked(), Some(3));
        set(&|partition| {
            partition.epochs.note(Span { first_offset: 100, next_offset: 110, leader_epoch: 4 });
            partition.position = Some(110);
        });
        assert_eq!(unchecked(), Some(4));
        set(&|partition| partition.leader = None);
        assert_eq!(unchecked(), None);
        set(&|partition| partition.leader = leader(2, -1));
        assert_eq!(unchecked(), None, "there are no epochs");
    }

    #[test]
    fn what_was_started_again_is_another_start() {
        let shared = Shared::new(FetchSizes::default(), 1 << 20);
        let claim = shared.state().add(TopicPartition::new("events", 0), 1, TopicId::default(), leader(1, 0));
        shared.start(&claim, 10, None);
        let start = shared.state().of(&claim).map(|partition| partition.start).unwrap();
        assert!(shared.is_started_as(&claim, start));
        shared.start(&claim, 10, None);
        assert!(!shared.is_started_as(&claim, start));
    }
}
