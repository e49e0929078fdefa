//! Asks ClickHouse, again and again, what has become of the inserts.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use tokio::sync::watch;
use windrow_clickhouse::{CallError, Client};

use crate::cities::CITIES;
use crate::probe::{stopped, Fleet};
use crate::snapshot::{CityView, StoreView};
use crate::store::{CityRow, PartCounts};

/// Often enough to see parts pile up, seldom enough not to be a load of its own.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// The latest answers, shared with whoever draws them.
#[derive(Debug, Default)]
pub(crate) struct Watched(Mutex<Latest>);

#[derive(Debug, Clone, Default)]
pub(crate) struct Latest {
    pub store: StoreView,
    pub cities: Vec<CityRow>,
    pub samples: u64,
}

impl Watched {
    pub fn latest(&self) -> Latest {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Latest> {
        // Plain assignments can't panic half-way.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take_parts(&self, parts: PartCounts, baseline: PartCounts) {
        let mut latest = self.lock();
        latest.samples += 1;
        latest.store.active_parts = Some(parts.active);
        latest.store.all_parts = Some(parts.all);
        latest.store.parts_created = parts.ever_created.saturating_sub(baseline.ever_created);
        latest.store.most_active_parts = latest.store.most_active_parts.max(parts.active);
    }

    fn take_cities(&self, cities: Vec<CityRow>) {
        let mut latest = self.lock();
        latest.store.found = Some(cities.iter().map(|city| city.rows).sum());
        latest.cities = cities;
    }

    fn take_outcome(&self, outcome: Result<(), CallError>) {
        self.lock().store.problem = outcome.err().map(|error| error.to_string());
    }
}

/// Looks until told to stop. `baseline` are the parts that were there before.
pub(crate) async fn look(
    fleet: Arc<Fleet>,
    client: Client,
    watched: Arc<Watched>,
    baseline: PartCounts,
    mut stop: watch::Receiver<bool>,
) {
    let mut turns = tokio::time::interval(LOOK_EVERY);
    turns.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut with_cities = false;
    loop {
        tokio::select! {
            biased;
            () = stopped(&mut stop) => return,
            _ = turns.tick() => {}
        }
        let outcome = look_once(&fleet, &client, &watched, baseline, with_cities).await;
        watched.take_outcome(outcome);
        // Latencies change slowly, and asking for them reads all rows of the run.
        with_cities = !with_cities;
    }
}

/// One look at the parts, and at the rows if asked.
pub(crate) async fn look_once(
    fleet: &Fleet,
    client: &Client,
    watched: &Watched,
    baseline: PartCounts,
    with_cities: bool,
) -> Result<(), CallError> {
    watched.take_parts(fleet.store.part_counts(client).await?, baseline);
    if with_cities {
        let since = SystemTime::now().checked_sub(fleet.every).unwrap_or(SystemTime::UNIX_EPOCH);
        watched.take_cities(fleet.store.cities(client, since).await?);
    }
    Ok(())
}

/// In the order of the list, whatever ClickHouse's order was.
pub(crate) fn city_views(rows: &[CityRow]) -> Vec<CityView> {
    let average = |name: &str| rows.iter().find(|row| row.city == name).and_then(|row| row.average_ms);
    CITIES.iter().map(|city| CityView { name: city.name, average_ms: average(city.name) }).collect()
}
