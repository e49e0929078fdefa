//! A run from its beginning to its end.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use futures::FutureExt;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::cities::CITIES;
use crate::display::Display;
use crate::errors::DemoError;
use crate::observer::Observer;
use crate::options::{Browser, DemoOptions};
use crate::page::{open_in_browser, Page};
use crate::probe::{Fleet, Measurements, Probe};
use crate::side::Side;
use crate::sites::Sites;
use crate::snapshot::{Averages, Snapshot};
use crate::stop::StopRequests;
use crate::store::{FoundIds, RunId};
use crate::summary::{DemoSummary, SideSummary};
use crate::target::Target;
use crate::watch::{look, look_once};

/// Time for which answers to the last inserts are awaited.
const LAST_TURNS: Duration = Duration::from_secs(30);
/// Time within which rows must appear after the last insert, in a run that doesn't wait for them.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(15);
const SETTLE_POLL: Duration = Duration::from_millis(100);

/// Plays the demo and prints its summary.
///
/// Ends after `run_for`, or when it is asked to stop: probes finish their turn first. Asked again, it ends without
/// them.
///
/// # Errors
/// Fails where an option can't be used, the gateway or database can't be used, the run is interrupted, a row
/// is missing, or an insert failed.
pub async fn run(options: DemoOptions, mut stop: StopRequests) -> Result<DemoSummary, DemoError> {
    options.check()?;
    let before = stop.count();
    let run = tokio::select! {
        run = Run::prepare(&options) => run?,
        () = stop.more_than(before) => return Err(DemoError::Interrupted),
    };
    let summary = run.finish(&options, stop).await?;
    // Whoever closed the pipe didn't want to read it.
    let _ = writeln!(std::io::stdout(), "{summary}");
    match summary.is_complete() {
        true => Ok(summary),
        false => Err(DemoError::Incomplete(Box::new(summary))),
    }
}

struct Run {
    /// The demo's own sites, which are served as long as the run lasts.
    _sites: Option<Sites>,
    fleet: Arc<Fleet>,
    page: Page,
    probes: JoinSet<()>,
    stop_probes: watch::Sender<bool>,
    began: Instant,
}

impl Run {
    async fn prepare(options: &DemoOptions) -> Result<Self, DemoError> {
        let sites = if options.urls.is_empty() { Some(Sites::start().await.map_err(DemoError::Sites)?) } else { None };
        let urls = sites.as_ref().map_or_else(|| options.urls.clone(), Sites::urls);
        let targets = urls.iter().map(|url| Target::parse(url, sites.is_some())).collect::<Result<Vec<_>, _>>()?;
        let run = RunId::random()?;
        let recent = options.every.max(Duration::from_secs(1));
        let mut sides = Vec::new();
        for destination in &options.destinations {
            sides.push(Side::open(destination, run, recent).await?);
        }
        let (probes, every, measurements) = (options.probes, options.every, Measurements::default());
        let fleet = Arc::new(Fleet { sides, targets, probes, every, measurements });
        let page = Page::start(options).await.map_err(DemoError::Sites)?;
        let _ = writeln!(std::io::stdout(), "UpClick, live: {}", page.url());
        if options.browser == Browser::Open {
            open_in_browser(&page.url());
        }
        let all = (0..fleet.probes).map(|index| Probe::new(fleet.clone(), index)).collect::<Result<Vec<_>, _>>()?;
        let (stop_probes, stopped) = watch::channel(false);
        let began = Instant::now();
        let mut probes = JoinSet::new();
        for probe in all {
            probes.spawn(probe.live(began, stopped.clone()));
        }
        Ok(Self { _sites: sites, fleet, page, probes, stop_probes, began })
    }

    async fn finish(mut self, options: &DemoOptions, mut stop: StopRequests) -> Result<DemoSummary, DemoError> {
        let mut looks = JoinSet::new();
        for side in 0..self.fleet.sides.len() {
            looks.spawn(look(self.fleet.clone(), side));
        }
        let mut observer = Observer::new(options, self.page.url(), &self.fleet, self.began);
        let display = Display::open(options.output);
        self.show_until_done(options, &mut observer, &display, &mut stop).await;
        let elapsed = self.began.elapsed();
        let averages: Vec<Averages> = observer.observe(&self.fleet).sides.iter().map(|side| side.average).collect();
        looks.shutdown().await;
        // A database that doesn't answer any more is not waited for against the user's will.
        let before = stop.count();
        let settled = tokio::select! {
            () = join_all(self.fleet.sides.iter().map(|side| self.settle(side))).map(drop) => Ok(()),
            () = stop.more_than(before) => Err(DemoError::Interrupted),
        };
        let last = observer.observe(&self.fleet);
        display.close(&last);
        self.page.end(last);
        settled?;
        tokio::select! {
            summary = self.summarise(elapsed, &averages) => Ok(summary),
            () = stop.more_than(before) => Err(DemoError::Interrupted),
        }
    }

    async fn show_until_done(
        &mut self,
        options: &DemoOptions,
        observer: &mut Observer,
        display: &Display,
        stop: &mut StopRequests,
    ) {
        // One that is beyond all clocks is none.
        let deadline = options.run_for.and_then(|run_for| self.began.checked_add(run_for));
        let mut turns = tokio::time::interval(display.redraw_every());
        let mut patience = None;
        let asked = stop.count();
        loop {
            tokio::select! {
                _ = turns.tick() => {
                    let snapshot = Snapshot { ending: patience.is_some(), ..observer.observe(&self.fleet) };
                    display.show(&snapshot);
                    if self.page.show(snapshot) {
                        self.fleet.sides.iter().for_each(|side| side.watched.want_courses());
                    }
                }
                () = stop.more_than(asked + usize::from(patience.is_some())) => match patience {
                    None => patience = Some(Instant::now() + LAST_TURNS),
                    Some(_) => return self.probes.abort_all(),
                },
                () = reached(deadline), if patience.is_none() => patience = Some(Instant::now() + LAST_TURNS),
                () = reached(patience) => return self.probes.abort_all(),
                ended = self.probes.join_next(), if patience.is_some() => if ended.is_none() { return },
            }
            if patience.is_some() {
                self.stop_probes.send_replace(true);
            }
        }
    }

    /// Looks at a side a last time, when everything that was acknowledged can be there.
    async fn settle(&self, side: &Side) {
        let deadline = Instant::now() + SETTLE_TIMEOUT;
        // A server without a queue of its own has stored everything already, and refuses.
        let _ = side.store.flush(&side.client).await;
        loop {
            // A database that has just died is being started again.
            let outcome = look_once(&self.fleet, side, true).await;
            let is_all_there = side.watched.latest().store.found >= Some(side.results.view().acknowledged);
            let is_enough = outcome.is_ok() && (is_all_there || side.store.waits());
            if is_enough || Instant::now() >= deadline {
                return;
            }
            tokio::time::sleep(SETTLE_POLL).await;
        }
    }

    async fn summarise(&self, elapsed: Duration, averages: &[Averages]) -> DemoSummary {
        let Fleet { probes, measurements, sides, .. } = &*self.fleet;
        let sides = sides.iter().zip(averages).map(|(side, average)| summarise_side(side, *average, elapsed));
        DemoSummary {
            elapsed,
            probes: *probes,
            cities: CITIES.len().min(*probes),
            sides: join_all(sides).await,
            unreachable: measurements.failed(),
            last_error: measurements.last_error(),
        }
    }
}

async fn summarise_side(side: &Side, average: Averages, elapsed: Duration) -> SideSummary {
    let (found, unread) = match side.store.found_ids(&side.client).await {
        Ok(found) => (found, None),
        Err(error) => (FoundIds::default(), Some(error.to_string())),
    };
    let view = side.results.view();
    let latest = side.watched.latest();
    // The last flush has made parts as well.
    let parts_per_second = latest.store.parts_created as f64 / elapsed.as_secs_f64().max(0.001);
    SideSummary {
        name: side.name.clone(),
        is_straight: side.is_straight,
        engine: side.store.engine,
        inserted: view.sent,
        acknowledged: view.acknowledged,
        found: found.rows,
        missing: side.results.missing_from(&found.numbers),
        duplicated: found.rows.saturating_sub(found.numbers.count),
        unread,
        failures: view.failures,
        refusals: view.refusals,
        last_error: view.last_error,
        parts_created: latest.store.parts_created,
        most_active_parts: latest.store.most_active_parts,
        all_parts: latest.store.all_parts,
        part_samples: latest.samples,
        average: Averages { parts_per_second, ..average },
        ack_p50_ms: side.results.quantile_ms(0.5),
        ack_p99_ms: side.results.quantile_ms(0.99),
    }
}

pub(crate) async fn reached(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
