//! The scene with OpenTelemetry: hundreds of agents, without a collector that batches for them, send logs,
//! traces and metrics of simulated programs by OTLP. The outcome is shown while it lasts. At the end all rows
//! are counted in their tables, and the tables are queried for slow routes and routes that fail.
//!
//! `telemetry.rs` makes a program's reports; `agent.rs` sends them, again where it is told to; `store.rs`
//! queries the tables; `shown.rs` has the picture and the summary.

mod agent;
mod shown;
mod store;
mod telemetry;

use std::io::Write;
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

use self::agent::{Agent, Tallies};
use self::shown::{plain, screen, Picture, SignalView};
use self::store::{Found, Store};
use crate::errors::DemoError;
use crate::options::{Destination, Output};
use crate::rate::Rate;
use crate::stop::StopRequests;
use crate::store::RunId;
use crate::terminal::Terminal;

pub use self::shown::OtelSummary;

/// The signals that are sent. Metrics are points of sums, histograms and gauges.
pub(crate) const SIGNALS: [&str; 3] = ["logs", "traces", "metrics"];
const MAX_AGENTS: usize = 5_000;
const RATES_OVER: Duration = Duration::from_secs(5);
const REDRAW_EVERY: Duration = Duration::from_secs(1);
/// Time for which answers to the last requests are awaited; the next constant is for their rows to appear.
const LAST_TURNS: Duration = Duration::from_secs(30);
const SETTLE_TIMEOUT: Duration = Duration::from_secs(15);
const SETTLE_POLL: Duration = Duration::from_millis(100);

/// The options of a run.
#[derive(Clone)]
pub struct OtelOptions {
    /// The account of the agents, and the address for queries on the tables.
    pub destination: Destination,
    /// The address for OTLP over gRPC; the next one is for HTTP.
    pub grpc: String,
    pub http: String,
    /// The tables of each signal. Those of metrics are for sums, histograms and gauges.
    pub tables: [Vec<String>; 3],
    pub agents: usize,
    /// Time between two requests of an agent.
    pub every: Duration,
    /// Time of the run. `None`: it lasts until Ctrl-C.
    pub run_for: Option<Duration>,
    pub output: Output,
    /// The address of the gateway's own dashboard.
    pub dashboard: String,
}

impl OtelOptions {
    /// Checks the options, as far as that needs no connection.
    ///
    /// # Errors
    /// Fails where a number is out of its range.
    pub fn check(&self) -> Result<(), DemoError> {
        if self.agents == 0 || self.agents > MAX_AGENTS {
            return Err(DemoError::Options(format!("the number of agents must be from 1 to {MAX_AGENTS}")));
        }
        if self.every < Duration::from_millis(100) {
            return Err(DemoError::Options("an agent can't send more often than every 100 ms".to_owned()));
        }
        Ok(())
    }
}

/// Plays the scene and prints its summary.
///
/// # Errors
/// Fails where an option can't be used, the run is interrupted, or a row is missing or was refused.
pub async fn run_otel(options: OtelOptions, mut stop: StopRequests) -> Result<OtelSummary, DemoError> {
    options.check()?;
    let run = format!("upclick {}", RunId::random()?.text());
    let mut store = Store::new(&options, &run)?;
    store.count_from_now().await;
    let tallies = Arc::new(Tallies::default());
    let all = (0..options.agents).map(|index| Agent::new(&options, &run, index, tallies.clone()));
    let all = all.collect::<Result<Vec<_>, _>>()?;
    // The first rows wait until their tables are made. They are no part of the run.
    let mut first = Agent::new(&options, &format!("{run} begins"), 0, Arc::default())?;
    let before = stop.count();
    tokio::select! {
        () = first.turn(0) => {}
        () = stop.more_than(before) => return Err(DemoError::Interrupted),
    }
    let (stop_agents, stopped) = watch::channel(false);
    let began = Instant::now();
    let mut agents = JoinSet::new();
    all.into_iter().for_each(|agent| _ = agents.spawn(agent.live(began, stopped.clone())));
    let (rates, parts) = (Default::default(), Rate::over(RATES_OVER));
    let terminal = Terminal::open(options.output);
    let mut scene = Scene { options, began, tallies, store, rates, parts };
    scene.show_until_done(terminal.as_ref(), &mut agents, &stop_agents, &mut stop).await;
    let elapsed = began.elapsed();
    let before = stop.count();
    let found = tokio::select! {
        found = scene.settle() => found,
        () = stop.more_than(before) => return Err(DemoError::Interrupted),
    };
    if let Some(terminal) = terminal {
        let mut lines = screen(&scene.picture(false).await);
        // The hint or error at the bottom.
        lines.pop();
        let _ = terminal.close_with(&lines);
    }
    let routes = scene.store.routes().await.map_err(|error| error.to_string());
    let views = scene.views(&found);
    let summary =
        OtelSummary { elapsed, agents: scene.options.agents, signals: views, parts: found.parts_created, routes };
    // Whoever closed the pipe didn't want to read it.
    let _ = writeln!(std::io::stdout(), "{summary}");
    match summary.is_complete() {
        true => Ok(summary),
        false => Err(DemoError::TelemetryIncomplete),
    }
}

struct Scene {
    options: OtelOptions,
    began: Instant,
    tallies: Arc<Tallies>,
    store: Store,
    rates: [Option<Rate>; SIGNALS.len()],
    parts: Rate,
}

impl Scene {
    /// Shows the scene until it is done. If it is asked to stop, agents finish their turn first; asked again,
    /// it does not wait for them.
    async fn show_until_done(
        &mut self,
        terminal: Option<&Terminal>,
        agents: &mut JoinSet<()>,
        stop_agents: &watch::Sender<bool>,
        stop: &mut StopRequests,
    ) {
        let deadline = self.options.run_for.and_then(|run_for| self.began.checked_add(run_for));
        let mut turns = tokio::time::interval(REDRAW_EVERY);
        let (asked, mut patience) = (stop.count(), None);
        loop {
            tokio::select! {
                _ = turns.tick() => {
                    let picture = self.picture(patience.is_some()).await;
                    // A terminal that went away is no reason to stop.
                    let _ = match terminal {
                        Some(terminal) => terminal.show(&screen(&picture)),
                        None => writeln!(std::io::stdout(), "{}", plain(&picture)),
                    };
                }
                () = stop.more_than(asked + usize::from(patience.is_some())) => match patience {
                    None => patience = Some(Instant::now() + LAST_TURNS),
                    Some(_) => return agents.abort_all(),
                },
                () = crate::run::reached(deadline), if patience.is_none() => patience = Some(Instant::now() + LAST_TURNS),
                () = crate::run::reached(patience) => return agents.abort_all(),
                ended = agents.join_next(), if patience.is_some() => if ended.is_none() { return },
            }
            if patience.is_some() {
                stop_agents.send_replace(true);
            }
        }
    }

    async fn picture(&mut self, ending: bool) -> Picture {
        let found = self.store.look().await;
        let signals = self.views(&found);
        let elapsed = self.began.elapsed();
        self.parts.read(elapsed, found.parts_created as f64);
        let OtelOptions { grpc, http, agents, every, dashboard, .. } = &self.options;
        let every_s = every.as_secs_f64();
        Picture {
            elapsed,
            title: format!("{agents} agents, each sends logs, traces and metrics every {every_s} s"),
            subtitle: format!("half of them over gRPC to {grpc}, half over HTTP to {http}"),
            dashboard: dashboard.clone(),
            signals,
            active_parts: found.active_parts,
            parts_per_second: self.parts.per_second(),
            problem: self.tallies.iter().find_map(|tally| tally.last_error()).or(found.problem),
            ending,
        }
    }

    /// Returns the figures of each signal, with the rates of this moment.
    fn views(&mut self, found: &Found) -> Vec<SignalView> {
        let elapsed = self.began.elapsed();
        let all = self.tallies.iter().zip(&mut self.rates).zip(&found.signals).zip(SIGNALS);
        let view = |(((tally, rate), found), name): (((&agent::Tally, &mut Option<Rate>), &store::OfSignal), _)| {
            let count = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
            let rate = rate.get_or_insert_with(|| Rate::over(RATES_OVER));
            rate.read(elapsed, count(&tally.acknowledged) as f64);
            SignalView {
                name,
                rows_per_second: rate.per_second(),
                sent: count(&tally.sent),
                acknowledged: count(&tally.acknowledged),
                refused: count(&tally.refused),
                requests: count(&tally.requests),
                repeats: count(&tally.repeats),
                found: found.rows,
                newest_seconds: found.newest_seconds,
                ack_p50_ms: tally.quantile_ms(0.5),
                ack_p99_ms: tally.quantile_ms(0.99),
            }
        };
        all.map(view).collect()
    }

    /// Looks at the tables a last time, when everything that was acknowledged can be there.
    async fn settle(&self) -> Found {
        let deadline = Instant::now() + SETTLE_TIMEOUT;
        // What is held for more rows need not be waited for.
        let _ = self.store.flush().await;
        loop {
            let found = self.store.look().await;
            let is_there = |(tally, found): (&agent::Tally, &store::OfSignal)| {
                found.rows >= Some(tally.acknowledged.load(Ordering::Relaxed))
            };
            if self.tallies.iter().zip(&found.signals).all(is_there) || Instant::now() >= deadline {
                return found;
            }
            tokio::time::sleep(SETTLE_POLL).await;
        }
    }
}
