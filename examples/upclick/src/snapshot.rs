//! Everything that is shown, at one moment.

use std::time::Duration;

use crate::engine::Engine;
use crate::probe_results::ProbeResultsView;

#[derive(Debug, Clone, Default)]
pub(crate) struct Snapshot {
    pub elapsed: Duration,
    pub engine: Engine,
    /// What runs, in a few words.
    pub title: String,
    /// Against what, and with which settings.
    pub subtitle: String,
    pub results: ProbeResultsView,
    pub store: StoreView,
    pub inserts_per_second: Option<f64>,
    pub parts_per_second: Option<f64>,
    pub clickhouse_cpu_percent: Option<f64>,
    pub gateway_cpu_percent: Option<f64>,
    pub cities: Vec<CityView>,
    pub kpi_ms: f64,
    /// What the averages cover.
    pub averaged_over: Duration,
}

/// What the database said last.
#[derive(Debug, Clone, Default)]
pub(crate) struct StoreView {
    pub found: Option<u64>,
    pub active_parts: Option<u64>,
    pub all_parts: Option<u64>,
    /// Since the run began.
    pub parts_created: u64,
    pub most_active_parts: u64,
    /// Why the last question failed.
    pub problem: Option<String>,
}

#[derive(Debug, Clone)]
pub(crate) struct CityView {
    pub name: &'static str,
    pub average_ms: Option<f64>,
}

impl Snapshot {
    pub fn above_kpi(&self, city: &CityView) -> bool {
        city.average_ms.is_some_and(|average| average > self.kpi_ms)
    }

    pub fn count_above_kpi(&self) -> usize {
        self.cities.iter().filter(|city| self.above_kpi(city)).count()
    }

    pub fn count_measured(&self) -> usize {
        self.cities.iter().filter(|city| city.average_ms.is_some()).count()
    }
}

/// A number that may not be known yet.
pub(crate) fn shown<T>(value: Option<T>, show: impl Fn(T) -> String) -> String {
    value.map_or("-".to_owned(), show)
}

pub(crate) fn shown_ms(value: Option<f64>) -> String {
    shown(value, |ms| if ms < 10.0 { format!("{ms:.1} ms") } else { format!("{ms:.0} ms") })
}

/// `m:ss`, or with hours.
pub(crate) fn shown_clock(elapsed: Duration) -> String {
    let seconds = elapsed.as_secs();
    match seconds / 3600 {
        0 => format!("{}:{:02}", seconds / 60, seconds % 60),
        hours => format!("{hours}:{:02}:{:02}", seconds / 60 % 60, seconds % 60),
    }
}
