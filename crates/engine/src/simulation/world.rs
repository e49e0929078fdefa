//! What outlives the gateway: the machine's disk, ClickHouse, the writers' books, time.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use windrow_log::simulation::{SimDisk, Trace};

use super::books::{Books, Told};
use super::dead_letters::{self, SimDeadLetters};
use super::sabotage::{self, Sabotage};
use super::scenario::Scenario;
use super::system::{SimSink, System};
use super::time::SimTime;
use crate::environment::Environment;

#[derive(Clone)]
pub(super) struct World {
    pub(super) scenario: Arc<Scenario>,
    pub(super) time: SimTime,
    pub(super) system: Arc<Mutex<System>>,
    dead_letters: Arc<Mutex<dead_letters::State>>,
    /// The gateway's folder, as this life has it.
    pub(super) disk: SimDisk,
    books: Arc<Mutex<Books>>,
    /// Writers begin no more inserts.
    winding_up: Arc<AtomicBool>,
    /// Prints what happens.
    is_told: bool,
}

impl World {
    pub(super) fn new(scenario: Scenario, is_told: bool) -> World {
        let deduplicating: BTreeSet<String> = (0..scenario.tables.len())
            .filter(|table| scenario.tables[*table])
            .map(|table| format!("t{table}"))
            .collect();
        let mut system = System::new(scenario.seed ^ 0x0051_57e3, scenario.poison_every, deduplicating);
        system.is_told = is_told;
        let disk = SimDisk::new(scenario.seed ^ 0xd15c, 1 << 30);
        if sabotage::is(Sabotage::SkipsSync) {
            disk.skip_syncs();
        }
        World {
            time: SimTime::default(),
            system: Arc::new(Mutex::new(system)),
            dead_letters: Arc::new(Mutex::new(dead_letters::State::new(scenario.seed ^ 0x1e77))),
            disk,
            books: Arc::default(),
            winding_up: Arc::default(),
            is_told,
            scenario: Arc::new(scenario),
        }
    }

    pub(super) fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn system(&self) -> MutexGuard<'_, System> {
        self.system.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn sink(&self) -> SimSink {
        let disk = self.disk.clone();
        SimSink::new(self.system.clone(), self.time.clone(), move || disk.is_powered())
    }

    pub(super) fn dead_letters(&self) -> SimDeadLetters {
        let disk = self.disk.clone();
        SimDeadLetters::new(self.dead_letters.clone(), move || disk.is_powered())
    }

    pub(super) fn dead_letter_state(&self) -> MutexGuard<'_, dead_letters::State> {
        self.dead_letters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a machine without power says is heard by nobody.
    pub(super) fn tell(&self, insert: u64, told: Told) {
        if self.disk.is_powered() {
            self.say(|| format!("insert {insert}: {told:?}"));
            self.books().tell(insert, told);
        }
    }

    pub(super) fn say(&self, text: impl FnOnce() -> String) {
        if self.is_told {
            println!("{:>8} ms  {}", self.time.now_ms(), text());
        }
    }

    pub(super) fn wind_up(&self, winding_up: bool) {
        self.winding_up.store(winding_up, Ordering::Relaxed);
    }

    pub(super) fn is_winding_up(&self) -> bool {
        self.winding_up.load(Ordering::Relaxed)
    }

    pub(super) fn trace(&self) -> Trace {
        let mut trace = self.books().trace;
        trace.add(self.system().trace.to_string().as_bytes());
        trace.add(self.disk.trace().to_string().as_bytes());
        trace.add_number(self.time.latest_ms());
        trace
    }
}

/// Time and chance of one life.
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
