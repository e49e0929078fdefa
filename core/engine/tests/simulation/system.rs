//! The simulated ClickHouse: it outlives the gateway's lives, stores each batch at one moment, and recognises
//! a batch that comes again under its id where the table deduplicates.
//!
//! A call takes time before and after that moment. The call may be lost on the way there or back, refused for
//! now or for good, or go on when no gateway listens any more: then its batch is stored later, and a gateway
//! that sends the batch again until then is told that the call still runs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::retry_state::{LONGEST_HOPE, MOST_UNKNOWN};
use crate::signal::Signal;
use crate::sink::{Batch, BatchId, PhysicalTable, Sink, StoreError, Stored};
use fastrand::Rng;
use windrow_clickhouse::{ErrorCode, Exception};
use windrow_log::simulation::Trace;

use super::rows::inserts_of;
use super::time::SimTime;

/// The number of shards of a table that is cut by shards.
pub(super) const SHARDS: u32 = 2;

/// The rates at which calls fail, of a thousand.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct SystemFaults {
    pub(super) not_sent: u32,
    pub(super) refused_for_now: u32,
    pub(super) lost: u32,
    /// The rate of calls that are lost, and run on all the same.
    pub(super) runs_on: u32,
    /// True if the user's rights are gone for a while. For the gateway that looks permanent.
    pub(super) is_revoked: bool,
    /// True if the shard does not answer: calls hang for a while and aren't sent.
    pub(super) is_away: bool,
    /// The longest time that a call takes, in milliseconds.
    pub(super) slowest_ms: u64,
}

#[derive(Clone)]
pub(super) struct SimSink {
    system: Arc<Mutex<System>>,
    time: SimTime,
    /// The end of this gateway's life. Later lives have their own sinks.
    ended: Arc<Signal>,
    /// Says whether this gateway's machine still runs. If it doesn't, its calls don't count.
    is_powered: Arc<dyn Fn() -> bool + Send + Sync>,
}

pub(super) struct System {
    random: Rng,
    /// The faults of each shard, by its number; 0 for tables without shards.
    pub(super) faults: [SystemFaults; SHARDS as usize + 1],
    /// The distance between inserts that are refused for good, in insert numbers; 0 for no such inserts.
    poison_every: u64,
    deduplicating: BTreeSet<String>,
    /// The batches that each shard of a table has stored, and remembers by itself.
    known: BTreeSet<(PhysicalTable, u128)>,
    running: Vec<Running>,
    pub(super) stored: Vec<StoredInsert>,
    /// The inserts that were sent under each id, kept to the end of the run.
    sent: BTreeMap<u128, Vec<u64>>,
    pub(super) complaints: Vec<String>,
    pub(super) trace: Trace,
    pub(super) is_told: bool,
    pub(super) calls: u64,
    pub(super) lost_calls: u64,
    /// Inserts that were in a batch which was refused for want of rights.
    revoked: BTreeSet<u64>,
    /// The time when a batch with this insert was first refused for now.
    failing_since_ms: BTreeMap<u64, u64>,
    /// The number of times that the outcome of a batch with this insert was unknown, where a repeat isn't
    /// recognised.
    unknown: BTreeMap<u64, u32>,
    /// The time until which an insert of each table was refused for now again and again.
    failing_long_until_ms: BTreeMap<PhysicalTable, u64>,
}

pub(super) struct StoredInsert {
    pub(super) place: PhysicalTable,
    pub(super) insert: u64,
}

/// A call to which no gateway listens.
struct Running {
    call: Call,
    ends_at_ms: u64,
}

#[derive(Clone)]
struct Call {
    place: PhysicalTable,
    id: u128,
    inserts: Vec<u64>,
}

#[derive(Debug)]
enum Course {
    Stores,
    NotSent,
    Refused(ErrorCode),
    StillRunning,
    LostBefore,
    LostAfter,
    RunsOn,
}

impl System {
    pub(super) fn new(seed: u64, poison_every: u64, deduplicating: BTreeSet<String>) -> System {
        System {
            random: Rng::with_seed(seed),
            faults: Default::default(),
            poison_every,
            deduplicating,
            known: BTreeSet::new(),
            running: Vec::new(),
            stored: Vec::new(),
            sent: BTreeMap::new(),
            complaints: Vec::new(),
            trace: Trace::default(),
            is_told: false,
            calls: 0,
            lost_calls: 0,
            revoked: BTreeSet::new(),
            failing_since_ms: BTreeMap::new(),
            unknown: BTreeMap::new(),
            failing_long_until_ms: BTreeMap::new(),
        }
    }

    pub(super) fn is_poison(&self, insert: u64) -> bool {
        self.poison_every > 0 && insert % self.poison_every == self.poison_every - 1
    }

    pub(super) fn deduplicates(&self, place: &PhysicalTable) -> bool {
        self.deduplicating.contains(&place.name.table)
    }

    /// Says whether an insert was ever refused for good.
    pub(super) fn has_refused(&self, insert: u64) -> bool {
        self.is_poison(insert) || self.revoked.contains(&insert)
    }

    /// Says whether an insert's outcome was unknown so often that it may have been given up.
    pub(super) fn may_be_given_up(&self, insert: u64) -> bool {
        self.unknown.get(&insert).is_some_and(|times| *times >= MOST_UNKNOWN)
    }

    /// Says whether an insert of the table failed then or later for so long that inserts of others may go
    /// before it.
    pub(super) fn fails_for_long_after(&self, place: &PhysicalTable, at_ms: u64) -> bool {
        self.failing_long_until_ms.get(place).is_some_and(|until_ms| at_ms <= *until_ms)
    }

    fn failed_for_now(&mut self, call: &Call, now_ms: u64) {
        for insert in &call.inserts {
            let since_ms = *self.failing_since_ms.entry(*insert).or_insert(now_ms);
            if u128::from(now_ms - since_ms) >= LONGEST_HOPE.as_millis() {
                self.failing_long_until_ms.insert(call.place.clone(), now_ms);
            }
        }
    }

    fn begin(&mut self, batch: &Batch, now_ms: u64) -> (Call, Course) {
        self.calls += 1;
        self.end_running(now_ms);
        let place = batch.destination.physical_table();
        let inserts = inserts_of(&batch.rows).unwrap_or_else(|why| {
            self.complaints.push(format!("batch {}: {why}", batch.id));
            Vec::new()
        });
        let call = Call { place, id: batch.id.0, inserts };
        self.take_note(&call, now_ms);
        let course = self.course(&call);
        if !matches!(course, Course::Stores | Course::NotSent) {
            self.failed_for_now(&call, now_ms);
        }
        let is_unknown = !matches!(course, Course::Stores | Course::NotSent | Course::Refused(_));
        if is_unknown && !self.deduplicates(&call.place) {
            call.inserts.iter().for_each(|insert| *self.unknown.entry(*insert).or_default() += 1);
        }
        self.say(now_ms, &call, &course);
        (call, course)
    }

    /// Notes the members of a batch. An id always means the same members, except those that end in another
    /// way before a crash. Additional members would be dropped, where the earlier ones are stored.
    fn take_note(&mut self, call: &Call, now_ms: u64) {
        for number in [now_ms, call.id as u64].iter().chain(&call.inserts) {
            self.trace.add_number(*number);
        }
        if call.inserts.is_empty() {
            self.complaints.push(format!("batch {} is empty", BatchId(call.id)));
        }
        let before = self.sent.entry(call.id).or_insert_with(|| call.inserts.clone());
        let mut rest = before.iter();
        if !call.inserts.iter().all(|insert| rest.any(|other| other == insert)) {
            let text = format!("batch {} was {before:?} and is {:?}", BatchId(call.id), call.inserts);
            self.complaints.push(text);
        }
        before.clone_from(&call.inserts);
    }

    fn say(&self, at_ms: u64, call: &Call, what: &dyn std::fmt::Debug) {
        if self.is_told {
            let (table, shard) = (&call.place.name.table, call.place.shard);
            println!("{at_ms:>8} ms      {table}.{shard} {}: {:?}: {what:?}", BatchId(call.id), call.inserts);
        }
    }

    fn course(&mut self, call: &Call) -> Course {
        let faults = self.faults[call.place.shard as usize];
        if faults.is_away {
            return Course::NotSent;
        }
        if faults.is_revoked {
            self.revoked.extend(&call.inserts);
            return Course::Refused(ErrorCode::ACCESS_DENIED);
        }
        if self.running.iter().any(|running| running.call.id == call.id) {
            return Course::StillRunning;
        }
        let mut left = self.random.u32(0..1000);
        let mut is = |per_thousand: u32| {
            let it_is = left < per_thousand;
            left = if it_is { 1000 } else { left - per_thousand };
            it_is
        };
        if is(faults.not_sent) {
            Course::NotSent
        } else if is(faults.refused_for_now) {
            Course::Refused(
                [
                    ErrorCode::TOO_MANY_PARTS,
                    ErrorCode::MEMORY_LIMIT_EXCEEDED,
                    ErrorCode::TABLE_IS_READ_ONLY,
                    ErrorCode::TOO_MANY_SIMULTANEOUS_QUERIES,
                ][self.random.usize(0..4)],
            )
        } else if is(faults.lost) {
            [Course::LostBefore, Course::LostAfter][self.random.usize(0..2)].take()
        } else if is(faults.runs_on) {
            Course::RunsOn
        } else {
            Course::Stores
        }
    }

    /// Stores a batch, or refuses it for good, at one moment.
    fn store(&mut self, call: &Call) -> Result<(), Exception> {
        if self.deduplicates(&call.place) && self.known.contains(&(call.place.clone(), call.id)) {
            return Ok(());
        }
        if let Some(index) = call.inserts.iter().position(|insert| self.is_poison(*insert)) {
            return Err(self.refusal(call, index));
        }
        self.known.insert((call.place.clone(), call.id));
        let stored = call.inserts.iter().map(|insert| StoredInsert { place: call.place.clone(), insert: *insert });
        self.stored.extend(stored);
        Ok(())
    }

    /// Returns the error of a refusal. A constraint's error names a row, others don't.
    fn refusal(&mut self, call: &Call, index: usize) -> Exception {
        let names_row = call.inserts[index].is_multiple_of(2);
        match names_row {
            true => {
                let before: u64 = call.inserts[..index].iter().map(|insert| 1 + insert % 3).sum();
                let text =
                    format!("Constraint `c` for table d.t is violated at row {}. Expression: (a < 100).", before + 1);
                Exception::new(ErrorCode::VIOLATED_CONSTRAINT, &text, "")
            }
            false => Exception::new(ErrorCode::CANNOT_PARSE_TEXT, "Cannot parse string", ""),
        }
    }

    fn run_on(&mut self, call: Call, ends_at_ms: u64) {
        self.running.push(Running { call, ends_at_ms });
        self.running.sort_by_key(|running| (running.ends_at_ms, running.call.id));
    }

    /// Stores the batches of calls that have run on until now.
    pub(super) fn end_running(&mut self, now_ms: u64) {
        while self.running.first().is_some_and(|running| running.ends_at_ms <= now_ms) {
            let Running { call, .. } = self.running.remove(0);
            // Nobody hears of a refusal.
            let outcome = self.store(&call);
            self.say(now_ms, &call, &outcome);
        }
    }

    fn latency(&mut self, place: &PhysicalTable) -> Duration {
        let slowest = self.faults[place.shard as usize].slowest_ms.max(1);
        // Mostly fast.
        let ms =
            if self.random.u32(0..4) == 0 { self.random.u64(0..slowest) } else { self.random.u64(0..=slowest / 10) };
        Duration::from_millis(ms)
    }
}

impl Course {
    fn take(&self) -> Course {
        match self {
            Course::LostBefore => Course::LostBefore,
            _ => Course::LostAfter,
        }
    }
}

impl SimSink {
    pub(super) fn new(
        system: Arc<Mutex<System>>,
        time: SimTime,
        ended: Arc<Signal>,
        is_powered: impl Fn() -> bool + Send + Sync + 'static,
    ) -> SimSink {
        SimSink { system, time, ended, is_powered: Arc::new(is_powered) }
    }

    fn lock(&self) -> MutexGuard<'_, System> {
        self.system.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets time pass. Returns false where the gateway's life has ended meanwhile; the call then never returns.
    async fn lives_on(&self, duration: Duration) -> bool {
        tokio::select! {
            biased;
            () = self.ended.wait() => return false,
            () = tokio::time::sleep(duration) => {}
        }
        if !(self.is_powered)() {
            self.ended.wait().await;
            return false;
        }
        true
    }
}

/// A call whose end the gateway may not live to see.
struct Sent<'a> {
    sink: &'a SimSink,
    /// The call that runs on in that case, with the time at which it ends. It is drawn before, because a
    /// runtime drops its tasks in no certain order.
    runs_on: Option<Running>,
}

impl Drop for Sent<'_> {
    fn drop(&mut self) {
        if let Some(Running { call, ends_at_ms }) = self.runs_on.take() {
            self.sink.lock().run_on(call, ends_at_ms);
        }
    }
}

impl Sink for SimSink {
    async fn store(&self, batch: &Batch) -> Result<Stored, StoreError> {
        if !self.lives_on(Duration::ZERO).await {
            return std::future::pending().await;
        }
        let now_ms = self.time.now_ms();
        let (call, course, before, after, runs_on) = {
            let mut system = self.lock();
            let (call, course) = system.begin(batch, now_ms);
            let (before, after) = (system.latency(&call.place), system.latency(&call.place));
            let is_sent = !matches!(course, Course::NotSent | Course::LostBefore | Course::StillRunning);
            let ends_at_ms = now_ms + system.random.u64(0..20_000);
            let runs_on = system.random.bool() && is_sent;
            (call.clone(), course, before, after, runs_on.then_some(Running { call, ends_at_ms }))
        };
        let mut sent = Sent { sink: self, runs_on };
        if !self.lives_on(before).await {
            drop(sent);
            return std::future::pending().await;
        }
        sent.runs_on = None;
        let answer = {
            let mut system = self.lock();
            match course {
                Course::NotSent => Err(StoreError::NotSent("connection refused".into())),
                Course::StillRunning => Err(StoreError::StillRunning("the query is already running".into())),
                Course::Refused(code) => Err(StoreError::Refused(Exception::new(code, "not now", ""))),
                Course::LostBefore => {
                    system.lost_calls += 1;
                    Err(StoreError::Unknown("connection reset".into()))
                }
                Course::LostAfter => {
                    system.lost_calls += 1;
                    // Who is refused does not hear it.
                    let _ = system.store(&call);
                    Err(StoreError::Unknown("connection reset".into()))
                }
                Course::RunsOn => {
                    system.lost_calls += 1;
                    let ends_at_ms = self.time.now_ms() + system.random.u64(0..20_000);
                    system.run_on(call, ends_at_ms);
                    Err(StoreError::Unknown("timeout".into()))
                }
                Course::Stores => {
                    let outcome = system.store(&call);
                    system.say(self.time.now_ms(), &call, &outcome);
                    outcome.map(|()| Stored::default()).map_err(StoreError::Refused)
                }
            }
        };
        match self.lives_on(after).await {
            true => answer,
            false => std::future::pending().await,
        }
    }
}
