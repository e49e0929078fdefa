//! What a killed gateway left in its journal: how fast the next start stores it, and in how much memory.
//!
//! ClickHouse is held still while inserts are acknowledged on disk, then both processes are killed. The table is of
//! engine Null, so that ClickHouse does no more than read what it is sent.

use std::time::{Duration, Instant};

use tokio::task::LocalSet;

use super::goals::Goals;
use super::{fresh_table, megabytes, Part};
use crate::error::BenchError;
use crate::load::{insert_query, row_body, Exchange, RowFormat};
use crate::process::{descendants, peak_resident_bytes, usage};
use crate::report::{count, figure, Section, Table};
use crate::stack::{Stack, StackOptions};

const TABLE: &str = "bench.replay";
const JOURNAL_BYTES: &str = "windrow_journal_live_bytes";
/// Far below what is replayed: what is read from the journal has to wait for room in the buffers.
const BUFFERS: &str = "WINDROW_GATHER_MAX_BUFFER_BYTES=128MiB";
const POLL: Duration = Duration::from_millis(10);
const REPLAYED_WITHIN: Duration = Duration::from_secs(300);

#[derive(Debug, Clone, clap::Args)]
pub struct ReplayOptions {
    /// What inserts take in the journal before the kill.
    #[arg(long, default_value_t = 1000)]
    pub megabytes: u64,
    /// Of each insert; a row takes 37 bytes in the journal.
    #[arg(long, default_value_t = 1000)]
    pub rows: u64,
    #[arg(long, default_value_t = 8)]
    pub connections: u32,
}

struct Replayed {
    inserts: u64,
    journal_bytes: u64,
    ready: Duration,
    /// From the start of the process until nothing was left.
    drained: Duration,
    gateway_cpu_seconds: f64,
    clickhouse_cpu_seconds: f64,
    peak_bytes: u64,
}

impl Part for ReplayOptions {
    fn measure(&self, _: &Stack, options: &StackOptions) -> Result<Section, BenchError> {
        let environment = [BUFFERS.to_owned()];
        let stack = Stack::open(options, &environment)?;
        let create =
            "(conn UInt32, seq UInt64, time DateTime, site String, city String, latency_us UInt32) ENGINE = Null";
        fresh_table(&stack.clickhouse, TABLE, &format!("CREATE TABLE {TABLE} {create}"))?;
        let (inserts, journal_bytes) = self.fill(&stack)?;
        let began = Instant::now();
        let stack = stack.kill_and_start(options, &environment)?;
        let mut replayed = Replayed {
            inserts,
            journal_bytes,
            ready: began.elapsed(),
            drained: Duration::ZERO,
            gateway_cpu_seconds: 0.0,
            clickhouse_cpu_seconds: 0.0,
            peak_bytes: 0,
        };
        while stack.metric(JOURNAL_BYTES)? > 0.0 {
            if began.elapsed() > REPLAYED_WITHIN {
                return Err(BenchError::Unsound(format!("the journal was not replayed within {REPLAYED_WITHIN:?}")));
            }
            std::thread::sleep(POLL);
        }
        replayed.drained = began.elapsed();
        let after = stack.snapshot();
        replayed.gateway_cpu_seconds = after.gateway.cpu_seconds;
        replayed.clickhouse_cpu_seconds = after.clickhouse.cpu_seconds;
        replayed.peak_bytes = stack.gateway_pid().map(peak_resident_bytes).unwrap_or_default();
        let stored = stack.metric("windrow_rows_total")? as u64;
        if stored != inserts * self.rows {
            return Err(BenchError::Unsound(format!(
                "{stored} rows were stored, {} acknowledged",
                inserts * self.rows
            )));
        }
        stack.close()?;
        Ok(Section {
            name: "replay",
            title: "Replay of the journal",
            command: format!(
                "bench/run replay --megabytes {} --rows {} --connections {}",
                self.megabytes, self.rows, self.connections
            ),
            body: self.report(&replayed),
            charts: Vec::new(),
        })
    }
}

impl ReplayOptions {
    /// Acknowledged inserts and their bytes in the journal, none of them stored.
    fn fill(&self, stack: &Stack) -> Result<(u64, u64), BenchError> {
        let gateway = stack.require_gateway()?;
        let settings = ["async_insert=1", "wait_for_async_insert=0"];
        let query = insert_query(TABLE, RowFormat::JsonEachRow, &settings);
        // The gateway asks ClickHouse about the user, the table and the statement while it can.
        gateway.post(&query, &row_body(1))?;
        gateway.execute("SYSTEM FLUSH ASYNC INSERT QUEUE")?;
        let engine = Held::still(stack)?;
        let template = Exchange::new(gateway.endpoint(), &query);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(BenchError::io("starting the load generator"))?;
        let goal = self.megabytes as f64 * 1e6;
        let mut inserts = 0;
        // Looked at between rounds of a few inserts: the journal knows best what they take.
        while stack.metric(JOURNAL_BYTES)? < goal {
            inserts += LocalSet::new().block_on(&runtime, self.some(&template))?;
        }
        let journal_bytes = stack.metric(JOURNAL_BYTES)? as u64;
        // Still held: what follows kills it.
        std::mem::forget(engine);
        Ok((inserts, journal_bytes))
    }

    async fn some(&self, template: &Exchange) -> Result<u64, BenchError> {
        const EACH: u64 = 50;
        let body = std::rc::Rc::new(row_body(self.rows));
        let tasks: Vec<_> = (0..self.connections)
            .map(|_| {
                let (mut exchange, body) = (template.another(), body.clone());
                tokio::task::spawn_local(async move {
                    for _ in 0..EACH {
                        let answer = exchange.post(&body).await?;
                        if let Some(error) = answer.error {
                            return Err(BenchError::Unsound(format!("an insert was refused: {error}")));
                        }
                    }
                    Ok(())
                })
            })
            .collect();
        for task in tasks {
            task.await.map_err(|_| BenchError::Setup("an insert's task was cancelled".into()))??;
        }
        Ok(u64::from(self.connections) * EACH)
    }

    fn report(&self, replayed: &Replayed) -> String {
        let megabytes_left = megabytes(replayed.journal_bytes);
        let seconds = (replayed.drained - replayed.ready).as_secs_f64();
        let mut table = Table::new([
            "inserts",
            "rows of each",
            "MB in the journal",
            "ready after, ms",
            "stored after that, s",
            "MB/s",
            "rows/s",
            "gateway's CPU, s",
            "ClickHouse's CPU, s",
            "gateway's peak memory, MB",
        ]);
        table.row([
            count(replayed.inserts as f64),
            count(self.rows as f64),
            figure(megabytes_left),
            count(replayed.ready.as_secs_f64() * 1000.0),
            figure(seconds),
            figure(megabytes_left / seconds),
            count((replayed.inserts * self.rows) as f64 / seconds),
            figure(replayed.gateway_cpu_seconds),
            figure(replayed.clickhouse_cpu_seconds),
            figure(megabytes(replayed.peak_bytes)),
        ]);
        let mut goals = Goals::new();
        goals.at_least("replay, MB/s", 200.0, megabytes_left / seconds);
        format!(
            "Into a table of engine Null, by a gateway whose buffers may take 128 MiB (a table half of that). Ready includes the \
             start of ClickHouse and the scan of the whole journal; inserts are taken from then on.\n\n{}\n{}",
            table.to_markdown(),
            goals.to_markdown()
        )
    }
}

/// A ClickHouse that was stopped in the middle of what it did, until this is dropped.
struct Held {
    pids: Vec<u32>,
}

impl Held {
    fn still(stack: &Stack) -> Result<Held, BenchError> {
        let gateway = stack.gateway_pid().ok_or_else(|| BenchError::Setup("add --gateway-pid PID".into()))?;
        let held = Held { pids: descendants(gateway) };
        held.signal(libc::SIGSTOP);
        Ok(held)
    }

    fn signal(&self, number: libc::c_int) {
        for pid in self.pids.iter().filter(|pid| usage(**pid).resident_bytes > 0) {
            // SAFETY: kill takes no pointers; the process runs, and it is the gateway's.
            unsafe { libc::kill(*pid as libc::pid_t, number) };
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.signal(libc::SIGCONT);
    }
}
