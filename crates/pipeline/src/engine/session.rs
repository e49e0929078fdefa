//! The task of a session: see the folder's text.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;
use windrow_kafka::consumer::{Claim, Consumer, Event, Fetched, Joined, Records};
use windrow_kafka::TopicPartition;
use windrow_policy::{DeadlinePolicy, Lane, Micros, SealReason, Verdict};
use windrow_sink::{BatchId, Sink};

use crate::accounts::{Accounts, Phase, Recut, Step, Undone};
use crate::engine::backoff::Backoff;
use crate::engine::chunk::{Chunk, RangeRows, Reading};
use crate::engine::commit::{commit, CommitEnd};
use crate::engine::partition::{Job, Partition};
use crate::engine::push::{Due, PushEnd, Pusher, StoredBatch, Trouble};
use crate::engine::read::{read, ReadTrouble};
use crate::engine::setup::{read_table, tell_guarantee, Pipeline};
use crate::engine::sizes::Sizes;
use crate::engine::start::{fetch_from, look_up, Beginner, Beginning, Given};
use crate::latency::{wall_ms, MissedReason};
use crate::metrics::ErrorKind;
use crate::record::{token, BatchRecord};
use crate::status::State;

pub(crate) struct Session<S: Sink> {
    pipeline: Pipeline<S>,
    pusher: Pusher<S>,
    consumer: Consumer,
    events: mpsc::UnboundedReceiver<Event>,
    records: Records,
    /// Nothing before the table has been described: until then partitions are fetched, as far as there is room, and not read.
    reading: Option<Arc<Reading>>,
    sizes: Sizes,
    accounts: Accounts,
    policy: DeadlinePolicy,
    partitions: BTreeMap<TopicPartition, Partition>,
    /// Those that it isn't known of where they go on; nothing is asked while a commit is on its way.
    to_look_up: Vec<Given>,
    /// The open batch.
    open: BTreeMap<TopicPartition, Vec<Chunk>>,
    /// Rows of sealed batches; of those that are not here, the rows have to be fetched again.
    sealed: HashMap<u128, Vec<RangeRows>>,
    /// Of all that was read and is not stored.
    held_bytes: u64,
    /// Of the batch that is being pushed.
    pushed_bytes: u64,
    tasks: JoinSet<Done>,
    readers: usize,
    max_readers: usize,
    is_paused: bool,
    is_describing: bool,
    described_at: Instant,
    failing: Option<Failing>,
    backoff: Backoff,
    /// Why nothing more is gathered.
    ending: Option<SessionEnd>,
    ends_by: Option<Instant>,
    started_at: Instant,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SessionEnd {
    /// As it was told to.
    Stopped,
    /// By a message that can't be stored.
    Refused(String),
    Again,
}

/// The batch whose turn it is could not be stored.
struct Failing {
    until: Instant,
    failures: u32,
}

/// What a task has brought.
enum Done {
    Read {
        claim: Claim,
        job: Job,
        outcome: Result<Chunk, ReadTrouble>,
    },
    LookedUp(Vec<(Given, Beginning)>),
    /// It can be tried again.
    ReadAgain(Claim),
    Fetching,
    Committed(CommitEnd),
    Pushed(PushEnd),
    Described(Result<Reading, (ErrorKind, String)>),
}

/// How often is looked at what nobody tells of.
const TICK: Duration = Duration::from_millis(500);
/// How often the table is asked whether it has changed.
const DESCRIBE_EVERY: Duration = Duration::from_secs(20);
/// While it isn't known.
const DESCRIBE_AGAIN_AFTER: Duration = Duration::from_secs(1);
/// After a message or a fetch that can't be read for now.
const READ_AGAIN_AFTER: Duration = Duration::from_millis(500);
/// How long what is gathered may take to be stored when the pipeline stops.
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
            to_look_up: Vec::new(),
            open: BTreeMap::new(),
            sealed: HashMap::new(),
            held_bytes: 0,
            pushed_bytes: 0,
            tasks: JoinSet::new(),
            readers: 0,
            max_readers: std::thread::available_parallelism().map_or(2, usize::from),
            is_paused: false,
            is_describing: false,
            described_at: now,
            failing: None,
            backoff: Backoff::default(),
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
        let partitions: Vec<TopicPartition> = self.partitions.keys().cloned().collect();
        partitions.iter().for_each(|partition| self.pipeline.view.gone(partition));
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

    /// Nothing more is gathered; what is, is stored.
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

    /// Does whatever can be done now; returns when to look again if nothing else happens.
    fn advance(&mut self) -> Instant {
        let mut wake = Instant::now() + Duration::from_secs(3600);
        self.give_up();
        self.start_lookup();
        self.set_pause();
        self.start_reads();
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

    fn give_up(&mut self) {
        let free = self.accounts.given_up();
        if free.is_empty() {
            return;
        }
        let claims: Vec<Claim> =
            free.iter().filter_map(|partition| self.partitions.get(partition)).map(|own| own.claim.clone()).collect();
        free.iter().for_each(|partition| self.forget_partition(partition));
        self.consumer.given_up(&claims);
    }

    fn forget_partition(&mut self, partition: &TopicPartition) {
        self.partitions.remove(partition);
        self.to_look_up.retain(|given| given.partition() != *partition);
        self.pipeline.view.gone(partition);
    }

    fn start_lookup(&mut self) {
        if self.to_look_up.is_empty() || self.accounts.is_committing() || self.ending.is_some() {
            return;
        }
        let given = std::mem::take(&mut self.to_look_up);
        let (client, options) = (self.pusher.client.clone(), &self.pipeline.options);
        let beginner = Beginner { start: options.start, existing: self.pipeline.existing.clone() };
        let looking = look_up(client, options.group.clone(), beginner, given, self.pipeline.view.clone());
        self.tasks.spawn(async move { Done::LookedUp(looking.await) });
    }

    /// Over the bound nothing is read or fetched until half of it is free.
    fn set_pause(&mut self) {
        let is_paused = match self.is_paused {
            true => self.held_bytes > self.sizes.held_bytes / 2,
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

    fn start_reads(&mut self) {
        let Some(reading) = self.reading.as_ref().filter(|_| !self.is_paused && self.ending.is_none()) else { return };
        for (partition, own) in &mut self.partitions {
            if self.readers >= self.max_readers {
                return;
            }
            if !own.is_ready() {
                continue;
            }
            let Some(next_offset) = self.accounts.gathered(partition) else {
                own.clear();
                continue;
            };
            let Some(job) = own.next_job(next_offset) else { continue };
            self.readers += 1;
            let (readers, reading) = (self.pipeline.readers.clone(), reading.clone());
            let (claim, fetch) = (own.claim.clone(), job.fetch.clone());
            self.tasks.spawn_blocking(move || {
                let outcome = read(&readers, &reading, fetch, &[]);
                Done::Read { claim, job, outcome }
            });
        }
    }

    /// Seals the open batch if it is time. When to ask again, if it isn't.
    fn seal_if_due(&mut self) -> Option<Instant> {
        if !self.accounts.has_open() {
            return None;
        }
        let is_free = self.accounts.is_idle() && self.accounts.waiting() == 0 && self.failing.is_none();
        let now = self.now();
        let verdict = match self.ending {
            Some(_) => Verdict::Seal(SealReason::Shutdown),
            None => self.policy.decide(now, if is_free { Lane::Free } else { Lane::Busy }),
        };
        match verdict {
            // One may wait behind the one that is on its way.
            Verdict::Seal(_) if self.accounts.waiting() == 0 => {
                self.seal(now);
                None
            }
            Verdict::Seal(_) | Verdict::HoldForFlush => None,
            Verdict::HoldUntil(at) => self.started_at.checked_add(Duration::from_micros(at.0)),
        }
    }

    fn seal(&mut self, now: Micros) {
        let Some(record) = self.accounts.seal(random_id()) else { return };
        let ranges = record.ranges.iter().map(|range| {
            let chunks = self.open.remove(&range.partition()).unwrap_or_default();
            RangeRows { range: range.clone(), chunks }
        });
        let ranges = ranges.collect();
        self.sealed.insert(record.id.0, ranges);
        self.policy.sealed(now);
        // What its record had no room for.
        for chunk in self.open.values().flatten() {
            tell(&mut self.policy, now, chunk);
        }
    }

    fn start_step(&mut self) {
        match self.accounts.next_step(self.reading.is_some()) {
            None => {}
            Some(Step::Commit(entries)) => {
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
        if is_replay && self.failing.is_none() {
            self.pipeline.view.metrics.replays.inc();
            tracing::info!(
                pipeline = self.pipeline.view.name(), batch = %record.id, token = token(&record.ranges),
                "a recorded batch is stored again under its id"
            );
        }
        let failures = self.failing.take().map_or(0, |failing| failing.failures);
        self.pipeline.view.set_token(&token(&record.ranges));
        let due = Due { sent_before: is_replay || rows.is_none(), record, rows, failures };
        let pusher = self.pusher.clone();
        self.tasks.spawn(async move { Done::Pushed(pusher.push(reading, due).await) });
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
            Done::ReadAgain(claim) => {
                if let Some(own) = self.partitions.values_mut().find(|own| own.claim == claim) {
                    own.was_read();
                }
            }
            Done::Fetching => {}
            Done::Committed(CommitEnd::Committed) => {
                self.accounts.commit_succeeded();
                self.show_partitions();
            }
            Done::Committed(CommitEnd::Fenced) => {
                let undone = self.accounts.commit_fenced();
                self.undo(undone);
            }
            Done::Pushed(PushEnd::Stored(batch)) => self.stored(batch),
            Done::Pushed(PushEnd::Again(trouble)) => self.push_failed(trouble),
            Done::Pushed(PushEnd::Stop(text)) => {
                // It stays recorded, and is the first thing that the next start sees.
                self.ending = Some(SessionEnd::Refused(text));
                self.ends_by = Some(Instant::now());
            }
            Done::Described(outcome) => self.described(outcome),
        }
    }

    fn was_read(&mut self, claim: Claim, mut job: Job, outcome: Result<Chunk, ReadTrouble>) {
        self.readers -= 1;
        let partition = TopicPartition { topic: claim.topic.clone(), partition: claim.partition };
        let Some(own) = self.partitions.get_mut(&partition).filter(|own| own.claim == claim) else { return };
        own.was_read();
        let gathered = self.accounts.gathered(&partition);
        if gathered != Some(job.fetch.first_offset) || self.ending.is_some() {
            return;
        }
        match outcome {
            Ok(chunk) => {
                if chunk.next_offset < job.fetch.next_offset && chunk.stopped_by.is_none() {
                    job.fetch.first_offset = chunk.next_offset;
                    own.put_back(job);
                    own.was_read();
                }
                self.gather(partition, chunk);
            }
            Err(trouble @ ReadTrouble::Fetched(_)) => {
                self.pipeline.view.kafka_trouble(&trouble.into_text());
                self.fetch_after(READ_AGAIN_AFTER, claim, job.fetch.first_offset);
            }
            Err(trouble) => {
                let kind = trouble.kind();
                self.pipeline.view.trouble(kind, &trouble.into_text());
                own.put_back(job);
                self.tasks.spawn(async move {
                    tokio::time::sleep(READ_AGAIN_AFTER).await;
                    Done::ReadAgain(claim)
                });
            }
        }
    }

    fn gather(&mut self, partition: TopicPartition, mut chunk: Chunk) {
        if !self.accounts.gather(&partition, chunk.next_offset) {
            return;
        }
        self.held_bytes += chunk.held_bytes;
        if chunk.timing.messages > 0 {
            if let Some(own) = self.partitions.get_mut(&partition) {
                own.gathered(chunk.next_offset, chunk.timing.oldest_ms);
            }
        }
        let now = self.now();
        tell(&mut self.policy, now, &chunk);
        let stopped_by = chunk.stopped_by.take();
        self.open.entry(partition.clone()).or_default().push(chunk);
        if let Some(bad) = stopped_by {
            self.end(SessionEnd::Refused(format!("{partition}:{}: {}", bad.offset, bad.error)));
        }
    }

    fn fetch_after(&mut self, pause: Duration, claim: Claim, offset: i64) {
        let (consumer, view) = (self.consumer.clone(), self.pipeline.view.clone());
        self.tasks.spawn(async move {
            tokio::time::sleep(pause).await;
            fetch_from(consumer, claim, offset, view).await;
            Done::Fetching
        });
    }

    fn looked_up(&mut self, beginnings: Vec<(Given, Beginning)>) {
        for (given, beginning) in beginnings {
            let partition = given.partition();
            let is_ours = self.partitions.get(&partition).is_some_and(|own| own.claim == given.claim);
            if !is_ours || self.accounts.phase(&partition) != Some(Phase::Starting) {
                continue;
            }
            match beginning {
                Beginning::At(offset) => self.begin(&partition, given.claim, offset, true),
                Beginning::New(offset) => self.begin(&partition, given.claim, offset, false),
                Beginning::Replay(record) => self.accounts.replay(record, std::slice::from_ref(&partition)),
            }
        }
        self.show_partitions();
    }

    fn begin(&mut self, partition: &TopicPartition, claim: Claim, offset: i64, is_committed: bool) {
        self.accounts.begin(partition, offset, is_committed);
        self.fetch_after(Duration::ZERO, claim, offset);
    }

    fn stored(&mut self, batch: StoredBatch) {
        self.backoff.reset();
        let pushed_bytes = std::mem::take(&mut self.pushed_bytes);
        self.release(pushed_bytes);
        let took = Duration::from_millis(batch.stored_ms.saturating_sub(batch.pushed_ms).max(0) as u64);
        let now = self.now();
        self.policy.flush_ended(now, batch.rows, Micros(took.as_micros() as u64));
        if batch.rows > 0 {
            self.pipeline.view.metrics.batch_rows.observe(batch.rows as f64);
        }
        self.count(&batch);
        for (partition, offset) in self.accounts.push_succeeded() {
            if let Some(own) = self.partitions.get(&partition) {
                let claim = own.claim.clone();
                self.fetch_after(Duration::ZERO, claim, offset);
            }
        }
        self.show_partitions();
    }

    /// What of a batch concerns partitions that are ours.
    fn count(&mut self, batch: &StoredBatch) {
        let max_latency_ms = i64::try_from(self.sizes.max_latency.as_millis()).unwrap_or(i64::MAX);
        for range in &batch.ranges {
            let partition = range.range.partition();
            if let Some(own) = self.partitions.get_mut(&partition) {
                own.stored(range.range.next_offset());
            }
            self.pipeline.view.update(&partition, |shown| {
                let m = &shown.metrics;
                let messages: u64 = range.timings.iter().map(|timing| timing.messages).sum();
                m.messages.inc_by(messages);
                m.rows.inc_by(range.rows);
                m.bytes.inc_by(range.bytes);
                m.tombstones.inc_by(range.tombstones);
                m.batches.inc();
                shown.last_token = range.range.to_string();
                for timing in range.timings.iter().filter(|timing| timing.messages > 0) {
                    shown.ended(timing, timing.took(batch.pushed_ms, batch.stored_ms), batch.stored_ms);
                }
            });
            for timing in &range.timings {
                let late = timing.missed(batch.stored_ms, max_latency_ms);
                if late > 0 {
                    let reason = timing.reason(batch.pushed_ms, batch.stored_ms, batch.had_too_many_parts);
                    let took = timing.took(batch.pushed_ms, batch.stored_ms);
                    self.pipeline.view.missed(&partition, reason, late, took);
                }
            }
        }
    }

    fn push_failed(&mut self, trouble: Trouble) {
        let pushed_bytes = std::mem::take(&mut self.pushed_bytes);
        self.release(pushed_bytes);
        self.accounts.push_failed();
        self.pipeline.view.trouble(trouble.kind, &trouble.text);
        let failures = self.failing.as_ref().map_or(0, |failing| failing.failures);
        self.failing = Some(Failing { until: Instant::now() + self.backoff.next(), failures: failures + 1 });
        // The table may be another one than it was taken for.
        self.describe();
        self.show_partitions();
    }

    fn release(&mut self, bytes: u64) {
        self.held_bytes = self.held_bytes.saturating_sub(bytes);
    }

    fn event(&mut self, event: Option<Event>) {
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
            Some(Event::OutOfRange { claim, offset, earliest, latest }) => {
                self.out_of_range(claim, offset, earliest, latest);
            }
            Some(Event::Trouble(text)) => self.pipeline.view.kafka_trouble(&text),
            Some(Event::Ended(error)) => {
                self.pipeline.view.kafka_trouble(&error.to_string());
                self.ending.get_or_insert(SessionEnd::Again);
            }
            None => drop(self.ending.get_or_insert(SessionEnd::Again)),
        }
        self.show_partitions();
    }

    fn assigned(&mut self, given: Given) {
        let partition = given.partition();
        if self.partitions.contains_key(&partition) {
            let recut = self.accounts.lose(std::slice::from_ref(&partition));
            self.drop_rows(std::slice::from_ref(&partition), recut);
        }
        self.accounts.assign(partition.clone(), given.claim.epoch, given.topic_id);
        self.partitions.insert(partition.clone(), Partition::new(given.claim.clone(), given.topic_id));
        self.pipeline.view.assigned(&partition);
        if self.is_paused {
            self.consumer.pause(&given.claim);
        }
        self.to_look_up.push(given);
    }

    fn ours(&self, claims: &[Claim]) -> Vec<TopicPartition> {
        let is_ours = |own: &&Partition| claims.contains(&own.claim);
        self.partitions.values().filter(is_ours).map(Partition::partition).collect()
    }

    /// What was gathered of partitions that are no longer ours to gather from, and what is cut out of sealed batches.
    fn drop_rows(&mut self, partitions: &[TopicPartition], recut: Vec<Recut>) {
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

    fn undo(&mut self, undone: Undone) {
        let Undone { recut, to_start } = undone;
        self.drop_rows(&to_start, recut);
        for partition in to_start {
            if let Some(own) = self.partitions.get(&partition) {
                self.to_look_up.push(Given { claim: own.claim.clone(), topic_id: own.topic_id });
            }
        }
    }

    /// The messages to go on with are not there.
    fn out_of_range(&mut self, claim: Claim, offset: i64, earliest: i64, latest: i64) {
        let partition = TopicPartition { topic: claim.topic.clone(), partition: claim.partition };
        let is_ours = self.partitions.get(&partition).is_some_and(|own| own.claim == claim);
        if !is_ours {
            return;
        }
        if offset < earliest {
            let text = format!(
                "{partition}: the messages from offset {offset} on had expired before they were read; reading goes on at {earliest}"
            );
            self.pipeline.view.kafka_trouble(&text);
            if self.accounts.gather(&partition, earliest) {
                self.fetch_after(Duration::ZERO, claim, earliest);
            }
        } else {
            let text =
                format!("{partition}: the log ends at {latest}, before offset {offset}; reading goes on at its end");
            self.pipeline.view.kafka_trouble(&text);
            self.drop_rows(std::slice::from_ref(&partition), Vec::new());
            self.begin(&partition, claim, latest, false);
        }
    }

    fn fetched(&mut self, fetched: Fetched) {
        let partition = TopicPartition { topic: fetched.claim.topic.clone(), partition: fetched.claim.partition };
        let is_ours = |own: &&mut Partition| own.claim == fetched.claim;
        if let Some(own) = self.partitions.get_mut(&partition).filter(is_ours) {
            own.queue(fetched);
        }
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

    fn show_partitions(&mut self) {
        let has_partitions = !self.partitions.is_empty();
        let view = &self.pipeline.view;
        view.metrics.held.set(self.held_bytes as i64);
        let is_failing = self.failing.is_some() || self.reading.is_none() && !self.is_describing;
        view.set_state(match (is_failing, has_partitions) {
            (true, _) => State::Failed,
            (false, true) => State::Running,
            (false, false) => State::Waiting,
        });
        for (partition, own) in &mut self.partitions {
            let phase = self.accounts.phase(partition);
            let stored_offset = self.accounts.stored(partition);
            let watermarks = self.consumer.watermarks(&own.claim);
            let end = watermarks.map(|watermarks| watermarks.last_stable.min(watermarks.high));
            let lag = end.zip(stored_offset).map_or(0, |(end, stored)| (end - stored).max(0));
            let oldest_ms = own.oldest_ms(lag);
            view.update(partition, |shown| {
                shown.state = match phase {
                    Some(Phase::Replaying) => State::Replaying,
                    Some(Phase::Running) if self.is_paused => State::Paused,
                    Some(Phase::Running | Phase::Revoked) => State::Running,
                    Some(Phase::Starting) | None => State::Waiting,
                };
                shown.committed_offset = self.accounts.committed(partition);
                shown.stored_offset = stored_offset;
                shown.high_watermark = watermarks.map(|watermarks| watermarks.high);
                shown.metrics.lag.set(lag);
                shown.metrics.oldest.set(oldest_ms);
                shown.metrics.paused.set(i64::from(self.is_paused));
            });
        }
    }

    /// Also of messages that are not stored yet.
    fn complain_of_latency(&mut self) {
        let max_latency_ms = i64::try_from(self.sizes.max_latency.as_millis()).unwrap_or(i64::MAX);
        let now_ms = wall_ms();
        for (partition, own) in &mut self.partitions {
            let Some(oldest_ms) = own.oldest_ms(0) else { continue };
            let age_ms = now_ms.saturating_sub(oldest_ms);
            // A batch that is on its way in time is not worth a word when it comes a moment late.
            if age_ms > max_latency_ms.saturating_mul(2) && self.pushed_bytes > 0 {
                self.pipeline.view.is_missing(partition, MissedReason::SinkSlow, age_ms as f64 / 1e3);
            }
        }
    }
}

fn tell(policy: &mut DeadlinePolicy, now: Micros, chunk: &Chunk) {
    let age_ms = wall_ms().saturating_sub(chunk.timing.oldest_ms).max(0) as u64;
    policy.gather(now, chunk.row_count, chunk.held_bytes, Micros::from_millis(age_ms));
}

fn is_of(partition: &TopicPartition, claim: &Claim) -> bool {
    partition.topic == claim.topic && partition.partition == claim.partition
}

/// A random version 4 UUID.
fn random_id() -> BatchId {
    let mut bytes = [0u8; 16];
    if getrandom::fill(&mut bytes).is_err() {
        // Without the system's randomness uniqueness is what counts, and this generator was seeded per thread.
        bytes = fastrand::u128(..).to_le_bytes();
    }
    BatchId(u128::from_le_bytes(bytes) & !(0xf << 76) & !(0x3 << 62) | (4 << 76) | (2 << 62))
}
