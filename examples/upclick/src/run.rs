//! A run from beginning to end.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;
use windrow_clickhouse::{CallError, Client};

use crate::cities::CITIES;
use crate::display::Display;
use crate::errors::DemoError;
use crate::options::DemoOptions;
use crate::probe::{Fleet, Probe};
use crate::probe_results::ProbeResults;
use crate::signals::Signals;
use crate::sites::Sites;
use crate::store::{PartCounts, RunId, Store};
use crate::summary::DemoSummary;
use crate::target::Target;
use crate::watch::{look, look_once, Watched};

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
    let store = Store::new(&options, RunId::random()?)?;
    let client = store.client()?;
    store.create_table(&client).await?;
    let results = ProbeResults::new(options.every);
    let fleet = Arc::new(Fleet { store, targets, results, probes: options.probes, every: options.every });
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
            // A database that has just died is being started again.
            let outcome = look_once(&self.fleet, &self.client, &self.watched, self.baseline, true).await;
            let is_all_there = self.watched.latest().store.found >= Some(self.fleet.results.view().acknowledged);
            match outcome {
                Ok(()) if is_all_there || options.wait || Instant::now() >= deadline => return Ok(()),
                Err(error) if Instant::now() >= deadline => return Err(self.unreadable(&error)),
                _ => tokio::time::sleep(SETTLE_POLL).await,
            }
        }
    }

    fn unreadable(&self, error: &CallError) -> DemoError {
        let view = self.fleet.results.view();
        let rows = format!("{} rows were inserted, {} acknowledged", view.sent, view.acknowledged);
        DemoError::Gateway { what: "look up the rows", reason: format!("{error} ({rows})") }
    }

    async fn summarise(&self, elapsed: Duration, options: &DemoOptions) -> Result<DemoSummary, DemoError> {
        let found = self.fleet.store.found_ids(&self.client).await;
        let found =
            found.map_err(|error| DemoError::Gateway { what: "read the rows' ids", reason: error.to_string() })?;
        let results = &self.fleet.results;
        let view = results.view();
        let latest = self.watched.latest();
        Ok(DemoSummary {
            elapsed,
            probes: options.probes,
            cities: options.probes.min(CITIES.len()),
            engine: options.engine,
            inserted: view.sent,
            acknowledged: view.acknowledged,
            found: found.rows,
            missing: results.missing_from(&found.numbers),
            duplicated: found.rows.saturating_sub(found.numbers.count),
            failures: view.failures,
            last_error: view.last_error,
            unreachable: view.unreachable,
            parts_created: latest.store.parts_created,
            most_active_parts: latest.store.most_active_parts,
            part_samples: latest.samples,
            ack_p50_ms: results.quantile_ms(0.5),
            ack_p99_ms: results.quantile_ms(0.99),
        })
    }
}

async fn reached(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
