//! Makes one picture of a run from its counters: rates, the past second by second, averages.

use std::time::Duration;

use tokio::time::Instant;

use crate::cities::CITIES;
use crate::cpu::cpu_seconds;
use crate::options::{DemoOptions, Inserts, PidSource};
use crate::probe::Fleet;
use crate::rate::Rate;
use crate::side::Side;
use crate::snapshot::{Averages, CityView, Point, SideView, Snapshot};
use crate::watch::{Latest, COURSE_STEPS};

const RATES_OVER: Duration = Duration::from_secs(5);
/// The most points that are kept: one a second for ten minutes.
const MAX_POINTS: usize = 600;
/// Time after which averages are shown. Before it they mean nothing.
const AVERAGES_FROM: Duration = Duration::from_secs(5);

pub(crate) struct Observer {
    began: Instant,
    title: String,
    subtitle: String,
    page: String,
    kpi_ms: f64,
    gateway: Cpu,
    sides: Vec<Observed>,
}

/// The values of one side that are kept from one picture to the next.
struct Observed {
    inserts: Rate,
    parts: Rate,
    database: Cpu,
    past: Vec<Point>,
}

/// The use of the processor by a process.
struct Cpu {
    pid: PidSource,
    recent: Rate,
    last_seconds: Option<f64>,
    used_seconds: f64,
}

impl Cpu {
    fn new(pid: &PidSource) -> Self {
        Self { pid: pid.clone(), recent: Rate::over(RATES_OVER), last_seconds: None, used_seconds: 0.0 }
    }

    /// Returns the recent use in per cent of one core.
    fn percent(&mut self, at: Duration) -> Option<f64> {
        let seconds = (self.pid)().and_then(cpu_seconds)?;
        self.recent.read(at, seconds);
        // A process that was started anew begins at 0.
        self.used_seconds += (seconds - self.last_seconds.unwrap_or(seconds)).max(0.0);
        self.last_seconds = Some(seconds);
        self.recent.per_second().map(|share| share * 100.0)
    }

    /// Returns the average use since the beginning, in per cent of one core.
    fn average_percent(&self, elapsed: Duration) -> Option<f64> {
        self.last_seconds.map(|_| 100.0 * self.used_seconds / elapsed.as_secs_f64().max(0.001))
    }
}

impl Observer {
    pub fn new(options: &DemoOptions, page: String, fleet: &Fleet, began: Instant) -> Self {
        let every_s = options.every.as_secs_f64();
        let cities = options.probes.min(CITIES.len());
        let observed = |side: &Side| Observed {
            inserts: Rate::over(RATES_OVER),
            parts: Rate::over(RATES_OVER),
            database: Cpu::new(&side.database_pid),
            past: Vec::new(),
        };
        Self {
            began,
            title: format!("{} probes in {cities} cities, one row each every {every_s} s", options.probes),
            subtitle: subtitle(options, fleet),
            page,
            kpi_ms: options.kpi_ms,
            gateway: Cpu::new(&options.gateway_pid),
            sides: fleet.sides.iter().map(observed).collect(),
        }
    }

    pub fn observe(&mut self, fleet: &Fleet) -> Snapshot {
        let elapsed = self.began.elapsed();
        let looks: Vec<Latest> = fleet.sides.iter().map(|side| side.watched.latest()).collect();
        let sides = self.sides.iter_mut().zip(&fleet.sides).zip(&looks);
        let sides: Vec<SideView> =
            sides.map(|((observed, side), latest)| observed.view(side, latest, elapsed)).collect();
        Snapshot {
            elapsed,
            title: self.title.clone(),
            subtitle: self.subtitle.clone(),
            page: self.page.clone(),
            gateway_cpu_percent: self.gateway.percent(elapsed),
            cities: looks.first().map(city_views).unwrap_or_default(),
            kpi_ms: self.kpi_ms,
            averaged_over: fleet.averaged_over(),
            last_error: fleet.measurements.last_error(),
            sentence: (elapsed >= AVERAGES_FROM).then(|| sentence(&sides)).flatten(),
            sides,
            ending: false,
            ended: false,
        }
    }
}

impl Observed {
    fn view(&mut self, side: &Side, latest: &Latest, elapsed: Duration) -> SideView {
        let results = side.results.view();
        self.inserts.read(elapsed, results.sent as f64);
        self.parts.read(elapsed, latest.store.parts_created as f64);
        let database_cpu_percent = self.database.percent(elapsed);
        let parts_per_second = self.parts.per_second();
        self.remember(Point {
            second: elapsed.as_secs(),
            parts_per_second,
            active_parts: latest.store.active_parts,
            all_parts: latest.store.all_parts,
            database_cpu_percent,
        });
        SideView {
            name: side.name.clone(),
            is_straight: side.is_straight,
            engine: side.store.engine,
            results,
            inserts_per_second: self.inserts.per_second(),
            parts_per_second,
            database_cpu_percent,
            average: Averages {
                parts_per_second: latest.store.parts_created as f64 / elapsed.as_secs_f64().max(0.001),
                database_cpu_percent: self.database.average_percent(elapsed),
            },
            store: latest.store.clone(),
            past: self.past.clone(),
        }
    }

    fn remember(&mut self, point: Point) {
        // Where the clock has jumped over a second, it was like this one.
        let next = self.past.last().map_or(point.second, |last| last.second + 1);
        self.past.extend((next..=point.second).map(|second| Point { second, ..point }));
        self.past.drain(..self.past.len().saturating_sub(MAX_POINTS));
    }
}

/// Returns a sentence that compares straight inserts with those through Windrow.
fn sentence(sides: &[SideView]) -> Option<String> {
    let through = sides.iter().find(|side| !side.is_straight)?;
    let straight = sides.iter().find(|side| side.is_straight)?;
    Some(straight.average.became(&through.average, through.engine))
}

fn subtitle(options: &DemoOptions, fleet: &Fleet) -> String {
    let of = |(destination, side): (&crate::options::Destination, &Side)| {
        let flush_ms = destination.flush_after.as_millis();
        let how = match destination.inserts {
            Inserts::Synchronous => "synchronous inserts".to_owned(),
            Inserts::Waiting => format!("waiting until stored, flush after {flush_ms} ms"),
            Inserts::NotWaiting => format!("without waiting, flush after {flush_ms} ms"),
        };
        format!("{} at {}, {how}", side.name, destination.address())
    };
    options.destinations.iter().zip(&fleet.sides).map(of).collect::<Vec<_>>().join("; ")
}

/// Returns the cities in the order of the list, in whatever order the database returned them.
fn city_views(latest: &Latest) -> Vec<CityView> {
    let view = |city: &'static crate::cities::City| CityView {
        city,
        average_ms: latest.cities.iter().find(|row| row.city == city.name).and_then(|row| row.average_ms),
        course_ms: latest
            .courses
            .iter()
            .find(|course| course.city == city.name)
            .map_or_else(|| vec![None; COURSE_STEPS], |course| course.averages_ms.clone()),
    };
    CITIES.iter().map(view).collect()
}
