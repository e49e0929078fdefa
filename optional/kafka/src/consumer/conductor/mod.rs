//! The conductor of a consumer: one task that handles every command, report and answer, and never waits for
//! one of them alone.

mod work;

pub(super) use work::coordinator;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot};
use tokio::task::{AbortHandle, JoinError, JoinSet};

use crate::client::{Backoff, Client};
use crate::consumer::check::Divergence;
use crate::consumer::conductor::work::Done;
use crate::consumer::event::{Assigned, Claim, Event, Watermarks};
use crate::consumer::fetcher::{Fetcher, Report, Turn};
use crate::consumer::options::ConsumerOptions;
use crate::consumer::records::Delivery;
use crate::consumer::shared::Shared;
use crate::consumer::topics::TopicTable;
use crate::consumer::troubles::Troubles;
use crate::error::Error;
use crate::error_code::KafkaErrorCode;
use crate::group::{Action, Assignor, Call, Input, Member, Membership, MembershipOptions, PartitionCounts, Task};
use crate::reading::CommittedOffset;
use crate::topic_partition::TopicPartition;
use crate::wire::{ListedOffset, MetadataResponse};

/// Largest age of the watermarks of a partition that isn't being fetched.
const WATERMARKS_EVERY: Duration = Duration::from_secs(1);
/// First pause before an urgent request is sent again, in milliseconds.
const MIN_URGENT_MS: u64 = 100;
const MAX_URGENT_MS: u64 = 2_000;
/// Time until a partition is asked for again whose topic is not there at present.
const ANNOUNCE_AGAIN: Duration = Duration::from_millis(500);
const NOTHING_DUE: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(super) enum Command {
    GivenUp(Vec<Claim>),
    /// A commit of this generation was refused. The answer is sent when it is clear which partitions are still ours.
    Refused {
        generation: i32,
        code: KafkaErrorCode,
        seen: oneshot::Sender<()>,
    },
    Leave(oneshot::Sender<()>),
}

pub(super) struct Conductor {
    client: Client,
    options: ConsumerOptions,
    shared: Arc<Shared>,
    group: Membership,
    topics: TopicTable,
    commands: mpsc::UnboundedReceiver<Command>,
    reports: mpsc::UnboundedReceiver<Report>,
    report: mpsc::UnboundedSender<Report>,
    records: mpsc::UnboundedSender<Delivery>,
    events: mpsc::UnboundedSender<Event>,
    work: JoinSet<Done>,
    fetching: JoinSet<()>,
    /// The two fetching tasks of each broker that leads a partition of ours.
    fetchers: HashMap<i32, [AbortHandle; 2]>,
    begun: Instant,
    last_epoch: u64,
    /// Partitions with their epochs that are assigned but not announced yet, since it isn't known yet what
    /// was committed.
    unannounced: BTreeMap<TopicPartition, u64>,
    /// Numbers of partitions that this member has used as the leader of the group for the last assignment.
    shared_out: Option<PartitionCounts>,
    metadata: Refresh,
    watermarks: Refresh,
    troubles: Troubles,
    is_leaving: bool,
    left: Vec<oneshot::Sender<()>>,
}

/// A request that is sent again and again.
#[derive(Debug)]
struct Refresh {
    every: Duration,
    due: Instant,
    is_under_way: bool,
    /// True if the last answer has turned out to be out of date since it came.
    is_urgent: bool,
    backoff: Backoff,
}

impl Refresh {
    fn new(every: Duration, due: Instant) -> Self {
        Self { every, due, is_under_way: false, is_urgent: false, backoff: Backoff::new(MIN_URGENT_MS, MAX_URGENT_MS) }
    }

    /// Makes the request due earlier than it would be otherwise, but with pauses that grow.
    fn soon(&mut self, now: Instant) {
        if !self.is_urgent {
            self.is_urgent = true;
            self.due = self.due.min(now + self.backoff.next_delay());
        }
    }

    fn is_due(&self, now: Instant) -> bool {
        !self.is_under_way && self.due <= now
    }

    fn begin(&mut self) {
        self.is_under_way = true;
        self.is_urgent = false;
    }

    fn done(&mut self, now: Instant, well: bool) {
        self.is_under_way = false;
        self.due = now + self.every;
        if !well || self.is_urgent {
            self.due = self.due.min(now + self.backoff.next_delay());
        } else {
            self.backoff.reset();
        }
    }
}

/// The conductor's ends of its channels.
pub(super) struct Channels {
    pub commands: mpsc::UnboundedReceiver<Command>,
    pub records: mpsc::UnboundedSender<Delivery>,
    pub events: mpsc::UnboundedSender<Event>,
}

impl Conductor {
    pub fn new(
        client: Client,
        options: ConsumerOptions,
        topics: TopicTable,
        shared: Arc<Shared>,
        channels: Channels,
    ) -> Self {
        let (report, reports) = mpsc::unbounded_channel();
        let (min_ms, max_ms) = (client.options().min_backoff_ms, client.options().max_backoff_ms);
        let group = Membership::new(MembershipOptions {
            group: options.group.clone(),
            group_instance_id: options.group_instance_id.clone(),
            assignors: options.assignors.clone(),
            session_timeout_ms: options.session_timeout_ms,
            heartbeat_interval_ms: options.heartbeat_interval_ms,
            rebalance_timeout_ms: options.rebalance_timeout_ms,
            min_backoff_ms: min_ms,
            max_backoff_ms: max_ms,
        });
        let now = Instant::now();
        let metadata = Duration::from_millis(options.metadata_refresh_ms.max(1));
        Self {
            client,
            options,
            shared,
            group,
            topics,
            commands: channels.commands,
            reports,
            report,
            records: channels.records,
            events: channels.events,
            work: JoinSet::new(),
            fetching: JoinSet::new(),
            fetchers: HashMap::new(),
            begun: now,
            last_epoch: 0,
            unannounced: BTreeMap::new(),
            shared_out: None,
            metadata: Refresh::new(metadata, now),
            watermarks: Refresh::new(WATERMARKS_EVERY, now),
            troubles: Troubles::default(),
            is_leaving: false,
            left: Vec::new(),
        }
    }

    pub async fn run(mut self) {
        while !self.group.has_ended() {
            let now = Instant::now();
            if self.metadata.is_due(now) {
                self.ask_for_metadata();
            }
            if self.watermarks.is_due(now) {
                self.ask_for_watermarks(now);
            }
            let wake_at = self.wake_at(now);
            tokio::select! {
                command = self.commands.recv(), if !self.is_leaving => match command {
                    Some(command) => self.obey(command),
                    // Nobody is left who could want anything.
                    None => self.leave(),
                },
                Some(report) = self.reports.recv() => self.heed(report),
                Some(done) = self.work.join_next() => match done {
                    Ok(done) => self.finish(done),
                    // Perhaps it was to bring the answer that is waited for.
                    Err(_) if self.is_leaving => break,
                    Err(error) => self.fail(&error),
                },
                Some(ended) = self.fetching.join_next() => match ended {
                    Err(error) if error.is_panic() => self.fail(&error),
                    // Its broker leads nothing of ours any more, or nobody wants records.
                    Ok(()) | Err(_) => {}
                },
                () = tokio::time::sleep_until(wake_at.into()) => self.tell(Input::Tick),
            }
        }
        self.shared.state().partitions.clear();
        for left in self.left.drain(..) {
            let _ = left.send(());
        }
    }

    fn wake_at(&self, now: Instant) -> Instant {
        let group = self.group.wake_at_ms().map(|at_ms| self.begun + Duration::from_millis(at_ms));
        let refreshes = [&self.metadata, &self.watermarks].into_iter();
        let refreshes = refreshes.filter(|refresh| !refresh.is_under_way).map(|refresh| refresh.due);
        group.into_iter().chain(refreshes).min().unwrap_or(now + NOTHING_DUE)
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::GivenUp(claims) => self.given_up(&claims),
            Command::Refused { generation, code, seen } => {
                self.tell(Input::Refused { generation, code });
                let _ = seen.send(());
            }
            Command::Leave(left) => {
                self.left.push(left);
                self.leave();
            }
        }
    }

    fn leave(&mut self) {
        if !self.is_leaving {
            self.is_leaving = true;
            self.fetchers.clear();
            self.fetching.abort_all();
            // No answer is waited for any more, and a question less is in the way of ours.
            self.work.abort_all();
            self.work = JoinSet::new();
            self.tell(Input::Leave);
        }
    }

    /// Ends the consumer after a task has panicked: its work will never be done, and a new start is better
    /// than a silent standstill.
    fn fail(&mut self, error: &JoinError) {
        self.say(Event::Ended(Error::Panicked(error.to_string())));
        self.leave();
    }

    fn given_up(&mut self, claims: &[Claim]) {
        let mut given_up = Vec::new();
        let mut state = self.shared.state();
        for claim in claims {
            if state.of(claim).is_some_and(|partition| partition.is_revoking) {
                let named = TopicPartition { topic: claim.topic.clone(), partition: claim.partition };
                state.remove(&named);
                given_up.push(named);
            }
        }
        drop(state);
        if !given_up.is_empty() {
            self.tell(Input::GivenUp(given_up));
        }
    }

    fn heed(&mut self, report: Report) {
        match report {
            Report::StaleMetadata => self.metadata.soon(Instant::now()),
            Report::OutOfRange { claim, start, offset } => self.ask_for_range(claim, start, offset, None),
            Report::Diverged { claim, start, offset, divergence } => {
                self.ask_for_range(claim, start, offset, Some(divergence));
            }
            Report::Trouble(text) => self.trouble(text),
        }
    }

    fn trouble(&mut self, text: String) {
        if self.troubles.is_news(&text, Instant::now()) {
            self.say(Event::Trouble(text));
        }
    }

    fn say(&self, event: Event) {
        if !self.is_leaving {
            let _ = self.events.send(event);
        }
    }

    /// Hands an input to the group's state machine, and does what the machine wants.
    fn tell(&mut self, input: Input) {
        let mut inputs = VecDeque::from([input]);
        while let Some(input) = inputs.pop_front() {
            let now_ms = self.begun.elapsed().as_millis() as u64;
            for action in self.group.handle(now_ms, input) {
                inputs.extend(self.act(action));
            }
        }
    }

    fn act(&mut self, action: Action) -> Option<Input> {
        match action {
            Action::Do(call, Task::Plan { assignor, members }) => {
                self.plan(call, assignor, members);
            }
            Action::Do(call, task) => self.ask_coordinator(call, task),
            Action::FindCoordinator => self.shared.state().coordinator = None,
            Action::Generation(generation) => self.shared.state().generation = generation,
            Action::Assign(partitions) => self.assigned(partitions),
            Action::Revoke(partitions) => return self.revoke(partitions),
            Action::Lose(partitions) => self.lose(&partitions),
            Action::Trouble(text) => self.trouble(text),
            Action::End(error) => self.say(Event::Ended(error)),
        }
        None
    }

    fn assigned(&mut self, partitions: Vec<TopicPartition>) {
        let mut epochs = Vec::with_capacity(partitions.len());
        for partition in partitions {
            self.last_epoch += 1;
            self.unannounced.insert(partition.clone(), self.last_epoch);
            epochs.push((partition, self.last_epoch));
        }
        self.ask_for_committed(epochs, Duration::ZERO);
    }

    /// Revokes partitions. Those that weren't announced are given up at once, since nobody uses them yet.
    fn revoke(&mut self, partitions: Vec<TopicPartition>) -> Option<Input> {
        let (mut claims, mut unknown) = (Vec::new(), Vec::new());
        let mut state = self.shared.state();
        for partition in partitions {
            self.unannounced.remove(&partition);
            match state.revoke(&partition) {
                Some(claim) => claims.push(claim),
                None => unknown.push(partition),
            }
        }
        drop(state);
        if !claims.is_empty() {
            self.say(Event::Revoking(claims));
        }
        (!unknown.is_empty()).then_some(Input::GivenUp(unknown))
    }

    fn lose(&mut self, partitions: &[TopicPartition]) {
        let mut state = self.shared.state();
        for partition in partitions {
            self.unannounced.remove(partition);
        }
        let claims: Vec<Claim> = partitions.iter().filter_map(|partition| state.remove(partition)).collect();
        drop(state);
        if !claims.is_empty() {
            self.say(Event::Lost(claims));
        }
    }

    fn finish(&mut self, done: Done) {
        let now = Instant::now();
        match done {
            Done::Group(input) => self.tell(input),
            Done::Planned { call, asked, members, assignor, metadata } => {
                self.planned(call, asked, members, assignor, metadata);
            }
            Done::Metadata { asked, metadata } => {
                self.metadata.done(now, metadata.is_ok());
                match metadata {
                    Ok(metadata) => self.learn(asked.as_deref(), &metadata),
                    Err(error) => self.trouble(error.to_string()),
                }
            }
            Done::Committed { epochs, found } => match found {
                Ok((committed, metadata)) => self.announce(&epochs, committed, &metadata),
                Err(error) => {
                    self.trouble(error.to_string());
                    let delay = self.metadata.backoff.next_delay();
                    self.ask_for_committed(epochs, delay);
                }
            },
            Done::Range { claim, start, offset, divergence, found } => {
                self.out_of_range(claim, start, offset, divergence, found);
            }
            Done::Watermarks(found) => {
                self.watermarks.done(now, true);
                self.note_watermarks(found, now);
            }
        }
    }

    fn learn(&mut self, asked: Option<&[Arc<str>]>, metadata: &MetadataResponse) {
        self.topics.learn(asked, metadata, Instant::now());
        for name in self.topics.missing() {
            let reason = metadata.topics.iter().find(|topic| topic.name == name).map(|topic| topic.error);
            let reason = reason.filter(KafkaErrorCode::is_error).map_or(String::new(), |code| format!(": {code}"));
            self.trouble(format!("Kafka: there is no topic '{name}' to read{reason}."));
        }
        self.forget_former_topics();
        self.tell(Input::Topics(self.topics.names()));
        let changed = self.shared_out.as_ref().is_some_and(|counts| {
            let names: BTreeSet<Arc<str>> = counts.keys().cloned().chain(self.topics.names()).collect();
            self.topics.counts(names) != *counts
        });
        if changed {
            // Until it is shared out anew, this is known.
            self.shared_out = None;
            self.tell(Input::PartitionsChanged);
        }
        self.follow_leaders();
    }

    /// Drops partitions of a topic that was deleted: their records are gone, and nothing can be committed for
    /// them. The partitions are still assigned to us. They are announced anew when there is such a topic
    /// again, unless the group takes them from us before.
    fn forget_former_topics(&mut self) {
        let (mut claims, mut assigned, mut revoking) = (Vec::new(), Vec::new(), Vec::new());
        let mut state = self.shared.state();
        for (named, partition) in &state.partitions {
            let is_there = self.topics.topic(&named.topic).is_some_and(|topic| !topic.id.is_other(partition.topic_id));
            match partition.is_revoking {
                _ if is_there => {}
                true => revoking.push(named.clone()),
                false => assigned.push(named.clone()),
            }
        }
        claims.extend(assigned.iter().chain(&revoking).filter_map(|named| state.remove(named)));
        drop(state);
        if claims.is_empty() {
            return;
        }
        self.say(Event::Lost(claims));
        self.assigned(assigned);
        self.tell(Input::GivenUp(revoking));
    }

    /// Sends each partition's requests to its present leader.
    fn follow_leaders(&mut self) {
        let mut state = self.shared.state();
        let mut brokers = BTreeSet::new();
        let mut is_one_missing = false;
        for (named, partition) in &mut state.partitions {
            let leader = self.topics.leader(named);
            is_one_missing |= leader.is_none();
            if partition.leader != leader {
                partition.leader = leader;
                partition.not_before = None;
            }
            brokers.extend(leader.map(|leader| leader.node_id));
        }
        self.fetchers.retain(|node_id, tasks| {
            let leads = brokers.contains(node_id);
            if !leads {
                tasks.iter().for_each(AbortHandle::abort);
            }
            leads
        });
        state.brokers.retain(|node_id, _| brokers.contains(node_id));
        let new: Vec<i32> = brokers.into_iter().filter(|node_id| !self.fetchers.contains_key(node_id)).collect();
        for node_id in &new {
            state.brokers.insert(*node_id, None);
        }
        drop(state);
        for node_id in new {
            self.start_fetching(node_id);
        }
        self.shared.changed.notify_waiters();
        if is_one_missing {
            self.metadata.soon(Instant::now());
        }
    }

    fn start_fetching(&mut self, node_id: i32) {
        let tasks = [Turn::First, Turn::Second].map(|turn| {
            let fetcher = Fetcher {
                node_id,
                turn,
                client: self.client.clone(),
                shared: self.shared.clone(),
                isolation: self.options.isolation,
                records: self.records.clone(),
                reports: self.report.clone(),
            };
            self.fetching.spawn(fetcher.run())
        });
        self.fetchers.insert(node_id, tasks);
    }

    fn announce(
        &mut self,
        epochs: &[(TopicPartition, u64)],
        committed: Vec<CommittedOffset>,
        metadata: &MetadataResponse,
    ) {
        let asked: Vec<Arc<str>> = metadata.topics.iter().map(|topic| topic.name.clone()).collect();
        self.topics.learn(Some(&asked), metadata, Instant::now());
        let (mut announced, mut later) = (Vec::new(), Vec::new());
        let mut state = self.shared.state();
        for ((partition, epoch), found) in epochs.iter().zip(committed) {
            // It may have been revoked or lost meanwhile, and even have come back.
            if self.unannounced.get(partition) != Some(epoch) {
                continue;
            }
            let Some(topic_id) = self.topics.topic(&partition.topic).map(|topic| topic.id) else {
                later.push((partition.clone(), *epoch));
                continue;
            };
            self.unannounced.remove(partition);
            let leader = self.topics.leader(partition);
            let claim = state.add(partition.clone(), *epoch, topic_id, leader);
            announced.push(Assigned { claim, topic_id, committed: found.committed });
        }
        drop(state);
        if !announced.is_empty() {
            self.say(Event::Assigned(announced));
            self.follow_leaders();
        }
        self.ask_for_committed(later, ANNOUNCE_AGAIN);
    }

    fn planned(
        &mut self,
        call: Call,
        asked: Vec<Arc<str>>,
        members: Vec<Member>,
        assignor: Assignor,
        metadata: Result<MetadataResponse, Error>,
    ) {
        let plan = metadata.map(|metadata| {
            self.topics.learn(Some(&asked), &metadata, Instant::now());
            let counts = self.topics.counts(asked);
            let plan = assignor.assign(&members, &counts);
            self.shared_out = Some(counts);
            plan.into_iter().collect()
        });
        self.tell(Input::Planned(call, plan));
    }

    fn out_of_range(
        &mut self,
        claim: Claim,
        start: u64,
        offset: i64,
        divergence: Option<Divergence>,
        found: Result<work::Ends, Error>,
    ) {
        // Perhaps it is the offset of another topic, which had this name before.
        if let Ok(ends) = &found {
            self.topics.learn(Some(std::slice::from_ref(&claim.topic)), &ends.metadata, Instant::now());
            self.forget_former_topics();
        }
        match found {
            _ if !self.shared.is_started_as(&claim, start) => {}
            Ok(work::Ends { earliest, latest, .. }) => match divergence {
                Some(Divergence { offset: diverged, leader_epoch }) => {
                    self.say(Event::Truncated { claim, start, offset, diverged, leader_epoch });
                }
                None if (earliest..=latest).contains(&offset) => self.go_on(&claim, start, offset),
                None => self.say(Event::OutOfRange { claim, start, offset, earliest, latest }),
            },
            Err(error) => {
                self.trouble(error.to_string());
                self.go_on(&claim, start, offset);
            }
        }
    }

    /// Goes on at an offset that was reported as out of range, because the error has passed or its cause
    /// isn't known yet.
    fn go_on(&self, claim: &Claim, start: u64, offset: i64) {
        self.shared.go_on(claim, start, offset, self.metadata.backoff.max_delay());
    }

    fn note_watermarks(&mut self, found: Vec<(TopicPartition, ListedOffset, Option<i64>)>, now: Instant) {
        let mut state = self.shared.state();
        for (named, latest, earliest) in found {
            let Some(partition) = state.partitions.get_mut(&named) else { continue };
            partition.watermarks_at = Some(now);
            if latest.error.is_error() || latest.offset < 0 {
                continue;
            }
            let end = latest.offset;
            let watermarks = partition.watermarks.get_or_insert(Watermarks { low: 0, high: end, last_stable: end });
            watermarks.last_stable = watermarks.last_stable.max(end);
            watermarks.high = watermarks.high.max(end);
            watermarks.low = earliest.unwrap_or(watermarks.low);
        }
    }

    /// Asks for the ends of partitions that are not fetched at present, since these ends move on all the same.
    fn ask_for_watermarks(&mut self, now: Instant) {
        let state = self.shared.state();
        let is_old = |at: Option<Instant>| at.is_none_or(|at| now.duration_since(at) >= WATERMARKS_EVERY);
        let old = state.partitions.iter().filter(|(_, each)| each.asked_in.is_none() && is_old(each.watermarks_at));
        let old: Vec<(TopicPartition, bool)> =
            old.map(|(named, partition)| (named.clone(), partition.watermarks.is_none())).collect();
        drop(state);
        if old.is_empty() || self.is_leaving {
            return self.watermarks.done(now, true);
        }
        self.watermarks.begin();
        self.work.spawn(work::watermarks(self.client.clone(), old));
    }

    fn ask_for_metadata(&mut self) {
        self.metadata.begin();
        let besides: Vec<Arc<str>> = self.shared_out.iter().flat_map(|counts| counts.keys().cloned()).collect();
        let asked = self.topics.to_ask(besides);
        self.work.spawn(work::metadata(self.client.clone(), asked));
    }

    fn ask_for_committed(&mut self, epochs: Vec<(TopicPartition, u64)>, after: Duration) {
        let epochs: Vec<(TopicPartition, u64)> =
            epochs.into_iter().filter(|(partition, epoch)| self.unannounced.get(partition) == Some(epoch)).collect();
        if !epochs.is_empty() {
            self.work.spawn(work::committed(self.client.clone(), self.options.group.clone(), epochs, after));
        }
    }

    fn ask_for_range(&mut self, claim: Claim, start: u64, offset: i64, divergence: Option<Divergence>) {
        self.work.spawn(work::range(self.client.clone(), claim, start, offset, divergence));
    }

    fn plan(&mut self, call: Call, assignor: Assignor, members: Vec<Member>) {
        self.work.spawn(work::plan(self.client.clone(), call, assignor, members));
    }

    fn ask_coordinator(&mut self, call: Call, task: Task) {
        let session_timeout = Duration::from_millis(self.options.session_timeout_ms.max(1));
        let (client, shared) = (self.client.clone(), self.shared.clone());
        self.work.spawn(work::ask_coordinator(client, shared, self.options.group.clone(), session_timeout, call, task));
    }
}
