//! The picture of a run at one moment.

use std::time::Duration;

use crate::cities::City;
use crate::engine::Engine;
use crate::probe_results::ProbeResultsView;

#[derive(Debug, Clone, Default)]
pub(crate) struct Snapshot {
    pub elapsed: Duration,
    /// A short name of the run.
    pub title: String,
    /// The databases and the settings of the run.
    pub subtitle: String,
    /// The address of the page with the map.
    pub page: String,
    /// The sides. The cities' figures are those of the first one.
    pub sides: Vec<SideView>,
    pub gateway_cpu_percent: Option<f64>,
    pub cities: Vec<CityView>,
    pub kpi_ms: f64,
    /// Time that the averages cover.
    pub averaged_over: Duration,
    /// The last measurement that failed.
    pub last_error: Option<String>,
    /// A sentence that compares the sides, once there is enough to say.
    pub sentence: Option<String>,
    /// Says whether the time is up, and answers are awaited.
    pub ending: bool,
    pub ended: bool,
}

/// The figures of one way for rows to go.
#[derive(Debug, Clone, Default)]
pub(crate) struct SideView {
    pub name: String,
    pub is_straight: bool,
    pub engine: Engine,
    pub results: ProbeResultsView,
    pub store: StoreView,
    pub inserts_per_second: Option<f64>,
    pub parts_per_second: Option<f64>,
    pub database_cpu_percent: Option<f64>,
    /// Averages of the whole run.
    pub average: Averages,
    pub past: Vec<Point>,
}

/// One second of the past.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Point {
    pub second: u64,
    pub parts_per_second: Option<f64>,
    pub active_parts: Option<u64>,
    pub all_parts: Option<u64>,
    pub database_cpu_percent: Option<f64>,
}

/// Averages of a side over the whole run.
#[derive(Debug, Clone, Copy, Default)]
pub struct Averages {
    pub parts_per_second: f64,
    /// Use of the processor in per cent of one core; `None` when the database's process can't be seen.
    pub database_cpu_percent: Option<f64>,
}

impl Averages {
    /// Returns a text that compares these averages with `after`.
    pub(crate) fn became(&self, after: &Averages, engine: Engine) -> String {
        let (pieces, name) = (engine.pieces(), engine.name());
        let rates = format!("{} {pieces}/s became {}", short(self.parts_per_second), short(after.parts_per_second));
        match (self.database_cpu_percent, after.database_cpu_percent) {
            (Some(before), Some(after)) => format!("{rates}; {name}'s CPU {before:.0} % became {after:.0} %"),
            _ => rates,
        }
    }
}

/// Writes a number as `200`, `1.2` or `1`.
fn short(value: f64) -> String {
    let text = if value >= 9.95 { format!("{value:.0}") } else { format!("{value:.1}") };
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

/// The latest answers of the database.
#[derive(Debug, Clone, Default)]
pub(crate) struct StoreView {
    pub found: Option<u64>,
    pub active_parts: Option<u64>,
    pub all_parts: Option<u64>,
    /// Count of parts that were made since the run began.
    pub parts_created: u64,
    pub most_active_parts: u64,
    /// The error of the last query, if it failed.
    pub problem: Option<String>,
}

#[derive(Debug, Clone)]
pub(crate) struct CityView {
    pub city: &'static City,
    pub average_ms: Option<f64>,
    /// The averages of each step. An average that was not queried is unknown.
    pub course_ms: Vec<Option<f64>>,
}

impl Snapshot {
    /// Returns the latest error, if something is wrong.
    pub fn problem(&self) -> Option<&String> {
        let sides =
            self.sides.iter().filter_map(|side| side.results.last_error.as_ref().or(side.store.problem.as_ref()));
        self.last_error.as_ref().into_iter().chain(sides).next()
    }

    /// Returns how many rows were sent and are not answered yet.
    pub fn unanswered(&self) -> u64 {
        let of_side =
            |side: &SideView| side.results.sent.saturating_sub(side.results.acknowledged + side.results.failures);
        self.sides.iter().map(of_side).sum()
    }

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

/// Shows a number that may not be known yet.
pub(crate) fn shown<T>(value: Option<T>, show: impl Fn(T) -> String) -> String {
    value.map_or("-".to_owned(), show)
}

pub(crate) fn shown_ms(value: Option<f64>) -> String {
    shown(value, |ms| if ms < 10.0 { format!("{ms:.1} ms") } else { format!("{ms:.0} ms") })
}

/// Shows a time as `m:ss`, or with hours.
pub(crate) fn shown_clock(elapsed: Duration) -> String {
    let seconds = elapsed.as_secs();
    match seconds / 3600 {
        0 => format!("{}:{:02}", seconds / 60, seconds % 60),
        hours => format!("{hours}:{:02}:{:02}", seconds / 60 % 60, seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_became_of_it_is_a_sentence() {
        let straight = Averages { parts_per_second: 199.6, database_cpu_percent: Some(57.2) };
        let through = Averages { parts_per_second: 1.04, database_cpu_percent: Some(5.9) };
        let became = straight.became(&through, Engine::ClickHouse);
        assert_eq!(became, "200 parts/s became 1; ClickHouse's CPU 57 % became 6 %");
        let unseen = Averages { database_cpu_percent: None, ..straight };
        assert_eq!(unseen.became(&through, Engine::ClickHouse), "200 parts/s became 1");
    }
}
