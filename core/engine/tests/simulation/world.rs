//! The parts that outlive the gateway: the machine's disk, ClickHouse, the writers' books, time.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use windrow_log::simulation::{SimDisk, Trace};

use super::books::{Books, Told};
use super::cluster::Gateways;
use super::dead_letters::{self, SimDeadLetters};
use super::sabotage::{self, Sabotage};
use super::scenario::{Ending, Scenario};
use super::system::{SimSink, System};
use super::time::SimTime;
use crate::environment::Environment;
use crate::signal::Signal;

#[derive(Clone)]
pub(super) struct World {
    pub(super) scenario: Arc<Scenario>,
    pub(super) time: SimTime,
    pub(super) system: Arc<Mutex<System>>,
    dead_letters: Arc<Mutex<dead_letters::State>>,
    /// The number of the gateway that has this view of the world, from 0 on. Its disks and the end of its
    /// life are its own.
    pub(super) gateway: usize,
    /// The gateway's folder, as this life has it.
    pub(super) disk: SimDisk,
    /// The folder of the gateway's deduplication index.
    pub(super) index: SimDisk,
    /// Happens when this life has ended.
    pub(super) ended: Arc<Signal>,
    books: Arc<Mutex<Books>>,
    pub(super) gateways: Gateways,
    /// Happens when no client will send an insert with a token any more.
    pub(super) clients_ended: Arc<Signal>,
    /// True if writers begin no more inserts.
    winding_up: Arc<AtomicBool>,
    /// True if events are printed.
    is_told: bool,
}

impl World {
    pub(super) fn new(scenario: Scenario, is_told: bool) -> World {
        let deduplicating: BTreeSet<String> = (0..scenario.tables.len())
            .filter(|table| scenario.tables[*table].deduplicates)
            .map(|table| format!("t{table}"))
            .collect();
        let mut system = System::new(scenario.seed ^ 0x0051_57e3, scenario.poison_every, deduplicating);
        system.is_told = is_told;
        let disk = disk_of(scenario.seed ^ 0xd15c);
        World {
            time: SimTime::default(),
            system: Arc::new(Mutex::new(system)),
            dead_letters: Arc::new(Mutex::new(dead_letters::State::new(scenario.seed ^ 0x1e77))),
            disk,
            books: Arc::default(),
            winding_up: Arc::default(),
            gateways: Gateways::default(),
            clients_ended: Arc::default(),
            gateway: 0,
            index: SimDisk::new(scenario.seed ^ 0x1de0, 1 << 30),
            ended: Arc::default(),
            is_told,
            scenario: Arc::new(scenario),
        }
    }

    /// Returns the same world as another gateway has it.
    pub(super) fn beside(&self, gateway: usize) -> World {
        let seed = self.scenario.seed ^ ((gateway as u64) << 48);
        World {
            gateway,
            dead_letters: Arc::new(Mutex::new(dead_letters::State::new(seed ^ 0x1e77))),
            disk: disk_of(seed ^ 0xd15c),
            index: SimDisk::new(seed ^ 0x1de0, 1 << 30),
            ended: Arc::default(),
            winding_up: Arc::default(),
            ..self.clone()
        }
    }

    /// Prepares the world for the life after one that has ended in this way.
    pub(super) fn begin_anew(&mut self, ending: Option<Ending>) {
        let next = match ending {
            Some(Ending::PowerFails { .. }) => SimDisk::restart,
            _ => SimDisk::reopen,
        };
        (self.disk, self.index, self.ended) = (next(&self.disk), next(&self.index), Arc::default());
    }

    pub(super) fn endings(&self) -> &[Ending] {
        &self.scenario.endings[self.gateway]
    }

    /// Says whether this gateway's machine still runs. A disk that loses its power stops the other disk too.
    pub(super) fn is_powered(&self) -> bool {
        self.disk.is_powered() && self.index.is_powered()
    }

    pub(super) fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn system(&self) -> MutexGuard<'_, System> {
        self.system.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn sink(&self) -> SimSink {
        let (disk, index) = (self.disk.clone(), self.index.clone());
        let is_powered = move || disk.is_powered() && index.is_powered();
        SimSink::new(self.system.clone(), self.time.clone(), self.ended.clone(), is_powered)
    }

    pub(super) fn dead_letters(&self) -> SimDeadLetters {
        let (disk, index) = (self.disk.clone(), self.index.clone());
        SimDeadLetters::new(self.dead_letters.clone(), move || disk.is_powered() && index.is_powered())
    }

    pub(super) fn dead_letter_state(&self) -> MutexGuard<'_, dead_letters::State> {
        self.dead_letters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records an answer. Answers of a machine without power reach no writer.
    pub(super) fn tell(&self, insert: u64, told: Told) {
        if self.is_powered() {
            self.say(|| format!("insert {insert}: {told:?}"));
            let now_ms = self.time.now_ms();
            self.books().tell(insert, told, now_ms);
        }
    }

    pub(super) fn say(&self, text: impl FnOnce() -> String) {
        if self.is_told {
            println!("{:>8} ms  {}{}", self.time.now_ms(), if self.gateway == 0 { "" } else { "other: " }, text());
        }
    }

    pub(super) fn wind_up(&self, winding_up: bool) {
        self.winding_up.store(winding_up, Ordering::Relaxed);
    }

    pub(super) fn is_winding_up(&self) -> bool {
        self.winding_up.load(Ordering::Relaxed)
    }

    /// Returns the trace of the parts that all gateways share.
    pub(super) fn trace(&self) -> Trace {
        let mut trace = self.books().trace;
        trace.add(self.system().trace.to_string().as_bytes());
        trace.add_number(self.time.latest_ms());
        trace
    }

    /// Adds the traces of the gateway's own parts.
    pub(super) fn add_own_trace(&self, trace: &mut Trace) {
        for disk in [&self.disk, &self.index] {
            trace.add(disk.trace().to_string().as_bytes());
        }
    }
}

fn disk_of(seed: u64) -> SimDisk {
    let disk = SimDisk::new(seed, 1 << 30);
    if sabotage::is(Sabotage::SkipsSync) {
        disk.skip_syncs();
    }
    disk
}

/// The time and the random numbers of one life.
pub(super) struct SimEnvironment {
    pub(super) time: SimTime,
    pub(super) drawn: AtomicU64,
    pub(super) seed: u64,
}

impl Environment for SimEnvironment {
    fn wall_micros(&self) -> u64 {
        1_700_000_000_000_000 + self.time.now_ms() * 1000
    }

    fn random_u128(&self) -> u128 {
        let drawn = self.drawn.fetch_add(1, Ordering::Relaxed);
        fastrand::Rng::with_seed(self.seed.wrapping_add(drawn.wrapping_mul(0x9e37_79b9_7f4a_7c15))).u128(..)
    }

    fn reads_in_threads(&self) -> bool {
        false
    }
}
