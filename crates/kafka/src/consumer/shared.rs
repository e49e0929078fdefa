//! What the conductor, the fetchers and the handles know together: which partitions are ours, and how far each was fetched.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use crate::consumer::budget::Budget;
use crate::consumer::event::{Claim, Watermarks};
use crate::consumer::options::FetchSizes;
use crate::consumer::records::Delivery;
use crate::topic_partition::TopicPartition;
use crate::wire::TopicId;

#[derive(Debug)]
pub(crate) struct Shared {
    state: Mutex<State>,
    /// Told when there may be something to fetch that there was not before.
    pub changed: Arc<Notify>,
    pub budget: Arc<Budget>,
}

#[derive(Debug)]
pub(super) struct State {
    pub partitions: BTreeMap<TopicPartition, Partition>,
    /// In whose name offsets are committed.
    pub generation: Option<(i32, String)>,
    /// The broker that keeps the group, as far as it is known.
    pub coordinator: Option<i32>,
    pub sizes: FetchSizes,
    /// Of each broker that leads a partition of ours: until when its first request may wait, while there is one under way.
    pub brokers: HashMap<i32, Option<Instant>>,
    pub last_request: u64,
    last_start: u64,
}

/// One that is ours, and was announced.
#[derive(Debug)]
pub(super) struct Partition {
    pub epoch: u64,
    pub topic_id: TopicId,
    pub leader: Option<Leader>,
    /// Still ours, to finish what is under way.
    pub is_revoking: bool,
    pub is_paused: bool,
    /// The next offset to fetch; nothing while it isn't started.
    pub position: Option<i64>,
    /// Tells starts apart, so that what belongs to an earlier one is known.
    pub start: u64,
    /// The request that asks for it at present.
    pub asked_in: Option<u64>,
    /// The last request that brought something: whose turn was the longest ago goes first.
    pub served_in: u64,
    /// After an error.
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
            start: 0,
            asked_in: None,
            served_in: 0,
            not_before: None,
            watermarks: None,
            watermarks_at: None,
        }
    }

    /// Whether it is to be fetched from this broker, if nothing speaks against it for a while.
    pub fn is_due(&self, node_id: i32) -> bool {
        let is_wanted = self.position.is_some() && !self.is_paused && !self.is_revoking && self.asked_in.is_none();
        is_wanted && self.leader.is_some_and(|leader| leader.node_id == node_id)
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
            sizes,
            brokers: HashMap::new(),
            last_request: 0,
            last_start: 0,
        };
        let budget = Budget::new(max_prefetch_bytes, changed.clone());
        Self { state: Mutex::new(state), changed, budget }
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

    pub(crate) fn set_sizes(&self, sizes: FetchSizes) {
        self.state().sizes = sizes;
        self.changed.notify_waiters();
    }

    pub(crate) fn set_paused(&self, claim: &Claim, is_paused: bool) {
        if let Some(partition) = self.state().of(claim) {
            partition.is_paused = is_paused;
        }
        self.changed.notify_waiters();
    }

    /// Whether it is ours.
    pub(crate) fn start(&self, claim: &Claim, offset: i64) -> bool {
        let mut state = self.state();
        state.last_start += 1;
        let start = state.last_start;
        let Some(partition) = state.of(claim) else { return false };
        partition.position = Some(offset);
        partition.start = start;
        partition.asked_in = None;
        partition.not_before = None;
        drop(state);
        self.changed.notify_waiters();
        true
    }

    /// After its offset was found to be out of range and then was not, unless it was started again meanwhile.
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

    /// What each broker may be asked for at once, so that all of them together stay within the budget, each with a second request.
    pub fn share_of_broker(&self, budget: &Budget) -> usize {
        budget.max_bytes() / (2 * self.brokers.len().max(1))
    }
}

pub(super) fn claim(partition: &TopicPartition, epoch: u64) -> Claim {
    Claim { topic: partition.topic.clone(), partition: partition.partition, epoch }
}
