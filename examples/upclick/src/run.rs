//! A run from beginning to end.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;
use windrow_clickhouse::CallError;

use crate::cities::CITIES;
use crate::display::Display;
use crate::errors::DemoError;
use crate::observer::Observer;
use crate::options::{Browser, DemoOptions};
use crate::page::{open_in_browser, Page};
use crate::probe::{Fleet, Measurements, Probe};
use crate::side::Side;
use crate::signals::Signals;
use crate::sites::Sites;
use crate::snapshot::Averages;
use crate::store::RunId;
use crate::summary::{DemoSummary, SideSummary};
use crate::target::Target;
use crate::watch::{look, look_once};

/// How long rows of a run that doesn't wait may take to appear after the last insert.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(15);
const SETTLE_POLL: Duration = Duration::from_millis(100);

/// Plays the demo, prints its summary, and fails if a row is missing or an insert failed.
///
/// Ends after `run_for`, or on Ctrl-C or SIGTERM: probes finish their turn first. A second signal ends it without them.
pub async fn run(options: DemoOptions) -> Result<DemoSummary, DemoError> {
    options.check()?;
    let sites = if options.urls.is_empty() { Some(Sites::start().await.map_err(DemoError::Sites)?) } else { None };
    let urls = sites.as_ref().map_or_else(|| options.urls.clone(), Sites::urls);
    let targets = urls.iter().map(|url| Target::parse(url, sites.is_some())).collect::<Result<Vec<_>, _>>()?;
    let run = RunId::random()?;
    let mut sides = Vec::new();
    for destination in &options.destinations {
        sides.push(Side::open(destination, run, options.every.max(Duration::from_secs(1))).await?);
    }
    let (probes, every, measurements) = (options.probes, options.every, Measurements::default());
    let fleet = Arc::new(Fleet { sides, targets, probes, every, measurements });
    let page = Page::start(&options).await.map_err(DemoError::Sites)?;
    let _ = writeln!(std::io::stdout(), "UpClick, live: {}", page.url());
    if options.browser == Browser::Open {
        open_in_browser(&page.url());
    }
    let summary = Run::start(fleet, page)?.finish(&options).await?;
    // Whoever closed the pipe didn't want to read it.
    let _ = writeln!(std::io::stdout(), "{summary}");
    match summary.is_complete() {
        true => Ok(summary),
        false => Err(DemoError::Incomplete(Box::new(summary))),
    }
}

struct Run {
    fleet: Arc<Fleet>,
    page: Page,
    probes: JoinSet<()>,
    stop_probes: watch::Sender<bool>,
    began: Instant,
}

impl Run {
    fn start(fleet: Arc<Fleet>, page: Page) -> Result<Self, DemoError> {
        let all = (0..fleet.probes).map(|index| Probe::new(fleet.clone(), index)).collect::<Result<Vec<_>, _>>()?;
        let (stop_probes, stopped) = watch::channel(false);
        let began = Instant::now();
        let mut probes = JoinSet::new();
        for probe in all {
            probes.spawn(probe.live(began, stopped.clone()));
        }
        Ok(Self { fleet, page, probes, stop_probes, began })
    }

    async fn finish(mut self, options: &DemoOptions) -> Result<DemoSummary, DemoError> {
        let (stop_looking, looking_stopped) = watch::channel(false);
        let mut looks = JoinSet::new();
        for side in 0..self.fleet.sides.len() {
            looks.spawn(look(self.fleet.clone(), side, looking_stopped.clone()));
        }
        let mut observer = Observer::new(options, &self.fleet, self.began);
        let display = Display::open(options.output);
        self.show_until_done(options, &mut observer, &display).await;
        let elapsed = self.began.elapsed();
        let averages: Vec<Averages> = observer.observe(&self.fleet).sides.iter().map(|side| side.average).collect();
        // Nobody listens when the look has failed already.
        let _ = stop_looking.send(true);
        while looks.join_next().await.is_some() {}
        let mut outcome = Ok(());
        for side in &self.fleet.sides {
            outcome = outcome.and(self.settle(side).await);
        }
        let last = observer.observe(&self.fleet);
        display.close(&last);
        self.page.end(last);
        outcome?;
        self.summarise(elapsed, &averages).await
    }

    async fn show_until_done(&mut self, options: &DemoOptions, observer: &mut Observer, display: &Display) {
        let mut signals = Signals::listen();
        let deadline = options.run_for.map(|run_for| self.began + run_for);
        let mut turns = tokio::time::interval(display.redraw_every());
        let mut stopping = false;
        loop {
            tokio::select! {
                _ = turns.tick() => {
                    let snapshot = observer.observe(&self.fleet);
                    display.show(&snapshot);
                    if self.page.show(snapshot) {
                        self.fleet.sides[0].watched.want_courses();
                    }
                }
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
    async fn settle(&self, side: &Side) -> Result<(), DemoError> {
        let deadline = Instant::now() + SETTLE_TIMEOUT;
        // A server without a queue of its own has stored everything already, and refuses.
        let _ = side.store.flush(&side.client).await;
        loop {
            // A database that has just died is being started again.
            let outcome = look_once(&self.fleet, side, true).await;
            let is_all_there = side.watched.latest().store.found >= Some(side.results.view().acknowledged);
            match outcome {
                Ok(()) if is_all_there || side.store.waits() || Instant::now() >= deadline => return Ok(()),
                Err(error) if Instant::now() >= deadline => return Err(unreadable(side, &error)),
                _ => tokio::time::sleep(SETTLE_POLL).await,
            }
        }
    }

    async fn summarise(&self, elapsed: Duration, averages: &[Averages]) -> Result<DemoSummary, DemoError> {
        let Fleet { probes, measurements, .. } = &*self.fleet;
        let mut sides = Vec::new();
        for (side, average) in self.fleet.sides.iter().zip(averages) {
            sides.push(summarise_side(side, *average).await?);
        }
        Ok(DemoSummary {
            elapsed,
            probes: *probes,
            cities: CITIES.len().min(*probes),
            sides,
            unreachable: measurements.failed(),
            last_error: measurements.last_error(),
        })
    }
}

async fn summarise_side(side: &Side, average: Averages) -> Result<SideSummary, DemoError> {
    let found = side.store.found_ids(&side.client).await;
    let found = found.map_err(|error| DemoError::Gateway { what: "read the rows' ids", reason: error.to_string() })?;
    let view = side.results.view();
    let latest = side.watched.latest();
    Ok(SideSummary {
        name: side.name.clone(),
        is_straight: side.is_straight,
        engine: side.store.engine,
        inserted: view.sent,
        acknowledged: view.acknowledged,
        found: found.rows,
        missing: side.results.missing_from(&found.numbers),
        duplicated: found.rows.saturating_sub(found.numbers.count),
        failures: view.failures,
        last_error: view.last_error,
        parts_created: latest.store.parts_created,
        most_active_parts: latest.store.most_active_parts,
        all_parts: latest.store.all_parts,
        part_samples: latest.samples,
        average,
        ack_p50_ms: side.results.quantile_ms(0.5),
        ack_p99_ms: side.results.quantile_ms(0.99),
    })
}

fn unreadable(side: &Side, error: &CallError) -> DemoError {
    let view = side.results.view();
    let rows = format!("{}: {} rows were inserted, {} acknowledged", side.name, view.sent, view.acknowledged);
    DemoError::Gateway { what: "look up the rows", reason: format!("{error} ({rows})") }
}

async fn reached(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
