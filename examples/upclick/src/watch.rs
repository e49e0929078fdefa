//! Queries the database, again and again, for the outcome of the inserts.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use windrow_clickhouse::CallError;

use crate::probe::Fleet;
use crate::side::Side;
use crate::snapshot::StoreView;
use crate::store::{CityRow, Course, PartCounts};

/// Time between two looks: short enough to see parts pile up, and long enough not to be a load of its own.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// The steps of the last minute, in seconds.
pub(crate) const COURSE_STEP_SECONDS: u64 = 2;
pub(crate) const COURSE_STEPS: usize = 30;

/// The latest answers about one side, shared with those who show them.
#[derive(Debug)]
pub(crate) struct Watched {
    /// The parts that were there before the run.
    before: PartCounts,
    latest: Mutex<Latest>,
    /// Says whether a viewer wants to see the last minute.
    courses_wanted: AtomicBool,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Latest {
    pub store: StoreView,
    pub cities: Vec<CityRow>,
    pub courses: Vec<Course>,
    pub samples: u64,
}

impl Watched {
    pub fn since(before: PartCounts) -> Self {
        Self { before, latest: Mutex::default(), courses_wanted: AtomicBool::new(false) }
    }

    pub fn latest(&self) -> Latest {
        self.lock().clone()
    }

    /// Makes the next look query the courses of the last minute.
    pub fn want_courses(&self) {
        self.courses_wanted.store(true, Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, Latest> {
        // Plain assignments can't panic half-way.
        self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take_parts(&self, parts: PartCounts) {
        let mut latest = self.lock();
        latest.samples += 1;
        latest.store.active_parts = Some(parts.active);
        latest.store.all_parts = Some(parts.all);
        latest.store.parts_created = parts.ever_created.saturating_sub(self.before.ever_created);
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

/// Looks at one side again and again.
pub(crate) async fn look(fleet: Arc<Fleet>, side: usize) {
    let side = &fleet.sides[side];
    let mut turns = tokio::time::interval(LOOK_EVERY);
    turns.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut with_cities = false;
    loop {
        turns.tick().await;
        let outcome = look_once(&fleet, side, with_cities).await;
        side.watched.take_outcome(outcome);
        // Latencies change slowly, and asking for them reads all rows of the run.
        with_cities = !with_cities;
    }
}

/// Looks once at the parts, and at the rows if asked.
pub(crate) async fn look_once(fleet: &Fleet, side: &Side, with_cities: bool) -> Result<(), CallError> {
    let Side { store, client, watched, .. } = side;
    watched.take_parts(store.part_counts(client).await?);
    if !with_cities {
        return Ok(());
    }
    let ago = |time: Duration| SystemTime::now().checked_sub(time).unwrap_or(SystemTime::UNIX_EPOCH);
    watched.take_cities(store.cities(client, ago(fleet.averaged_over())).await?);
    if watched.courses_wanted.swap(false, Ordering::Relaxed) {
        let minute = Duration::from_secs(COURSE_STEP_SECONDS * COURSE_STEPS as u64);
        let courses = store.courses(client, ago(minute), COURSE_STEP_SECONDS, COURSE_STEPS).await?;
        watched.lock().courses = courses;
    }
    Ok(())
}
