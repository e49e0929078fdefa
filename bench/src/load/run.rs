//! Spreads the connections over threads and starts them all at one moment.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::{Arc, Barrier, OnceLock};
use std::time::Instant;

use super::connection::{run_connection, Clock};
use super::outcome::{ConnectionIds, LoadOutcome};
use super::{Exchange, Plan};
use crate::error::BenchError;
use crate::process::own_cpu_seconds;

/// Connections that are opened at once: fewer than any listener's backlog.
const CONNECTING_AT_ONCE: usize = 64;

pub fn run(plan: &Plan) -> Result<LoadOutcome, BenchError> {
    let threads = plan.threads.clamp(1, plan.connections.max(1));
    let start_line = Arc::new(StartLine { barrier: Barrier::new(threads as usize), clock: OnceLock::new() });
    let cpu_before = own_cpu_seconds();
    let workers: Vec<_> = (0..threads)
        .map(|thread| {
            let (plan, start_line) = (plan.clone(), start_line.clone());
            std::thread::spawn(move || run_thread(plan, thread, threads, &start_line))
        })
        .collect();
    let mut total = LoadOutcome::default();
    for worker in workers {
        let outcome =
            worker.join().map_err(|_| BenchError::Setup("a thread of the load generator panicked".into()))??;
        total.merge(outcome);
    }
    if let Some(clock) = start_line.clock.get() {
        total.window_seconds = clock.measured_from.elapsed().min(plan.window).as_secs_f64();
    }
    total.cpu_seconds = own_cpu_seconds() - cpu_before;
    Ok(total)
}

struct StartLine {
    barrier: Barrier,
    clock: OnceLock<Clock>,
}

impl StartLine {
    fn wait(&self, plan: &Plan) -> Clock {
        self.barrier.wait();
        *self.clock.get_or_init(|| Clock::starting_at(Instant::now(), plan))
    }
}

fn run_thread(plan: Plan, thread: u32, threads: u32, start_line: &StartLine) -> Result<LoadOutcome, BenchError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(BenchError::io("starting the load generator"))?;
    let numbers: Vec<u32> = (0..plan.connections).filter(|conn| conn % threads == thread).collect();
    let local = tokio::task::LocalSet::new();
    let connected = local.block_on(&runtime, connect_all(&plan, numbers.len()));
    // Reached also after a failure, or the other threads would wait at the barrier for ever.
    let clock = start_line.wait(&plan);
    let exchanges = connected?;
    let outcome =
        LoadOutcome { ids: vec![ConnectionIds::default(); plan.connections as usize], ..LoadOutcome::default() };
    let shared = Rc::new(RefCell::new(outcome));
    local.block_on(&runtime, drive(plan, clock, numbers.into_iter().zip(exchanges), shared.clone()));
    Ok(shared.take())
}

/// Runs a thread's connections until they are through or the grace is over; what is unanswered then stays so.
async fn drive(
    plan: Plan,
    clock: Clock,
    connections: impl Iterator<Item = (u32, Exchange)>,
    shared: Rc<RefCell<LoadOutcome>>,
) {
    let plan = Rc::new(plan);
    let tasks: Vec<_> = connections
        .map(|(conn, exchange)| {
            let (plan, shared) = (plan.clone(), shared.clone());
            tokio::task::spawn_local(async move { run_connection(&plan, clock, conn, exchange, &shared).await })
        })
        .collect();
    let give_up = (clock.end + plan.grace).into();
    for task in tasks {
        let abort = task.abort_handle();
        if tokio::time::timeout_at(give_up, task).await.is_err() {
            abort.abort();
        }
    }
}

async fn connect_all(plan: &Plan, count: usize) -> Result<Vec<Exchange>, BenchError> {
    let mut exchanges: Vec<Exchange> = Vec::with_capacity(count);
    while exchanges.len() < count {
        let batch = CONNECTING_AT_ONCE.min(count - exchanges.len());
        let tasks: Vec<_> = (0..batch)
            .map(|_| {
                let mut exchange = Exchange::new(&plan.target, &plan.query);
                tokio::task::spawn_local(async move { exchange.connect().await.map(|()| exchange) })
            })
            .collect();
        for task in tasks {
            let exchange = task.await.map_err(|_| BenchError::Setup("a connection's task was cancelled".into()))?;
            exchanges.push(exchange?);
        }
    }
    Ok(exchanges)
}
