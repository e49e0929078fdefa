//! One run: the load, what it cost, and whether every row came where it belongs.

use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::ground::{merged, Ground};
use super::window::{watch, Window};
use crate::error::BenchError;
use crate::load::{self, check_rows, LoadOutcome, Plan, RowFormat, RowsIn, RowsOfRun, Spread, Targets};
use crate::parts::inserts::{refuse_failures, refuse_losses, Mode};
use crate::sql::Sql;
use crate::stack::Stack;
use crate::wire::Endpoint;

const GRACE: Duration = Duration::from_secs(30);
/// All targets have been inserted into once by then, also on a machine that others use as well.
const TOUCHED_WITHIN: Duration = Duration::from_secs(300);
const FLUSHED_WITHIN: Duration = Duration::from_secs(300);
/// What a run before has left to merge is no cost of the next; but merging may take long.
const MERGED_WITHIN: Duration = Duration::from_secs(3);
const POLL: Duration = Duration::from_millis(50);

#[derive(Debug, Clone, Copy)]
pub struct Times {
    pub warmup: Duration,
    pub window: Duration,
}

/// What all runs into the same tables share.
pub struct Bench<'a> {
    pub stack: &'a Stack,
    connections: u32,
    /// The number in rows that the next run's first connection gets.
    next_conn: Cell<u32>,
    most_tables: Cell<u32>,
    /// What all runs brought into tables, as far as it was there when they were checked.
    rows: Cell<u64>,
    /// What may have come later.
    uncertain: Cell<u64>,
}

pub struct Run {
    pub load: LoadOutcome,
    pub window: Window,
    /// From before the load until all of it was stored.
    pub gateway_cpu_seconds: f64,
    pub clickhouse_cpu_seconds: f64,
    /// Until what was acknowledged before was stored.
    pub flush_seconds: f64,
}

/// A first insert into each target.
#[derive(Debug, Clone, Copy)]
pub struct Touched {
    pub seconds: f64,
    pub flush_seconds: f64,
}

impl<'a> Bench<'a> {
    pub fn new(stack: &'a Stack, connections: u32) -> Self {
        let (next_conn, most_tables) = (Cell::new(0), Cell::new(0));
        Bench { stack, connections, next_conn, most_tables, rows: Cell::new(0), uncertain: Cell::new(0) }
    }

    fn take_conns(&self) -> Range<u32> {
        let first = self.next_conn.get();
        self.next_conn.set(first + self.connections);
        first..first + self.connections
    }

    /// Inserts into each target once, so that nothing of a run is anybody's first time. Not measured.
    pub fn touch(&self, ground: &Ground) -> Result<Touched, BenchError> {
        let server = self.stack.require_gateway()?.endpoint();
        // With as few inserts as can be.
        let spread = Spread::Even { stride: u64::from(self.connections) };
        let targets = ground.targets(server, Mode::Disk, spread.clone());
        let times = Times { warmup: Duration::ZERO, window: TOUCHED_WITHIN };
        let conns = self.take_conns();
        let mut plan = self.plan(server, ground, targets, times, &conns);
        plan.inserts_per_connection = Some(u64::from(ground.targets.div_ceil(self.connections)));
        let began = Instant::now();
        let load = load::run(&plan)?;
        let seconds = began.elapsed().as_secs_f64();
        refuse_failures(Mode::Disk, &load)?;
        if load.acknowledged() < u64::from(ground.targets) {
            let (acknowledged, all) = (load.acknowledged(), ground.targets);
            return Err(BenchError::Unsound(format!("only {acknowledged} of {all} tables were reached in time")));
        }
        let flush_seconds = self.flush()?;
        self.check(&ground.rows_in(conns, &spread), ground.targets, Mode::Disk, &load)?;
        Ok(Touched { seconds, flush_seconds })
    }

    pub fn run(&self, ground: &Ground, mode: Mode, times: Times) -> Result<Run, BenchError> {
        let sql = if mode.needs_gateway() { self.stack.require_gateway()? } else { &self.stack.clickhouse };
        let server = sql.endpoint();
        let conns = self.take_conns();
        let spread = ground.spread();
        let plan = self.plan(server, ground, ground.targets(server, mode, spread.clone()), times, &conns);
        wait_for_merges(&self.stack.clickhouse)?;
        let before = self.stack.snapshot();
        let (load, window) = watch(self.stack, times, || load::run(&plan))?;
        let load = load?;
        let flush_seconds = if mode.needs_gateway() { self.flush()? } else { 0.0 };
        let after = self.stack.snapshot();
        self.check(&ground.rows_in(conns, &spread), ground.targets, mode, &load)?;
        Ok(Run {
            load,
            window,
            gateway_cpu_seconds: after.gateway_cpu_since(&before),
            clickhouse_cpu_seconds: after.clickhouse_cpu_since(&before),
            flush_seconds,
        })
    }

    /// Returns how many seconds it took. What waits for thousands of tables takes longer than any other statement.
    fn flush(&self) -> Result<f64, BenchError> {
        let began = Instant::now();
        loop {
            match self.stack.require_gateway()?.execute("SYSTEM FLUSH ASYNC INSERT QUEUE") {
                Ok(()) => return Ok(began.elapsed().as_secs_f64()),
                Err(BenchError::Io { .. }) if began.elapsed() < FLUSHED_WITHIN => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn plan(&self, server: &Endpoint, ground: &Ground, targets: Targets, times: Times, conns: &Range<u32>) -> Plan {
        Plan {
            target: server.clone(),
            query: String::new(),
            targets: Some(Arc::new(targets)),
            format: RowFormat::JsonEachRow,
            rows: RowsOfRun { first_conn: conns.start, fields: ground.fields() },
            connections: self.connections,
            threads: 1,
            warmup: times.warmup,
            window: times.window,
            inserts_per_connection: None,
            interval: None,
            grace: GRACE,
        }
    }

    fn check(&self, rows: &RowsIn, targets: u32, mode: Mode, load: &LoadOutcome) -> Result<(), BenchError> {
        let stored = check_rows(&self.stack.clickhouse, rows, load)?;
        self.rows.set(self.rows.get() + stored.rows);
        self.uncertain.set(self.uncertain.get() + load.unacknowledged());
        self.most_tables.set(self.most_tables.get().max(targets));
        refuse_losses(mode, load, &stored)
    }

    /// A run's own rows are looked for by its numbers; rows with other numbers show here.
    pub fn refuse_rows_of_nobody(&self) -> Result<(), BenchError> {
        if self.most_tables.get() == 0 {
            return Ok(());
        }
        let from = merged(self.most_tables.get());
        let there = self.stack.clickhouse.number(&format!("SELECT toUInt64(count()) FROM {from}"))?;
        let found = self.rows.get();
        match (found..=found + self.uncertain.get()).contains(&there) {
            true => Ok(()),
            false => Err(BenchError::Unsound(format!("{there} rows are in the tables, {found} were found run by run"))),
        }
    }
}

fn wait_for_merges(clickhouse: &Sql) -> Result<(), BenchError> {
    let until = Instant::now() + MERGED_WITHIN;
    while clickhouse.number("SELECT toUInt64(count()) FROM system.merges")? > 0 && Instant::now() < until {
        std::thread::sleep(POLL);
    }
    Ok(())
}
