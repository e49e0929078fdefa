//! One life of the gateway, from its start to its end, on a runtime of its own whose clock stands still while
//! any task can run.

use std::sync::atomic::AtomicU64;
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use prometheus_client::registry::Registry;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use windrow_log::{simulation::SimDisk, Committer, Log, LogOptions, OpenError};

use super::cluster::LiveGateway;
use super::scenario::Ending;
use super::system::SimSink;
use super::weather::{calm, weather};
use super::world::{SimEnvironment, World};
use super::writer::Writer;
use crate::{open_journal, DeduplicationIndex, Gatherer, GathererOptions, OpenedJournal, Stores};

/// The simulated time in which all has to be stored once the faults are over.
const DRAINS_WITHIN: Duration = Duration::from_secs(7_200);
/// The most inserts of a writer in a life, and in the last one: a thousand seeds are better than a long one.
const MOST_INSERTS: usize = 40;
const LAST_INSERTS: usize = 8;

pub(super) struct Life {
    pub(super) world: World,
    pub(super) number: usize,
    /// The way in which the life ends; `None` for the last one, in which nothing fails.
    pub(super) ending: Option<Ending>,
    /// Wakes when the machine or the process has died within a call of the disk.
    pub(super) died: Arc<Notify>,
}

/// The parts of a gateway that run while the life lasts.
struct Running {
    gatherer: Gatherer<SimSink>,
    log: Log,
    writers: JoinSet<()>,
    /// Wakes when the machine or the process has died within a call of the disk.
    died: Arc<Notify>,
}

impl Life {
    /// Runs the life on a runtime of its own. Fails with a failure that the books do not show.
    pub(super) fn live(self) -> Result<(), String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        let ended = runtime.block_on(async {
            self.world.time.begin_life();
            self.run().await
        });
        // Whatever is still under way ends here, at whatever await it has reached.
        drop(runtime);
        ended
    }

    fn seed(&self) -> u64 {
        self.world.scenario.seed.wrapping_mul(1_000_003).wrapping_add(self.number as u64)
    }

    /// Runs the life on the current runtime. Afterwards no part of the gateway is left that could act.
    pub(super) async fn run(self) -> Result<(), String> {
        let world = self.world.clone();
        let ended = self.run_to_its_end().await;
        world.books().survived += u64::from(world.gateways.ends(world.gateway) > 0);
        world.ended.happens();
        ended
    }

    async fn run_to_its_end(self) -> Result<(), String> {
        self.world.say(|| format!("life {} begins, to end by {:?}", self.number, self.ending));
        self.world.wind_up(false);
        if let Some(calls) = self.ending.and_then(Ending::within_calls) {
            // One of the machine's disks is the first to notice.
            let has_clients = !self.world.scenario.clients.is_empty();
            match has_clients && calls % 4 == 0 {
                true => self.world.index.fail_power_within(calls / 4),
                false => self.world.disk.fail_power_within(calls),
            }
        }
        let Some((journal, committer)) = self.open_journal()? else { return Ok(()) };
        let Some(index) = self.open_index()? else { return Ok(()) };
        let running = self.start(journal, committer, index);
        match self.ending {
            None => self.drain(running).await,
            Some(ending) => self.end(ending, running).await,
        }
    }

    /// Opens the journal. Returns `None` where the gateway died while it tried.
    fn open_journal(&self) -> Result<Option<(OpenedJournal, Committer<SimDisk>)>, String> {
        let scenario = &self.world.scenario;
        let options = LogOptions {
            segment_bytes: scenario.segment_bytes,
            max_bytes: scenario.max_journal_bytes,
            reserve_bytes: scenario.segment_bytes / 4,
        };
        loop {
            let opened = open_journal(self.world.disk.clone(), options);
            if !self.world.is_powered() {
                return Ok(None);
            }
            match opened {
                Ok(opened) => return Ok(Some(opened)),
                // Whoever watches over the process starts it again, and one day the disk is better.
                Err(OpenError::Io { .. }) => calm(&self.world),
                Err(error) => return Err(format!("the journal can't be opened: {error}")),
            }
        }
    }

    /// Opens the deduplication index in the same way, if there are tokens; `Some(None)` if there are none.
    /// Its disk fails only with the machine: keys that it could not be told are not known after a restart,
    /// and that breaks no promise.
    fn open_index(&self) -> Result<Option<Option<DeduplicationIndex>>, String> {
        if self.world.scenario.clients.is_empty() {
            return Ok(Some(None));
        }
        let options = LogOptions { segment_bytes: 4 << 10, max_bytes: 1 << 20, reserve_bytes: 64 << 10 };
        match DeduplicationIndex::open(self.world.index.clone(), options, self.environment(1)) {
            Ok((index, committer)) => {
                let log = index.log().ok_or("an index without a log")?;
                let random = Rng::with_seed(self.seed() ^ 0x1de0);
                tokio::spawn(commit(self.world.clone(), log, committer, self.died.clone(), random));
                Ok(Some(Some(index)))
            }
            Err(_) if !self.world.is_powered() => Ok(None),
            Err(error) => Err(format!("the deduplication index can't be opened: {error}")),
        }
    }

    fn environment(&self, of: u64) -> Arc<SimEnvironment> {
        let seed = self.seed() ^ (of << 56);
        Arc::new(SimEnvironment { time: self.world.time.clone(), drawn: AtomicU64::new(0), seed })
    }

    fn start(
        &self,
        journal: OpenedJournal,
        committer: Committer<SimDisk>,
        deduplication: Option<DeduplicationIndex>,
    ) -> Running {
        calm(&self.world);
        let scenario = &self.world.scenario;
        let (log, died) = (journal.log(), self.died.clone());
        tokio::spawn(commit(self.world.clone(), log.clone(), committer, died.clone(), Rng::with_seed(!self.seed())));
        let options = GathererOptions {
            max_buffer_bytes: scenario.max_buffer_bytes,
            max_table_bytes: scenario.max_buffer_bytes / 2,
            max_table_journal_bytes: scenario.max_table_journal_bytes,
            ..GathererOptions::default()
        };
        let stores = Stores {
            journal: Some(journal),
            dead_letters: Some(Arc::new(self.world.dead_letters())),
            deduplication,
            environment: self.environment(0),
            tracer: None,
        };
        let gatherer = Gatherer::open(self.world.sink(), options, stores, &mut Registry::default(), |_| {});
        let live = LiveGateway { gatherer: gatherer.clone(), world: self.world.clone() };
        self.world.gateways.begins(self.world.gateway, live);
        let mut writers = JoinSet::new();
        for (number, plan) in scenario.writers.iter().enumerate() {
            let writer = Writer {
                world: self.world.clone(),
                gatherer: gatherer.clone(),
                number: self.world.gateway * 100 + number,
                life: self.number,
                plan: plan.clone(),
                inserts: if self.ending.is_some() { MOST_INSERTS } else { LAST_INSERTS },
                random: Rng::with_seed(self.seed() ^ ((number as u64 + 1) << 32)),
            };
            writers.spawn(writer.run());
        }
        Running { gatherer, log, writers, died }
    }

    async fn end(self, ending: Ending, running: Running) -> Result<(), String> {
        let mut random = Rng::with_seed(self.seed());
        let mut skies = JoinSet::new();
        skies.spawn(weather(self.world.clone(), random.fork()));
        let life = Duration::from_millis(random.u64(0..=self.world.scenario.life_ms));
        let ends = async {
            tokio::time::sleep(life).await;
            if let Ending::ShutDown { limit_ms } = ending {
                self.shut_down(&running, Duration::from_millis(limit_ms), random.bool()).await;
            }
        };
        tokio::select! {
            biased;
            () = running.died.notified() => self.world.say(|| "it dies".into()),
            () = ends => self.world.say(|| "it ends".into()),
        }
        Ok(())
    }

    async fn shut_down(&self, running: &Running, limit: Duration, closes: bool) {
        self.world.wind_up(true);
        let left = running.gatherer.shut_down(limit).await;
        self.world.say(|| format!("{left:?}"));
        if left.lost_inserts == 0 {
            self.world.books().ended_clean(self.number);
        }
        if closes {
            running.log.close();
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }

    async fn drain(self, running: Running) -> Result<(), String> {
        let Running { gatherer, log, mut writers, .. } = running;
        let draining = async {
            while let Some(writer) = writers.join_next().await {
                writer.map_err(|error| error.to_string())?;
            }
            if !self.world.scenario.clients.is_empty() {
                self.world.clients_ended.wait().await;
            }
            gatherer.flush(None).await;
            // What still runs at ClickHouse comes to its end, and the journal is told what is done.
            tokio::time::sleep(Duration::from_secs(60)).await;
            Ok::<(), String>(())
        };
        tokio::time::timeout(DRAINS_WITHIN, draining).await.map_err(|_| "it hangs".to_owned())??;
        let now_ms = self.world.time.now_ms();
        self.world.system().end_running(now_ms);
        self.world.books().ended_clean(self.number);
        let (held_bytes, left, usage) = (gatherer.held_bytes(), gatherer.leftovers(), log.usage());
        self.world.say(|| format!("in the end {held_bytes} bytes are held; {left:?}; {usage:?}"));
        let is_empty = held_bytes == 0 && left.inserts == 0 && left.bytes == 0 && usage.live_records == 0;
        let is_small = usage.file_bytes <= 3 * self.world.scenario.segment_bytes.max(4 << 10);
        match is_empty && is_small {
            true => Ok(()),
            false => Err(format!("all is stored, and {held_bytes} bytes are held; {left:?}; {usage:?}")),
        }
    }
}

/// Writes records to the journal, as the committer's thread does, on a disk that takes its time.
async fn commit(world: World, log: Log, mut committer: Committer<SimDisk>, died: Arc<Notify>, mut random: Rng) {
    loop {
        log.work().await;
        while write_one(&world, &mut committer, &mut random).await {}
        world.say(|| format!("    journal: {:?}", log.usage()));
        if !world.is_powered() {
            died.notify_one();
            return std::future::pending().await;
        }
        // What is told to be due and can't be done is not tried again at once.
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

async fn write_one(world: &World, committer: &mut Committer<SimDisk>, random: &mut Rng) -> bool {
    let slowest_ms = world.scenario.slowest_sync_ms;
    if slowest_ms > 0 {
        tokio::time::sleep(Duration::from_millis(random.u64(0..=slowest_ms))).await;
    }
    // The machine may have died on another disk meanwhile.
    if !world.is_powered() {
        return false;
    }
    let has_done = committer.turn();
    tokio::task::yield_now().await;
    has_done && world.is_powered()
}
