//! Fetches what the partitions of one broker have, again and again.
//!
//! A broker lets a request wait until one of its partitions has something new, up to a bound; so an idle partition's next record is here as
//! soon as it is there. A request names all partitions that may be fetched and aren't asked for already. What it asks for at most is taken
//! out of the budget before it is sent; so is what came, until whoever reads it lets it go.
//!
//! Two tasks do this for each broker, each with a connection of its own. The *first* one asks for everything. What may be fetched only after
//! its request was sent (a partition that was started, or resumed) need not wait for its end: the *second* one asks for it, until the first
//! one's time is over, so that they come together again there.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;

use crate::batch::{end_offset, VisibleBatches};
use crate::client::{Backoff, Client, Purpose};
use crate::consumer::budget::Held;
use crate::consumer::event::{Claim, Watermarks};
use crate::consumer::records::{Delivery, Fetched};
use crate::consumer::shared::{claim, Leader, Shared, State};
use crate::error::Error;
use crate::error_code::ErrorCode;
use crate::topic_partition::TopicPartition;
use crate::wire::{ByTopic, FetchPartition, FetchRequest, FetchResponse, FetchedPartition, Isolation};

/// Held for what surrounds records, so that many small answers are bounded too.
const OVERHEAD_BYTES: usize = 512;
/// Less time than this is left to the first task's request: its end is waited for.
const SHORT: Duration = Duration::from_millis(10);
const AFTER_ERROR: Duration = Duration::from_millis(200);
const AFTER_REFUSAL: Duration = Duration::from_secs(2);

/// What the conductor has to know.
#[derive(Debug)]
pub(crate) enum Report {
    /// Who leads what has changed.
    StaleMetadata,
    OutOfRange {
        claim: Claim,
        start: u64,
        offset: i64,
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

/// A request that is under way. However it ends, its partitions can be asked for again then.
struct Asking<'s> {
    shared: &'s Shared,
    node_id: i32,
    turn: Turn,
    number: u64,
    request: FetchRequest,
    /// By partition.
    asked: Vec<Asked>,
    /// For what may come.
    _reserved: Held,
}

#[derive(Debug, Clone)]
struct Asked {
    partition: TopicPartition,
    epoch: u64,
    start: u64,
    offset: i64,
}

enum Next<'s> {
    Ask(Box<Asking<'s>>),
    /// For a change, or until then.
    Wait(Option<Instant>),
}

/// What an answer brought, to be sent when the lock is free.
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
            let asking = self.next_request().await;
            match self.ask(&asking.request).await {
                Ok(answer) => {
                    backoff.reset();
                    self.take(*asking, answer);
                }
                Err(error) => {
                    drop(asking);
                    let _ = self.reports.send(Report::Trouble(error.to_string()));
                    let _ = self.reports.send(Report::StaleMetadata);
                    tokio::time::sleep(backoff.next_delay()).await;
                }
            }
        }
    }

    async fn next_request(&self) -> Box<Asking<'_>> {
        loop {
            let changed = self.shared.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            match self.shared.next_request(self.node_id, self.turn, self.isolation) {
                Next::Ask(asking) => return asking,
                Next::Wait(None) => changed.await,
                Next::Wait(Some(until)) => {
                    let _ = tokio::time::timeout_at(until.into(), changed).await;
                }
            }
        }
    }

    async fn ask(&self, request: &FetchRequest) -> Result<FetchResponse, Error> {
        let purpose = match self.turn {
            Turn::First => Purpose::Fetch,
            Turn::Second => Purpose::FetchBeside,
        };
        let answer = self.client.connection(self.node_id, purpose).await?.call(request).await?;
        match answer.error {
            ErrorCode::NONE => Ok(answer),
            code => Err(Error::Refused { doing: format!("fetch from broker {}", self.node_id), code, reason: None }),
        }
    }

    fn take(&self, asking: Asking<'_>, answer: FetchResponse) {
        let mut brought = Brought::default();
        let mut state = self.shared.state();
        for ByTopic { topic, partitions } in answer.topics {
            for fetched in partitions {
                let named = TopicPartition { topic: topic.clone(), partition: fetched.partition };
                if let Ok(at) = asking.asked.binary_search_by(|asked| asked.partition.cmp(&named)) {
                    self.take_partition(&mut state, asking.number, &asking.asked[at], fetched, &mut brought);
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
        let claim = claim(&asked.partition, asked.epoch);
        let Some(partition) = state.of(&claim).filter(|partition| partition.asked_in == Some(number)) else { return };
        let now = Instant::now();
        match fetched.error {
            ErrorCode::NONE => {}
            ErrorCode::OFFSET_OUT_OF_RANGE => {
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
        let Some(end) = end_offset(&fetched.records) else { return };
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
        let sizes = state.sizes;
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
        let due: Vec<(&TopicPartition, u64, Option<Instant>)> = state
            .partitions
            .iter()
            .filter(|(_, partition)| partition.is_due(node_id))
            .map(|(named, partition)| (named, partition.served_in, partition.not_before))
            .collect();
        let is_now = |not_before: &Option<Instant>| not_before.is_none_or(|not_before| not_before <= now);
        let mut chosen: Vec<(u64, TopicPartition)> = due
            .iter()
            .filter(|(_, _, not_before)| is_now(not_before))
            .map(|(named, served_in, _)| (*served_in, (*named).clone()))
            .collect();
        if chosen.is_empty() {
            return Next::Wait(due.iter().filter_map(|(_, _, not_before)| *not_before).min());
        }
        let max_bytes = sizes.max_bytes.min(state.share_of_broker(&self.budget)).max(1);
        let Some(reserved) = self.budget.try_hold(max_bytes) else { return Next::Wait(None) };
        // Partitions are filled in this order, until the answer is full.
        chosen.sort();
        state.last_request += 1;
        let number = state.last_request;
        if turn == Turn::First {
            state.brokers.insert(node_id, Some(now + max_wait));
        }
        let mut asked = Vec::with_capacity(chosen.len());
        let mut wanted = Vec::with_capacity(chosen.len());
        for (_, named) in chosen {
            let Some(partition) = state.partitions.get_mut(&named) else { continue };
            let (Some(offset), Some(Leader { epoch, .. })) = (partition.position, partition.leader) else { continue };
            partition.asked_in = Some(number);
            let max_bytes = size(sizes.max_partition_bytes);
            let fetch = FetchPartition { partition: named.partition, current_leader_epoch: epoch, offset, max_bytes };
            wanted.push((named.topic.clone(), fetch));
            asked.push(Asked { partition: named, epoch: partition.epoch, start: partition.start, offset });
        }
        // Of thousands each is looked for when the answer comes.
        asked.sort_unstable_by(|one, other| one.partition.cmp(&other.partition));
        let request = FetchRequest {
            max_wait_ms: i32::try_from(max_wait.as_millis()).unwrap_or(i32::MAX),
            min_bytes: size(sizes.min_bytes.min(max_bytes)),
            max_bytes: size(max_bytes),
            isolation,
            session_id: 0,
            session_epoch: -1,
            topics: ByTopic::collect(wanted),
            forgotten: Vec::new(),
            rack_id: String::new(),
        };
        Next::Ask(Box::new(Asking { shared: self, node_id, turn, number, request, asked, _reserved: reserved }))
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        for asked in &self.asked {
            let partition = state.partitions.get_mut(&asked.partition);
            if let Some(partition) = partition.filter(|partition| partition.asked_in == Some(self.number)) {
                partition.asked_in = None;
            }
        }
        if let (Turn::First, Some(until)) = (self.turn, state.brokers.get_mut(&self.node_id)) {
            *until = None;
        }
    }
}

fn size(bytes: usize) -> i32 {
    i32::try_from(bytes).unwrap_or(i32::MAX)
}
