//! The task of a session, which the text of `engine` describes.

mod events;
mod gathering;
mod show;
mod truncated;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use crate::consumer::{Claim, Consumer, Event, Joined, Records};
use crate::TopicPartition;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;
use windrow_engine::{
    policy::{DeadlinePolicy, Micros},
    sink::{BatchId, Sink},
};

use self::truncated::Truncation;
use crate::pipeline::accounts::{Accounts, Phase, Step};
use crate::pipeline::engine::chunk::{Chunk, RangeRows, Reading};
use crate::pipeline::engine::commit::{commit, CommitEnd};
use crate::pipeline::engine::endless_retries;
use crate::pipeline::engine::partition::{Job, Partition};
use crate::pipeline::engine::push::{Due, PushEnd, Pusher, StoredBatch, Trouble};
use crate::pipeline::engine::read::ReadTrouble;
use crate::pipeline::engine::setup::{read_table, tell_guarantee, Pipeline};
use crate::pipeline::engine::sizes::Sizes;
use crate::pipeline::engine::start::{look_up, Given, StartPoint, StartSettings};
use crate::pipeline::metrics::ErrorKind;
use crate::pipeline::record::{token, BatchRecord};
use crate::Backoff;

pub(crate) struct Session<S: Sink> {
    pipeline: Pipeline<S>,
    pusher: Pusher<S>,
    consumer: Consumer,
    events: mpsc::UnboundedReceiver<Event>,
    records: Records,
    /// The plan for the table, or `None` before the table has been described. Until then partitions are
    /// fetched, as far as there is room, and not read.
    reading: Option<Arc<Reading>>,
    sizes: Sizes,
    accounts: Accounts,
    policy: DeadlinePolicy,
    partitions: BTreeMap<TopicPartition, Partition>,
    /// Partitions whose offset to go on at isn't known. The coordinator is not asked while a commit is on its
    /// way. A partition may be added twice meanwhile: by its claim, and by the commit that failed.
    to_look_up: BTreeSet<TopicPartition>,
    /// Partitions whose log was cut, until they go back to where that was.
    truncated: BTreeMap<TopicPartition, Truncation>,
    /// Chunks of the open batch.
    open: BTreeMap<TopicPartition, Vec<Chunk>>,
    /// Rows of sealed batches. A batch that is not here has to be fetched again.
    sealed: HashMap<u128, Vec<RangeRows>>,
    /// Bytes of all rows that were read and are not stored.
    held_bytes: u64,
    /// Bytes of the batch that is being pushed.
    pushed_bytes: u64,
    /// The part of `held_bytes` that is in the metric, which all consumers of the pipeline share.
    shown_bytes: i64,
    tasks: JoinSet<Done>,
    readers: usize,
    max_readers: usize,
    is_paused: bool,
    is_describing: bool,
    described_at: Instant,
    /// Time when the turn began of the batch that is recorded or pushed now.
    turn_began: Option<Instant>,
    failing: Option<Failing>,
    backoff: Backoff,
    /// The reason why nothing more is gathered.
    ending: Option<SessionEnd>,
    ends_by: Option<Instant>,
    started_at: Instant,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SessionEnd {
    /// The pipeline was told to stop.
    Stopped,
    /// A message can't be stored.
    Refused(String),
    Again,
}

/// A failure to store the batch whose turn it is. It lasts until the batch is stored, or is ours no longer.
struct Failing {
    batch: BatchId,
    /// Time before which no step begins.
    until: Instant,
    failures: u32,
}

/// The result of a task.
enum Done {
    Read {
        claim: Claim,
        job: Job,
        outcome: Result<Chunk, ReadTrouble>,
    },
    LookedUp(Vec<(Given, Option<StartPoint>)>),
    /// Partitions that can be looked up again.
    LookAgain(Vec<TopicPartition>),
    /// The job of this number can be tried again.
    ReadAgain(Claim, u64),
    Committed(CommitEnd),
    Pushed(BatchId, PushEnd),
    Described(Result<Reading, (ErrorKind, String)>),
}

/// Time between two checks of everything that sends no event.
const TICK: Duration = Duration::from_millis(500);
/// Pause after the beginning of a partition could not be found.
const LOOK_AGAIN_AFTER: Duration = Duration::from_secs(1);
/// Time after which the table is asked whether it has changed.
const DESCRIBE_EVERY: Duration = Duration::from_secs(20);
/// Time after which the table is asked again while it isn't known.
const DESCRIBE_AGAIN_AFTER: Duration = Duration::from_secs(1);
/// Time for storing gathered messages when the pipeline stops.
const DRAIN: Duration = Duration::from_secs(10);

impl<S: Sink> Session<S> {
    pub(crate) fn new(pipeline: Pipeline<S>, pusher: Pusher<S>, joined: Joined, sizes: Sizes) -> Session<S> {
        let Joined { consumer, events, records } = joined;
        let now = Instant::now();
        Session {
            pipeline,
            pusher,
            consumer,
            events,
            records,
            reading: None,
            sizes,
            accounts: Accounts::new(true),
            policy: DeadlinePolicy::new(sizes.limits()),
            partitions: BTreeMap::new(),
            to_look_up: BTreeSet::new(),
            truncated: BTreeMap::new(),
            open: BTreeMap::new(),
            sealed: HashMap::new(),
            held_bytes: 0,
            pushed_bytes: 0,
            shown_bytes: 0,
            tasks: JoinSet::new(),
            readers: 0,
            max_readers: std::thread::available_parallelism().map_or(2, usize::from),
            is_paused: false,
            is_describing: false,
            described_at: now,
            turn_began: None,
            failing: None,
            backoff: endless_retries(),
            ending: None,
            ends_by: None,
            started_at: now,
        }
    }

    pub(crate) async fn run(mut self) -> SessionEnd {
        let mut stop = self.pipeline.stop.clone();
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        self.describe();
        while !self.is_over() {
            let wake = self.advance();
            let is_ending = self.ending.is_some();
            tokio::select! {
                Some(done) = self.tasks.join_next() => self.done(done),
                event = self.events.recv() => self.event(event),
                Some(fetched) = self.records.next(), if !is_ending => self.fetched(fetched),
                _ = stop.wait_for(|stop| *stop), if !is_ending => self.end(SessionEnd::Stopped),
                () = tokio::time::sleep_until(wake) => {}
                _ = tick.tick() => self.tick(),
            }
        }
        self.consumer.leave().await;
        self.partitions.iter().for_each(|(partition, own)| self.pipeline.view.gone(partition, own.shown));
        self.held_bytes = 0;
        self.show_held();
        self.pipeline.view.set_progress(None);
        self.ending.unwrap_or(SessionEnd::Again)
    }

    fn is_over(&self) -> bool {
        let is_late = self.ends_by.is_some_and(|ends_by| Instant::now() >= ends_by);
        match &self.ending {
            None => false,
            // Another session begins with what the coordinator has.
            Some(SessionEnd::Again) => true,
            Some(SessionEnd::Stopped | SessionEnd::Refused(_)) => is_late || self.accounts.is_settled(),
        }
    }

    /// Stops gathering. Messages that are gathered are still stored.
    fn end(&mut self, end: SessionEnd) {
        if self.ending.is_none() {
            self.ending = Some(end);
            self.ends_by = Some(Instant::now() + DRAIN);
            self.partitions.values_mut().for_each(Partition::clear);
        }
    }

    fn now(&self) -> Micros {
        Micros(self.started_at.elapsed().as_micros() as u64)
    }

    /// Takes all steps that are possible now. Returns when to look again if nothing else happens.
    fn advance(&mut self) -> Instant {
        let mut wake = Instant::now() + Duration::from_secs(3600);
        self.give_up();
        self.go_back();
        self.start_lookup();
        self.set_pause();
        self.start_reads();
        if self.accounts.is_idle() && self.accounts.waiting() == 0 {
            // It has become somebody else's.
            self.failing = None;
        }
        let is_held_up = self.failing.as_ref().is_some_and(|failing| failing.until > Instant::now());
        if let Some(failing) = self.failing.as_ref().filter(|_| is_held_up) {
            wake = wake.min(failing.until);
        }
        if let Some(at) = self.seal_if_due() {
            wake = wake.min(at);
        }
        if !is_held_up {
            self.start_step();
        }
        self.ends_by.map_or(wake, |ends_by| wake.min(ends_by))
    }

    fn start_lookup(&mut self) {
        if self.to_look_up.is_empty() || self.accounts.is_committing() || self.ending.is_some() {
            return;
        }
        let asked = std::mem::take(&mut self.to_look_up);
        let ours = asked.iter().filter_map(|partition| self.partitions.get(partition));
        let given: Vec<Given> = ours.map(|own| Given { claim: own.claim.clone(), topic_id: own.topic_id }).collect();
        if given.is_empty() {
            return;
        }
        let (client, options) = (self.pusher.client.clone(), &self.pipeline.options);
        let beginner = StartSettings { start: options.start, existing: self.pipeline.existing.clone() };
        let looking = look_up(client, options.group.clone(), beginner, given, self.pipeline.view.clone());
        self.tasks.spawn(async move { Done::LookedUp(looking.await) });
    }

    /// Pauses reading and fetching above the bound, until a quarter of it is free: one batch, on its way, may
    /// take half of it and a little more.
    fn set_pause(&mut self) {
        let is_paused = match self.is_paused {
            true => self.held_bytes > self.sizes.held_bytes / 4 * 3,
            false => self.held_bytes >= self.sizes.held_bytes,
        };
        if is_paused == self.is_paused {
            return;
        }
        self.is_paused = is_paused;
        for own in self.partitions.values() {
            match is_paused {
                true => self.consumer.pause(&own.claim),
                false => self.consumer.resume(&own.claim),
            }
        }
        self.show_partitions();
    }

    fn start_step(&mut self) {
        match self.accounts.next_step(self.reading.is_some()) {
            None => {}
            Some(Step::Commit(entries)) => {
                if entries.iter().any(|entry| entry.record.is_some()) {
                    self.turn_began = Some(Instant::now());
                }
                let committing = commit(self.consumer.clone(), entries, self.pipeline.view.clone());
                self.tasks.spawn(async move { Done::Committed(committing.await) });
            }
            Some(Step::Push { record, is_replay }) => self.push(record, is_replay),
        }
    }

    fn push(&mut self, record: Arc<BatchRecord>, is_replay: bool) {
        let Some(reading) = self.reading.clone() else { return };
        let rows = self.sealed.remove(&record.id.0);
        self.pushed_bytes = rows.iter().flatten().map(RangeRows::held_bytes).sum();
        // If the table has changed since, they are read again: a batch goes to one table, and what of it is refused is
        // looked for as it is now.
        let rows = rows.filter(|ranges| reading.has_read(ranges));
        let failures = self.failures(record.id);
        if is_replay && failures == 0 {
            self.pipeline.view.metrics.replays.inc();
            tracing::info!(
                pipeline = self.pipeline.view.name(), batch = %record.id, token = token(&record.ranges),
                "a recorded batch is stored again under its id"
            );
        }
        self.turn_began.get_or_insert_with(Instant::now);
        self.pipeline.view.set_token(&token(&record.ranges));
        let due = Due { sent_before: is_replay || rows.is_none(), record, rows, failures };
        let (batch, pusher) = (due.record.id, self.pusher.clone());
        self.tasks.spawn(async move { Done::Pushed(batch, pusher.push(reading, due).await) });
    }

    fn done(&mut self, done: Result<Done, tokio::task::JoinError>) {
        let done = match done {
            Ok(done) => done,
            Err(error) => {
                self.pipeline.view.kafka_trouble(&format!("a task has failed, the pipeline begins anew: {error}"));
                self.ending.get_or_insert(SessionEnd::Again);
                return;
            }
        };
        match done {
            Done::Read { claim, job, outcome } => self.was_read(claim, job, outcome),
            Done::LookedUp(beginnings) => self.looked_up(beginnings),
            Done::LookAgain(partitions) => self.to_look_up.extend(partitions),
            Done::ReadAgain(claim, number) => {
                if let Some(own) = self.partitions.values_mut().find(|own| own.claim == claim) {
                    own.was_read(number);
                }
            }
            Done::Committed(CommitEnd::Committed) => {
                self.accounts.commit_succeeded();
                self.show_partitions();
            }
            Done::Committed(CommitEnd::Fenced) => {
                let undone = self.accounts.commit_fenced();
                self.undo(undone);
            }
            Done::Committed(CommitEnd::Refused(text)) => {
                // Partitions that nothing can be committed for are better with another member, or with us in another
                // membership.
                let name = &self.pipeline.options.name;
                tracing::error!(pipeline = %name, "the pipeline leaves its group, and begins anew: {text}");
                self.ending.get_or_insert(SessionEnd::Again);
                self.ends_by = Some(Instant::now());
            }
            Done::Pushed(_, PushEnd::Stored(batch)) => self.stored(batch),
            Done::Pushed(batch, PushEnd::Again(trouble)) => self.push_failed(batch, trouble),
            Done::Pushed(_, PushEnd::Stop(text)) => {
                // It stays recorded, and is the first thing that the next start sees.
                self.ending = Some(SessionEnd::Refused(text));
                self.ends_by = Some(Instant::now());
            }
            Done::Described(outcome) => self.described(outcome),
        }
    }

    fn looked_up(&mut self, beginnings: Vec<(Given, Option<StartPoint>)>) {
        let mut unknown = Vec::new();
        for (given, beginning) in beginnings {
            let partition = given.partition();
            let is_ours = self.partitions.get(&partition).is_some_and(|own| own.claim == given.claim);
            if !is_ours || self.accounts.phase(&partition) != Some(Phase::Starting) {
                continue;
            }
            match beginning {
                Some(StartPoint::At { offset, leader_epoch }) => {
                    self.accounts.begin(&partition, offset, true);
                    self.fetch(&given.claim, offset, leader_epoch);
                }
                Some(StartPoint::New(offset)) => {
                    self.accounts.begin(&partition, offset, false);
                    self.fetch(&given.claim, offset, -1);
                }
                Some(StartPoint::Replay(record)) => self.accounts.replay(record, std::slice::from_ref(&partition)),
                None => unknown.push(partition),
            }
        }
        if !unknown.is_empty() {
            self.tasks.spawn(async move {
                tokio::time::sleep(LOOK_AGAIN_AFTER).await;
                Done::LookAgain(unknown)
            });
        }
        self.show_partitions();
    }

    fn stored(&mut self, batch: StoredBatch) {
        self.backoff.reset();
        self.failing = None;
        let pushed_bytes = std::mem::take(&mut self.pushed_bytes);
        self.release(pushed_bytes);
        let took = self.turn_began.take().map_or(Duration::ZERO, |began| began.elapsed());
        let now = self.now();
        if batch.rows > 0 {
            self.policy.flush_ended(now, batch.rows, Micros(took.as_micros() as u64));
            self.pipeline.view.metrics.batch_rows.observe(batch.rows as f64);
        }
        self.count(&batch);
        if !batch.stopped_by.is_empty() {
            return self.stop_before(&batch);
        }
        for (partition, offset) in self.accounts.push_succeeded() {
            let range = batch.ranges.iter().map(|stored| &stored.range).find(|range| range.partition() == partition);
            if let Some(own) = self.partitions.get(&partition) {
                self.fetch(&own.claim, offset, range.map_or(-1, |range| range.leader_epoch));
            }
        }
        self.show_partitions();
    }

    /// Stores and commits the messages before those that stop the pipeline, and ends the session.
    fn stop_before(&mut self, batch: &StoredBatch) {
        let stops: Vec<(TopicPartition, i64)> =
            batch.stopped_by.iter().map(|(partition, bad)| (partition.clone(), bad.offset)).collect();
        let recut = self.accounts.push_stopped(&stops);
        let partitions: Vec<TopicPartition> = stops.into_iter().map(|(partition, _)| partition).collect();
        self.drop_rows(&partitions, recut);
        let messages: Vec<String> =
            batch.stopped_by.iter().map(|(at, bad)| format!("{at}:{}: {}", bad.offset, bad.error)).collect();
        self.end(SessionEnd::Refused(messages.join("; ")));
    }

    /// Returns how often the batch could not be stored.
    fn failures(&self, batch: BatchId) -> u32 {
        self.failing.as_ref().filter(|failing| failing.batch == batch).map_or(0, |failing| failing.failures)
    }

    fn push_failed(&mut self, batch: BatchId, trouble: Trouble) {
        let pushed_bytes = std::mem::take(&mut self.pushed_bytes);
        self.release(pushed_bytes);
        self.accounts.push_failed();
        self.pipeline.view.trouble(trouble.kind, &trouble.text);
        let failures = self.failures(batch) + 1;
        self.failing = Some(Failing { batch, until: Instant::now() + self.backoff.next_delay(), failures });
        // The table may be another one than it was taken for.
        self.describe();
        self.show_partitions();
    }

    fn release(&mut self, bytes: u64) {
        self.held_bytes = self.held_bytes.saturating_sub(bytes);
    }

    fn describe(&mut self) {
        if self.is_describing || self.ending.is_some() {
            return;
        }
        self.is_describing = true;
        let pipeline = self.pipeline.clone();
        self.tasks.spawn(async move { Done::Described(read_table(&pipeline).await) });
    }

    fn described(&mut self, outcome: Result<Reading, (ErrorKind, String)>) {
        self.is_describing = false;
        self.described_at = Instant::now();
        match outcome {
            Ok(reading) => self.take_reading(reading),
            Err((kind, text)) => self.pipeline.view.trouble(kind, &text),
        }
        self.show_partitions();
    }

    fn take_reading(&mut self, reading: Reading) {
        let options = &self.pipeline.options;
        match &self.reading {
            Some(known) if reading.is_like(known) => return,
            Some(known) => {
                tracing::info!(pipeline = %options.name, "the table has changed");
                if reading.deduplicates(options) != known.deduplicates(options) {
                    self.ending.get_or_insert(SessionEnd::Again);
                }
            }
            None => {
                tell_guarantee(&self.pipeline.view, options, &reading);
                self.accounts.set_records(reading.deduplicates(options));
            }
        }
        let reading = Arc::new(reading);
        self.pipeline.current.set(reading.clone(), self.pusher.client.clone());
        self.reading = Some(reading);
    }

    fn tick(&mut self) {
        let every = if self.reading.is_some() { DESCRIBE_EVERY } else { DESCRIBE_AGAIN_AFTER };
        if self.described_at.elapsed() >= every {
            self.describe();
        }
        self.show_partitions();
        self.complain_of_latency();
    }
}
