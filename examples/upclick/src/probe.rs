//! The life of one probe: measure, insert, wait for its next turn.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior};
use windrow_clickhouse::Client;

use crate::cities::{City, CITIES};
use crate::errors::DemoError;
use crate::probe_results::ProbeResults;
use crate::store::{Row, Store};
use crate::target::Target;

/// What all probes share.
pub(crate) struct Fleet {
    pub store: Store,
    pub targets: Vec<Target>,
    pub results: ProbeResults,
    pub probes: usize,
    pub every: Duration,
}

/// One of them, with its own connections.
pub(crate) struct Probe {
    fleet: Arc<Fleet>,
    index: usize,
    city: &'static City,
    gateway: Client,
    site: Client,
}

impl Probe {
    pub fn new(fleet: Arc<Fleet>, index: usize) -> Result<Self, DemoError> {
        let gateway = fleet.store.client()?;
        let site = fleet.target_of(index).client()?;
        Ok(Self { fleet, index, city: &CITIES[index % CITIES.len()], gateway, site })
    }

    /// Goes on until told to stop. A turn that has begun is finished first: its row counts.
    pub async fn live(self, began: Instant, mut stop: watch::Receiver<bool>) {
        let mut turns = tokio::time::interval_at(began + self.fleet.first_turn(self.index), self.fleet.every);
        // An acknowledgement that took longer than the interval costs turns; making up for them would be another load.
        turns.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            tokio::select! {
                biased;
                () = stopped(&mut stop) => return,
                _ = turns.tick() => self.turn().await,
            }
        }
    }

    async fn turn(&self) {
        let target = self.fleet.target_of(self.index);
        let results = &self.fleet.results;
        let time = SystemTime::now();
        let latency = match target.measure(&self.site, self.city).await {
            Ok(latency) => latency,
            Err(reason) => return results.unreachable(format!("{}: {reason}", target.url)),
        };
        let number = results.next_number();
        let row = Row { number, probe: self.index, city: self.city, url: &target.url, time, latency };
        let sent = Instant::now();
        match self.fleet.store.insert(&self.gateway, &row).await {
            Ok(()) => results.acknowledged(number, sent.elapsed()),
            Err(error) => results.failed(error.to_string()),
        }
    }
}

/// Waits for the word to stop, or for its sender to be gone.
pub(crate) async fn stopped(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stopped| *stopped).await;
}

impl Fleet {
    /// Probes of a city are spread over the sites.
    fn target_of(&self, index: usize) -> &Target {
        &self.targets[index / CITIES.len() % self.targets.len()]
    }

    /// The probes take their turns one after the other, evenly over the interval: n of them in m seconds.
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
