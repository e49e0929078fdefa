//! Shows a run while it lasts, on a terminal or as lines.

use std::io::Write;
use std::time::Duration;

use tokio::time::Instant;

use crate::cities::CITIES;
use crate::cpu::cpu_seconds;
use crate::engine::Engine;
use crate::options::{DemoOptions, PidSource};
use crate::plain;
use crate::probe::Fleet;
use crate::rate::Rate;
use crate::screen;
use crate::snapshot::Snapshot;
use crate::terminal::Terminal;
use crate::watch::{city_views, Watched};

const REDRAW_EVERY: Duration = Duration::from_millis(300);
const PRINT_EVERY: Duration = Duration::from_secs(1);
const RATES_OVER: Duration = Duration::from_secs(5);

/// Where the run is shown, and what must be remembered from one picture to the next.
pub(crate) struct Display {
    terminal: Option<Terminal>,
    title: String,
    subtitle: String,
    engine: Engine,
    kpi_ms: f64,
    began: Instant,
    inserts: Rate,
    parts: Rate,
    gateway: Process,
    clickhouse: Process,
}

struct Process {
    pid: PidSource,
    cpu: Rate,
}

impl Process {
    fn new(pid: &PidSource) -> Self {
        Self { pid: pid.clone(), cpu: Rate::over(RATES_OVER) }
    }

    /// Of one core.
    fn cpu_percent(&mut self, at: Duration) -> Option<f64> {
        let used_seconds = (self.pid)().and_then(cpu_seconds)?;
        self.cpu.read(at, used_seconds);
        self.cpu.per_second().map(|share| share * 100.0)
    }
}

impl Display {
    pub fn open(options: &DemoOptions, began: Instant) -> Self {
        let terminal = Terminal::open(options.output);
        let every_s = options.every.as_secs_f64();
        let cities = options.probes.min(CITIES.len());
        let how = if options.wait { "waiting until stored" } else { "without waiting" };
        let flush_ms = options.flush_after.as_millis();
        Self {
            terminal,
            title: format!("{} probes in {cities} cities, one row each every {every_s} s", options.probes),
            subtitle: format!(
                "through {}, {how}, flush after {flush_ms} ms",
                without_credentials(&options.gateway_url)
            ),
            engine: options.engine,
            kpi_ms: options.kpi_ms,
            began,
            inserts: Rate::over(RATES_OVER),
            parts: Rate::over(RATES_OVER),
            gateway: Process::new(&options.gateway_pid),
            clickhouse: Process::new(&options.clickhouse_pid),
        }
    }

    pub fn redraw_every(&self) -> Duration {
        if self.terminal.is_some() {
            REDRAW_EVERY
        } else {
            PRINT_EVERY
        }
    }

    pub fn show(&mut self, fleet: &Fleet, watched: &Watched) {
        let snapshot = self.snapshot(fleet, watched);
        // A terminal that went away, or a closed pipe, is no reason to stop a run that others may watch by its rows.
        let _ = match &self.terminal {
            Some(terminal) => terminal.show(&screen::draw(&snapshot, terminal.canvas())),
            None => writeln!(std::io::stdout(), "{}", plain::line(&snapshot)),
        };
    }

    pub fn close(mut self, fleet: &Fleet, watched: &Watched) {
        let snapshot = self.snapshot(fleet, watched);
        if let Some(terminal) = self.terminal {
            let mut lines = screen::draw(&snapshot, terminal.canvas());
            // The hint or error at the bottom; the summary tells the latter again.
            lines.pop();
            let _ = terminal.close_with(&lines);
        }
    }

    fn snapshot(&mut self, fleet: &Fleet, watched: &Watched) -> Snapshot {
        let elapsed = self.began.elapsed();
        let latest = watched.latest();
        let results = fleet.results.view();
        self.inserts.read(elapsed, results.sent as f64);
        self.parts.read(elapsed, latest.store.parts_created as f64);
        Snapshot {
            engine: self.engine,
            elapsed,
            title: self.title.clone(),
            subtitle: self.subtitle.clone(),
            inserts_per_second: self.inserts.per_second(),
            parts_per_second: self.parts.per_second(),
            clickhouse_cpu_percent: self.clickhouse.cpu_percent(elapsed),
            gateway_cpu_percent: self.gateway.cpu_percent(elapsed),
            cities: city_views(&latest.cities),
            kpi_ms: self.kpi_ms,
            averaged_over: fleet.every,
            store: latest.store,
            results,
        }
    }
}

fn without_credentials(url: &str) -> String {
    match (url.split_once("://"), url.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, address))) => format!("{scheme}://{address}"),
        _ => url.to_owned(),
    }
}
