//! The run of one seed: the calls to the log, and the answers that are allowed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use fastrand::Rng;

use super::model::{Bytes, Model, State};
use crate::simulation::{DiskFaults, SimDisk, Trace};
use crate::{CommitError, Committer, Context, Log, LogOptions, OpenError, RecordId, Room};

pub(super) struct Scenario {
    seed: u64,
    faults_per_thousand: u32,
    options: LogOptions,
    largest_payload: usize,
    /// Bytes that the disk lacks for the room that the log would like to take.
    missing_bytes: u64,
}

/// Figures of a run.
#[derive(Default)]
pub(super) struct Seen {
    pub(super) crashes: usize,
    pub(super) failed_commits: usize,
    pub(super) recovered: usize,
    pub(super) trace: Trace,
    last_tries: usize,
}

impl Scenario {
    pub(super) fn calm(seed: u64) -> Scenario {
        let mut random = Rng::with_seed(seed);
        let segment_bytes = [4 << 10, 8 << 10, 32 << 10][random.usize(0..3)];
        let max_bytes = (segment_bytes * random.u64(8..40)).max(64 << 10);
        Scenario {
            seed,
            faults_per_thousand: 0,
            options: LogOptions { segment_bytes, max_bytes, reserve_bytes: segment_bytes / 4 },
            largest_payload: [8, 100, 3_000][random.usize(0..3)],
            missing_bytes: 0,
        }
    }

    pub(super) fn stormy(seed: u64) -> Scenario {
        let mut scenario = Scenario::calm(seed);
        let mut random = Rng::with_seed(!seed);
        scenario.faults_per_thousand = [5, 30, 200][random.usize(0..3)];
        if random.u32(0..3) == 0 {
            scenario.missing_bytes = random.u64(0..scenario.options.max_bytes / 2);
        }
        scenario
    }
}

/// The outcomes of appends that the run has not looked at yet.
type Told = Arc<Mutex<Vec<(RecordId, Result<(), CommitError>)>>>;

pub(super) struct Run {
    scenario: Scenario,
    random: Rng,
    disk: SimDisk,
    model: Model,
    log: Log,
    committer: Committer<SimDisk>,
    contexts: Vec<Context>,
    told: Told,
    seen: Seen,
    latest_error: String,
}

impl Run {
    pub(super) fn of(scenario: Scenario) -> Seen {
        let capacity = scenario.options.max_bytes - scenario.missing_bytes + scenario.options.segment_bytes;
        let disk = SimDisk::new(scenario.seed ^ 0xd15c, capacity);
        let mut random = Rng::with_seed(scenario.seed ^ 0x10c);
        let Opened { log, committer, .. } = open(&disk, &scenario).expect("nothing fails yet");
        let contexts = contexts(&log, &mut random);
        let (model, told, seen) = (Model::default(), Told::default(), Seen::default());
        let mut run =
            Run { scenario, random, disk, model, log, committer, contexts, told, seen, latest_error: String::new() };
        for _ in 0..run.random.usize(1..6) {
            run.live();
            run.restart();
        }
        run.drain();
        run.seen.trace = run.disk.trace();
        run.seen
    }

    fn live(&mut self) {
        if self.random.bool() {
            self.disk.fail_power_within(self.random.u32(1..120));
        }
        for _ in 0..self.random.usize(10..200) {
            if !self.disk.is_powered() {
                return;
            }
            match self.random.u32(0..100) {
                0..=54 => self.append(),
                55..=79 => self.turn(),
                80..=91 => self.release(),
                92..=96 => self.read(),
                97 => self.disk.set_faults(DiskFaults::default()),
                98 => self.disk.set_faults(DiskFaults::everywhere(self.scenario.faults_per_thousand)),
                _ => {
                    let is_full = self.scenario.faults_per_thousand > 0;
                    self.disk.set_faults(DiskFaults { is_full, ..DiskFaults::default() });
                }
            }
        }
    }

    fn append(&mut self) {
        let payload_bytes = self.random.usize(0..=self.scenario.largest_payload);
        let payload: Vec<u8> = (0..payload_bytes).map(|_| self.random.u8(..)).collect();
        let kind = self.random.u8(1..5);
        let context = self.random.bool().then(|| self.contexts[self.random.usize(0..self.contexts.len())].clone());
        let room = if self.random.u32(0..8) == 0 { Room::Reserve } else { Room::Ordinary };
        let told = self.told.clone();
        let appended = self.log.append_then(kind, context.as_ref(), payload.clone(), room, move |id, outcome| {
            told.lock().unwrap().push((id, outcome));
        });
        if let Ok(id) = appended {
            let context = context.map(|context| context.bytes().to_vec());
            self.model.appended(id, Bytes { kind, context, payload });
        }
    }

    fn turn(&mut self) {
        self.committer.turn();
        if self.disk.is_powered() {
            self.listen();
            let usage = self.log.usage();
            assert!(usage.file_bytes <= self.scenario.options.max_bytes, "{usage:?}");
            // A disk that fails may keep files that were to go.
            assert!(self.scenario.faults_per_thousand > 0 || self.file_bytes() <= self.scenario.options.max_bytes);
        }
    }

    fn file_bytes(&self) -> u64 {
        self.disk.files().iter().map(|(_, bytes)| bytes).sum()
    }

    fn listen(&mut self) {
        let told = std::mem::take(&mut *self.told.lock().unwrap());
        assert!(told.is_sorted_by_key(|(id, _)| *id), "the log's order is broken: {told:?}");
        for (id, outcome) in told {
            assert_eq!(self.model.state(id), State::Queued, "{id:?} was told twice");
            self.seen.failed_commits += usize::from(outcome.is_err());
            if let Err(error) = &outcome {
                self.latest_error = error.to_string();
            }
            let state = match outcome {
                Ok(()) => State::Durable,
                Err(CommitError::Io { certain: false, .. } | CommitError::Closed) => State::Failed,
                Err(CommitError::Io { certain: true, .. } | CommitError::DiskFull(_)) => State::Gone,
            };
            self.model.set(id, state);
        }
    }

    fn release(&mut self) {
        let durable = self.model.with(State::Durable);
        // From the front mostly, as batches are stored.
        let few = durable.len().min(8);
        for _ in 0..self.random.usize(0..=few) {
            let index = if self.random.u32(0..4) == 0 {
                self.random.usize(0..durable.len())
            } else {
                self.random.usize(0..few)
            };
            self.log.release(durable[index]);
            self.model.set(durable[index], State::Released);
        }
    }

    fn read(&mut self) {
        let durable = self.model.with(State::Durable);
        if durable.is_empty() {
            return;
        }
        let id = durable[self.random.usize(0..durable.len())];
        match self.log.read(id) {
            Ok(record) => {
                let bytes = self.model.bytes(id);
                assert_eq!((record.kind, &record.payload[..]), (bytes.kind, &bytes.payload[..]), "{id:?}");
            }
            Err(error) => {
                let may_fail = self.scenario.faults_per_thousand > 0 || !self.disk.is_powered();
                assert!(may_fail, "{id:?} can't be read: {error:?}");
            }
        }
    }

    /// Lets the power fail, or the process be killed or end; then starts the next one.
    fn restart(&mut self) {
        self.seen.crashes += 1;
        // A process may be killed within a call, too.
        let disk = match self.random.bool() {
            true => self.disk.reopen(),
            false => self.disk.restart(),
        };
        self.told = Told::default();
        self.disk = disk;
        // Those who start it again, and again, until the disk works.
        self.disk.set_faults(DiskFaults::everywhere(self.scenario.faults_per_thousand));
        let opened = loop {
            if self.random.u32(0..4) == 0 {
                self.disk.fail_power_within(self.random.u32(1..40));
            }
            let opened = open(&self.disk, &self.scenario);
            if !self.disk.is_powered() {
                self.disk = self.disk.restart();
                continue;
            }
            match opened {
                Ok(opened) => break opened,
                Err(error) => assert!(!matches!(error, OpenError::Corrupt { .. }), "{error}"),
            }
            if self.random.bool() {
                self.disk.set_faults(DiskFaults::default());
            }
        };
        self.disk.keep_power();
        self.model.restarted(&opened.found);
        self.seen.recovered += opened.found.len();
        self.contexts = contexts(&opened.log, &mut self.random);
        (self.log, self.committer) = (opened.log, opened.committer);
    }

    /// Ends all faults, and checks that the log takes records again, and gives its room back.
    fn drain(&mut self) {
        self.disk.set_faults(DiskFaults::default());
        for id in self.model.with(State::Durable) {
            self.log.release(id);
            self.model.set(id, State::Released);
        }
        while self.model.with(State::Durable).is_empty() {
            let tries = self.seen.last_tries;
            assert!(tries < 20, "no record is taken: {}, {:?}", self.latest_error, self.log.usage());
            self.seen.last_tries += 1;
            self.append();
            self.turn();
        }
        while self.committer.turn() {}
        let (usage, files) = (self.log.usage(), self.disk.files());
        assert_eq!((usage.live_records, usage.pending_bytes), (1, 0));
        assert!(files.len() <= 3, "what nobody needs is kept: {usage:?}, {files:?}");
    }
}

struct Opened {
    log: Log,
    committer: Committer<SimDisk>,
    found: BTreeMap<RecordId, Bytes>,
}

fn open(disk: &SimDisk, scenario: &Scenario) -> Result<Opened, OpenError> {
    let mut found: BTreeMap<RecordId, Bytes> = BTreeMap::new();
    let (log, committer) = crate::open(disk.clone(), scenario.options, &mut |recovered| {
        let context = recovered.context.map(|(_, bytes)| bytes.to_vec());
        let bytes = Bytes { kind: recovered.kind, context, payload: recovered.payload.to_vec() };
        let latest = found.last_key_value().map(|(latest, _)| *latest);
        assert!(latest.is_none_or(|latest| latest < recovered.id), "{:?} comes after {latest:?}", recovered.id);
        found.insert(recovered.id, bytes);
    })?;
    Ok(Opened { log, committer, found })
}

fn contexts(log: &Log, random: &mut Rng) -> Vec<Context> {
    (0..4).map(|context| log.context(vec![context; random.usize(0..60)])).collect()
}
