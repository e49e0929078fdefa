//! The fetching of records from one broker, again and again.
//!
//! A broker lets a request wait until one of its partitions has something new, up to a bound. So an idle
//! partition's next record is here as soon as it is there. A request names all partitions that may be fetched
//! and aren't asked for already. The bytes that it asks for at most are taken out of the budget before it is
//! sent; so are the bytes that came, until their reader drops them.
//!
//! Two tasks do this for each broker, each with a connection of its own. The *first* one asks for everything.
//! A partition that may be fetched only after that request was sent (it was started, or resumed) need not
//! wait for the request's end: the *second* task asks for it, until the first task's time is over, so that
//! they come together again there.
//!
//! A partition that another broker leads now, or whose reading begins where another reader's ended, is
//! fetched only after its leader has said that its log has the records before (`check.rs`).

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;

use crate::batch::{end_offset, VisibleBatches};
use crate::client::{Backoff, Client, Connection, Purpose};
use crate::consumer::budget::Held;
use crate::consumer::check::{Checking, Divergence};
use crate::consumer::event::{Claim, Watermarks};
use crate::consumer::records::{Delivery, Fetched};
use crate::consumer::shared::{claim, Partition, Shared, State};
use crate::error::Error;
use crate::error_code::KafkaErrorCode;
use crate::topic_partition::TopicPartition;
use crate::wire::{
    ByTopic, FetchPartition, FetchRequest, FetchResponse, FetchTopic, FetchedPartition, Isolation, TopicId,
};

/// Bytes that are held in addition to the records of a partition's answer, so that many small answers are
/// bounded too.
const OVERHEAD_BYTES: usize = 512;
/// Time to the end of the first task's request within which the second task waits instead of asking.
const SHORT: Duration = Duration::from_millis(10);
pub(super) const AFTER_ERROR: Duration = Duration::from_millis(200);
const AFTER_REFUSAL: Duration = Duration::from_secs(2);

/// A message from a fetcher to the conductor.
#[derive(Debug)]
pub(crate) enum Report {
    /// The leaders of partitions have changed.
    StaleMetadata,
    OutOfRange {
        claim: Claim,
        start: u64,
        offset: i64,
    },
    /// The leader's log has other records before the offset than those that were read, or none.
    Diverged {
        claim: Claim,
        start: u64,
        offset: i64,
        divergence: Divergence,
    },
    Trouble(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    First,
    Second,
}

#[derive(Clone)]
pub(crate) struct Fetcher {
    pub node_id: i32,
    pub turn: Turn,
    pub client: Client,
    pub shared: Arc<Shared>,
    pub isolation: Isolation,
    pub records: mpsc::UnboundedSender<Delivery>,
    pub reports: mpsc::UnboundedSender<Report>,
}

/// Partitions that a request is under way for. When the request ends, in any way, they can be asked for again.
pub(super) struct UnderWay<'s> {
    shared: &'s Shared,
    pub number: u64,
    /// Partitions of the request. A fetch has them in the order of their names.
    pub asked: Vec<Asked>,
}

struct Asking<'s> {
    under_way: UnderWay<'s>,
    node_id: i32,
    turn: Turn,
    request: FetchRequest,
    /// Bytes of the budget for the answer.
    _reserved: Held,
}

#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub partition: TopicPartition,
    pub topic_id: TopicId,
    pub epoch: u64,
    pub start: u64,
    pub offset: i64,
    /// Epoch of the leader that is asked.
    pub leader_epoch: i32,
}

impl Asked {
    pub fn claim(&self) -> Claim {
        claim(&self.partition, self.epoch)
    }
}

enum Task<'s> {
    Fetch(Box<Asking<'s>>),
    Check(Checking<'s>),
}

enum Next<'s> {
    Do(Task<'s>),
    /// Waits for a change, or until this time if there is one.
    Wait(Option<Instant>),
}

/// Contents of an answer, to be sent when the lock is free.
#[derive(Default)]
struct Brought {
    deliveries: Vec<Delivery>,
    reports: Vec<Report>,
}

impl Fetcher {
    pub(crate) async fn run(self) {
        let options = self.client.options();
        let mut backoff = Backoff::new(options.min_backoff_ms, options.max_backoff_ms);
        while !self.records.is_closed() {
            let done = match self.next_task().await {
                Task::Fetch(asking) => self.ask(&asking.request).await.map(|answer| self.take(*asking, answer)),
                Task::Check(checking) => self.check(checking).await,
            };
            match done {
                Ok(()) => backoff.reset(),
                Err(error) => {
                    let _ = self.reports.send(Report::Trouble(error.to_string()));
                    let _ = self.reports.send(Report::StaleMetadata);
                    tokio::time::sleep(backoff.next_delay()).await;
                }
            }
        }
    }

    async fn next_task(&self) -> Task<'_> {
        loop {
            let changed = self.shared.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            match self.shared.next_request(self.node_id, self.turn, self.isolation) {
                Next::Do(task) => return task,
                Next::Wait(None) => changed.await,
                Next::Wait(Some(until)) => {
                    let _ = tokio::time::timeout_at(until.into(), changed).await;
                }
            }
        }
    }

    pub(super) async fn connection(&self) -> Result<Connection, Error> {
        let purpose = match self.turn {
            Turn::First => Purpose::Fetch,
            Turn::Second => Purpose::FetchBeside,
        };
        self.client.connection(self.node_id, purpose).await
    }

    async fn ask(&self, request: &FetchRequest) -> Result<FetchResponse, Error> {
        let answer = self.connection().await?.call(request).await?;
        match answer.error {
            KafkaErrorCode::NONE => Ok(answer),
            code => Err(Error::Refused { doing: format!("fetch from broker {}", self.node_id), code, reason: None }),
        }
    }

    fn take(&self, asking: Asking<'_>, answer: FetchResponse) {
        let mut brought = Brought::default();
        let UnderWay { number, asked, .. } = &asking.under_way;
        let mut state = self.shared.state();
        for ByTopic { topic, partitions } in asking.request.by_name(answer) {
            for fetched in partitions {
                let named = TopicPartition { topic: topic.clone(), partition: fetched.partition };
                if let Ok(at) = asked.binary_search_by(|asked| asked.partition.cmp(&named)) {
                    self.take_partition(&mut state, *number, &asked[at], fetched, &mut brought);
                }
            }
        }
        drop(state);
        // Before the partitions may be asked for again: what comes next of them comes behind.
        for delivery in brought.deliveries {
            let _ = self.records.send(delivery);
        }
        drop(asking);
        for report in brought.reports {
            let _ = self.reports.send(report);
        }
    }

    fn take_partition(
        &self,
        state: &mut State,
        number: u64,
        asked: &Asked,
        fetched: FetchedPartition,
        brought: &mut Brought,
    ) {
        let claim = asked.claim();
        let Some(partition) = state.of(&claim).filter(|partition| partition.asked_in == Some(number)) else { return };
        let now = Instant::now();
        match fetched.error {
            KafkaErrorCode::NONE => {}
            KafkaErrorCode::OFFSET_OUT_OF_RANGE => {
                partition.position = None;
                let (start, offset) = (asked.start, asked.offset);
                return brought.reports.push(Report::OutOfRange { claim, start, offset });
            }
            code if code.means_stale_metadata() => {
                partition.not_before = Some(now + AFTER_ERROR);
                return brought.reports.push(Report::StaleMetadata);
            }
            code => {
                let after = if code.is_retriable() { AFTER_ERROR } else { AFTER_REFUSAL };
                partition.not_before = Some(now + after);
                return brought.reports.push(Report::Trouble(format!("Kafka: fetch {}: {code}", asked.partition)));
            }
        }
        let (low, high) = (fetched.log_start_offset, fetched.high_watermark);
        let last_stable = if fetched.last_stable_offset < 0 { high } else { fetched.last_stable_offset };
        partition.watermarks = Some(Watermarks { low, high, last_stable });
        partition.watermarks_at = Some(now);
        // What comes of this leader begins where its log was asked for.
        partition.checked_in = Some(asked.leader_epoch);
        let epochs = &mut partition.epochs;
        let Some(end) = end_offset(&fetched.records, |batch| epochs.note(batch)) else { return };
        let next_offset = end.max(asked.offset);
        if next_offset == asked.offset {
            // Whoever reads it is told what is wrong with it, but not all the time.
            partition.not_before = Some(now + AFTER_REFUSAL);
        }
        partition.position = Some(next_offset);
        partition.served_in = number;
        let bytes = fetched.records.len();
        brought.deliveries.push(Delivery {
            fetched: Fetched {
                claim,
                batches: VisibleBatches::new(&fetched, self.isolation, asked.offset),
                from_offset: asked.offset,
                next_offset,
                high_watermark: high,
                bytes,
                _held: self.shared.budget.hold(bytes + OVERHEAD_BYTES),
            },
            start: asked.start,
        });
    }
}

impl Shared {
    fn next_request(&self, node_id: i32, turn: Turn, isolation: Isolation) -> Next<'_> {
        let mut state = self.state();
        let now = Instant::now();
        let sizes = self.sizes;
        let first_until = state.brokers.get(&node_id).copied().flatten();
        let max_wait = match (turn, first_until) {
            (Turn::First, _) => Duration::from_millis(sizes.max_wait_ms),
            // The first one is about to take everything.
            (Turn::Second, None) => return Next::Wait(None),
            (Turn::Second, Some(until)) => match until.saturating_duration_since(now) {
                left if left < SHORT => return Next::Wait(None),
                left => left,
            },
        };
        let due: Vec<(&TopicPartition, &Partition)> =
            state.partitions.iter().filter(|(_, partition)| partition.is_due(node_id)).collect();
        let is_now = |partition: &Partition| partition.not_before.is_none_or(|not_before| not_before <= now);
        let (mut chosen, mut unchecked) = (Vec::new(), Vec::new());
        for (named, partition) in due.iter().filter(|(_, partition)| is_now(partition)) {
            match partition.unchecked() {
                None => chosen.push((partition.served_in, (*named).clone())),
                Some(leader_epoch) => unchecked.push(((*named).clone(), leader_epoch)),
            }
        }
        if !unchecked.is_empty() {
            return Next::Do(Task::Check(Checking::begin(self, &mut state, unchecked)));
        }
        if chosen.is_empty() {
            return Next::Wait(due.iter().filter_map(|(_, partition)| partition.not_before).min());
        }
        let max_bytes = sizes.max_bytes.min(state.share_of_broker(&self.budget)).max(1);
        let Some(reserved) = self.budget.try_hold(max_bytes) else { return Next::Wait(None) };
        // Partitions are filled in this order, until the answer is full.
        chosen.sort();
        let mut under_way = UnderWay::begin(self, &mut state);
        if turn == Turn::First {
            state.brokers.insert(node_id, Some(now + max_wait));
        }
        let mut wanted = Vec::with_capacity(chosen.len());
        for (_, named) in chosen {
            let Some(asked) = under_way.add(&mut state, named) else { continue };
            let (partition, offset) = (asked.partition.partition, asked.offset);
            let max_bytes = size(sizes.max_partition_bytes);
            let fetch = FetchPartition { partition, current_leader_epoch: asked.leader_epoch, offset, max_bytes };
            wanted.push((FetchTopic { name: asked.partition.topic.clone(), id: asked.topic_id }, fetch));
        }
        // Of thousands each is looked for when the answer comes.
        under_way.asked.sort_unstable_by(|one, other| one.partition.cmp(&other.partition));
        let request = FetchRequest {
            max_wait_ms: i32::try_from(max_wait.as_millis()).unwrap_or(i32::MAX),
            min_bytes: size(sizes.min_bytes.min(max_bytes)),
            max_bytes: size(max_bytes),
            isolation,
            topics: ByTopic::collect(wanted),
        };
        Next::Do(Task::Fetch(Box::new(Asking { under_way, node_id, turn, request, _reserved: reserved })))
    }
}

impl<'s> UnderWay<'s> {
    pub fn begin(shared: &'s Shared, state: &mut State) -> UnderWay<'s> {
        state.last_request += 1;
        UnderWay { shared, number: state.last_request, asked: Vec::new() }
    }

    /// Adds a partition to the request. Returns `None` if the partition has no position or no leader.
    pub fn add(&mut self, state: &mut State, named: TopicPartition) -> Option<&Asked> {
        let partition = state.partitions.get_mut(&named)?;
        let (offset, leader) = (partition.position?, partition.leader?);
        partition.asked_in = Some(self.number);
        let (epoch, start, leader_epoch) = (partition.epoch, partition.start, leader.epoch);
        let topic_id = partition.topic_id;
        self.asked.push(Asked { partition: named, topic_id, epoch, start, offset, leader_epoch });
        self.asked.last()
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        for asked in &self.asked {
            let partition = state.partitions.get_mut(&asked.partition);
            if let Some(partition) = partition.filter(|partition| partition.asked_in == Some(self.number)) {
                partition.asked_in = None;
            }
        }
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        if let Turn::First = self.turn {
            // Before its partitions can be asked for again, which is when the fields are dropped.
            if let Some(until) = self.under_way.shared.state().brokers.get_mut(&self.node_id) {
                *until = None;
            }
        }
    }
}

fn size(bytes: usize) -> i32 {
    i32::try_from(bytes).unwrap_or(i32::MAX)
}
