//! The life of one probe: it measures, inserts, and waits for its next turn.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use futures::future::join_all;
use tokio::sync::{watch, Semaphore};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior};
use windrow_clickhouse::Client;

use crate::cities::{City, CITIES};
use crate::errors::DemoError;
use crate::side::Side;
use crate::store::Row;
use crate::target::Target;

/// The most rows of a probe that may be on their way to one side. A function in the cloud is called when it
/// is due, whether its last call has ended or not. But a database that doesn't answer is not to be given more
/// and more rows, and is not to hold up the other side.
const MAX_TURNS: usize = 16;
const SHORTEST_AVERAGE: Duration = Duration::from_secs(10);

/// Data that all probes share.
pub(crate) struct Fleet {
    pub sides: Vec<Side>,
    pub targets: Vec<Target>,
    pub probes: usize,
    pub every: Duration,
    pub measurements: Measurements,
}

/// Counts of measurements.
#[derive(Debug, Default)]
pub(crate) struct Measurements {
    made: AtomicU64,
    failed: AtomicU64,
    last_error: Mutex<Option<String>>,
}

impl Measurements {
    /// Returns the number for the next row, which is the same in all tables.
    fn next_number(&self) -> u64 {
        self.made.fetch_add(1, Ordering::Relaxed)
    }

    /// Counts a measurement that failed: a site didn't answer, so there is nothing to insert.
    fn fail(&self, reason: String) {
        self.failed.fetch_add(1, Ordering::Relaxed);
        *self.last_error.lock().unwrap_or_else(PoisonError::into_inner) = Some(reason);
    }

    pub fn failed(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }

    pub fn last_error(&self) -> Option<String> {
        self.last_error.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// One probe, with its own connections.
pub(crate) struct Probe {
    fleet: Arc<Fleet>,
    index: usize,
    city: &'static City,
    /// An inserter for each side.
    inserters: Vec<Inserter>,
    site: Client,
}

struct Inserter {
    client: Client,
    room: Semaphore,
}

impl Probe {
    pub fn new(fleet: Arc<Fleet>, index: usize) -> Result<Self, DemoError> {
        let inserter =
            |side: &Side| Ok(Inserter { client: side.store.client(MAX_TURNS)?, room: Semaphore::new(MAX_TURNS) });
        let inserters = fleet.sides.iter().map(inserter).collect::<Result<Vec<_>, DemoError>>()?;
        let site = fleet.target_of(index).client()?;
        Ok(Self { fleet, index, city: &CITIES[index % CITIES.len()], inserters, site })
    }

    /// Measures and inserts until it is told to stop. Turns that have begun are finished first: their rows count.
    pub async fn live(self, began: Instant, mut stop: watch::Receiver<bool>) {
        let probe = Arc::new(self);
        let mut turns = tokio::time::interval_at(began + probe.fleet.first_turn(probe.index), probe.fleet.every);
        // Turns that were missed stay so: making up for them would be another load.
        turns.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let (mut under_way, most) = (JoinSet::new(), MAX_TURNS * probe.inserters.len());
        loop {
            tokio::select! {
                biased;
                () = stopped(&mut stop) => break,
                Some(_) = under_way.join_next() => {}
                _ = turns.tick() => if under_way.len() < most {
                    under_way.spawn(probe.clone().turn());
                },
            }
        }
        while under_way.join_next().await.is_some() {}
    }

    async fn turn(self: Arc<Self>) {
        let target = self.fleet.target_of(self.index);
        let time = SystemTime::now();
        let latency = match target.measure(&self.site, self.city).await {
            Ok(latency) => latency,
            Err(reason) => return self.fleet.measurements.fail(format!("{}: {reason}", target.url)),
        };
        let number = self.fleet.measurements.next_number();
        let row = Row { number, probe: self.index, city: self.city, url: &target.url, time, latency };
        let insert = async |side: &Side, inserter: &Inserter| {
            if let Ok(_room) = inserter.room.try_acquire() {
                side.insert(&inserter.client, &row).await;
            }
        };
        join_all(self.fleet.sides.iter().zip(&self.inserters).map(|(side, inserter)| insert(side, inserter))).await;
    }
}

/// Waits until the probe is told to stop, or the sender is gone.
pub(crate) async fn stopped(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stopped| *stopped).await;
}

impl Fleet {
    /// Returns the site of a probe. The probes of a city are spread over the sites.
    fn target_of(&self, index: usize) -> &Target {
        &self.targets[index / CITIES.len() % self.targets.len()]
    }

    /// Returns the time that a city's average covers.
    pub fn averaged_over(&self) -> Duration {
        self.every.max(SHORTEST_AVERAGE)
    }

    /// Returns the time of a probe's first turn. The probes take turns evenly over the interval: n of them in
    /// m seconds.
    fn first_turn(&self, index: usize) -> Duration {
        first_turn(self.every, index, self.probes)
    }
}

fn first_turn(every: Duration, index: usize, probes: usize) -> Duration {
    every.mul_f64(index as f64 / probes.max(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_are_spread_evenly_over_the_interval() {
        let every = Duration::from_secs(10);
        let turns: Vec<Duration> = (0..200).map(|index| first_turn(every, index, 200)).collect();
        assert_eq!(turns[0], Duration::ZERO);
        for pair in turns.windows(2) {
            let gap_ms = (pair[1] - pair[0]).as_secs_f64() * 1000.0;
            assert!((gap_ms - 50.0).abs() < 0.01, "{gap_ms}");
        }
        assert!(turns.last().is_some_and(|last| *last < every));
        assert_eq!(first_turn(every, 0, 1), Duration::ZERO);
    }
}
