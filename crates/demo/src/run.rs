//! A run from beginning to end.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use tokio::signal::unix::{signal, Signal, SignalKind};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;
use windrow_client::{CallError, Client};

use crate::cities::CITIES;
use crate::cpu::cpu_seconds;
use crate::errors::DemoError;
use crate::ledger::Ledger;
use crate::options::{DemoOptions, PidSource};
use crate::plain;
use crate::probe::{Fleet, Probe};
use crate::rate::Rate;
use crate::screen;
use crate::sites::Sites;
use crate::snapshot::Snapshot;
use crate::store::{PartCounts, RunId, Store};
use crate::summary::DemoSummary;
use crate::target::Target;
use crate::terminal::Terminal;
use crate::watch::{city_views, look, look_once, Watched};

/// How long rows of a run that doesn't wait may take to appear after the last insert.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(15);
const SETTLE_POLL: Duration = Duration::from_millis(100);
const REDRAW_EVERY: Duration = Duration::from_millis(300);
const PRINT_EVERY: Duration = Duration::from_secs(1);
const RATES_OVER: Duration = Duration::from_secs(5);

/// Plays the demo, prints its summary, and fails if a row is missing or an insert failed.
///
/// Ends after `run_for`, or on Ctrl-C or SIGTERM: probes finish their turn first. A second signal ends it without them.
pub async fn run(options: DemoOptions) -> Result<DemoSummary, DemoError> {
    options.check()?;
    let sites = if options.urls.is_empty() { Some(Sites::start().await.map_err(DemoError::Sites)?) } else { None };
    let urls = sites.as_ref().map_or_else(|| options.urls.clone(), Sites::urls);
    let targets = urls.iter().map(|url| Target::parse(url, sites.is_some())).collect::<Result<Vec<_>, _>>()?;
    let store = Store::new(&options, RunId::random()?)?;
    let client = store.client()?;
    store.create_table(&client).await?;
    let ledger = Ledger::new(options.every);
    let fleet = Arc::new(Fleet { store, targets, ledger, probes: options.probes, every: options.every });
    let run = Run::start(&options, fleet, client).await?;
    let summary = run.finish(&options).await?;
    // Whoever closed the pipe didn't want to read it.
    let _ = writeln!(std::io::stdout(), "{summary}");
    match summary.is_complete() {
        true => Ok(summary),
        false => Err(DemoError::Incomplete(Box::new(summary))),
    }
}

struct Run {
    fleet: Arc<Fleet>,
    client: Client,
    baseline: PartCounts,
    watched: Arc<Watched>,
    probes: JoinSet<()>,
    stop_probes: watch::Sender<bool>,
    began: Instant,
}

impl Run {
    async fn start(options: &DemoOptions, fleet: Arc<Fleet>, client: Client) -> Result<Self, DemoError> {
        let asked = fleet.store.part_counts(&client).await;
        let baseline =
            asked.map_err(|error| DemoError::Gateway { what: "read system.parts", reason: error.to_string() })?;
        let all = (0..options.probes).map(|index| Probe::new(fleet.clone(), index)).collect::<Result<Vec<_>, _>>()?;
        let (stop_probes, stopped) = watch::channel(false);
        let began = Instant::now();
        let mut probes = JoinSet::new();
        for probe in all {
            probes.spawn(probe.live(began, stopped.clone()));
        }
        Ok(Self { fleet, client, baseline, watched: Arc::default(), probes, stop_probes, began })
    }

    async fn finish(mut self, options: &DemoOptions) -> Result<DemoSummary, DemoError> {
        let (stop_looking, looking_stopped) = watch::channel(false);
        let looker = self.fleet.store.client()?;
        let looks =
            tokio::spawn(look(self.fleet.clone(), looker, self.watched.clone(), self.baseline, looking_stopped));
        let mut display = Display::open(options, self.began);
        self.show_until_done(options, &mut display).await;
        let elapsed = self.began.elapsed();
        // Nobody listens when the look has failed already.
        let _ = stop_looking.send(true);
        let _ = looks.await;
        let outcome = self.settle(options).await;
        display.close(&self.fleet, &self.watched);
        outcome?;
        self.summarise(elapsed, options).await
    }

    async fn show_until_done(&mut self, options: &DemoOptions, display: &mut Display) {
        let mut signals = Signals::listen();
        let deadline = options.run_for.map(|run_for| self.began + run_for);
        let mut turns = tokio::time::interval(display.redraw_every());
        let mut stopping = false;
        loop {
            tokio::select! {
                _ = turns.tick() => display.show(&self.fleet, &self.watched),
                () = signals.next() => {
                    if stopping {
                        return self.probes.abort_all();
                    }
                    stopping = true;
                }
                () = reached(deadline), if !stopping => stopping = true,
                ended = self.probes.join_next(), if stopping => if ended.is_none() { return },
            }
            if stopping {
                self.stop_probes.send_replace(true);
            }
        }
    }

    /// A last look, when everything that was acknowledged can be there.
    async fn settle(&self, options: &DemoOptions) -> Result<(), DemoError> {
        let deadline = Instant::now() + SETTLE_TIMEOUT;
        if !options.wait {
            // A server without a queue of its own has stored everything already, and refuses.
            let _ = self.fleet.store.flush(&self.client).await;
        }
        loop {
            // A ClickHouse that has just died is being started again.
            let outcome = look_once(&self.fleet, &self.client, &self.watched, self.baseline, true).await;
            let is_all_there = self.watched.latest().store.found >= Some(self.fleet.ledger.view().acknowledged);
            match outcome {
                Ok(()) if is_all_there || options.wait || Instant::now() >= deadline => return Ok(()),
                Err(error) if Instant::now() >= deadline => return Err(self.unreadable(&error)),
                _ => tokio::time::sleep(SETTLE_POLL).await,
            }
        }
    }

    fn unreadable(&self, error: &CallError) -> DemoError {
        let view = self.fleet.ledger.view();
        let rows = format!("{} rows were inserted, {} acknowledged", view.sent, view.acknowledged);
        DemoError::Gateway { what: "look up the rows in ClickHouse", reason: format!("{error} ({rows})") }
    }

    async fn summarise(&self, elapsed: Duration, options: &DemoOptions) -> Result<DemoSummary, DemoError> {
        let found = self.fleet.store.found_ids(&self.client).await;
        let found =
            found.map_err(|error| DemoError::Gateway { what: "read the rows' ids", reason: error.to_string() })?;
        let ledger = &self.fleet.ledger;
        let view = ledger.view();
        let latest = self.watched.latest();
        Ok(DemoSummary {
            elapsed,
            probes: options.probes,
            cities: options.probes.min(CITIES.len()),
            inserted: view.sent,
            acknowledged: view.acknowledged,
            found: found.rows,
            missing: ledger.missing_from(&found.numbers),
            duplicated: found.rows.saturating_sub(found.numbers.count),
            failures: view.failures,
            last_error: view.last_error,
            unreachable: view.unreachable,
            parts_created: latest.store.parts_created,
            most_active_parts: latest.store.most_active_parts,
            part_samples: latest.samples,
            ack_p50_ms: ledger.quantile_ms(0.5),
            ack_p99_ms: ledger.quantile_ms(0.99),
        })
    }
}

async fn reached(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// Ctrl-C and SIGTERM. Where they can't be caught they end the process, as they would anyway.
struct Signals {
    interrupt: Option<Signal>,
    terminate: Option<Signal>,
}

impl Signals {
    fn listen() -> Self {
        Self { interrupt: signal(SignalKind::interrupt()).ok(), terminate: signal(SignalKind::terminate()).ok() }
    }

    async fn next(&mut self) {
        tokio::select! {
            () = received(&mut self.interrupt) => {}
            () = received(&mut self.terminate) => {}
        }
    }
}

async fn received(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => _ = signal.recv().await,
        None => std::future::pending().await,
    }
}

/// Where the run is shown, and what must be remembered from one picture to the next.
struct Display {
    terminal: Option<Terminal>,
    title: String,
    subtitle: String,
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
    fn open(options: &DemoOptions, began: Instant) -> Self {
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
            kpi_ms: options.kpi_ms,
            began,
            inserts: Rate::over(RATES_OVER),
            parts: Rate::over(RATES_OVER),
            gateway: Process::new(&options.gateway_pid),
            clickhouse: Process::new(&options.clickhouse_pid),
        }
    }

    fn redraw_every(&self) -> Duration {
        if self.terminal.is_some() {
            REDRAW_EVERY
        } else {
            PRINT_EVERY
        }
    }

    fn show(&mut self, fleet: &Fleet, watched: &Watched) {
        let snapshot = self.snapshot(fleet, watched);
        // A terminal that went away, or a closed pipe, is no reason to stop a run that others may watch by its rows.
        let _ = match &self.terminal {
            Some(terminal) => terminal.show(&screen::draw(&snapshot, terminal.canvas())),
            None => writeln!(std::io::stdout(), "{}", plain::line(&snapshot)),
        };
    }

    fn close(mut self, fleet: &Fleet, watched: &Watched) {
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
        let ledger = fleet.ledger.view();
        self.inserts.read(elapsed, ledger.sent as f64);
        self.parts.read(elapsed, latest.store.parts_created as f64);
        Snapshot {
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
            ledger,
        }
    }
}

fn without_credentials(url: &str) -> String {
    match (url.split_once("://"), url.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, address))) => format!("{scheme}://{address}"),
        _ => url.to_owned(),
    }
}
