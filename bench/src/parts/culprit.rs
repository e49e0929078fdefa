//! A batch of 450 inserts, one of which violates a constraint: how long the other 449 wait, beside a batch without it.
//!
//! The batch is sealed by its number of inserts, so that every round flushes all of them together and waits for nothing
//! else. ClickHouse refuses the batch; the gateway finds the insert that it refuses and stores the others.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::task::LocalSet;

use super::goals::Goals;
use super::{fresh_table, Part};
use crate::error::BenchError;
use crate::load::{insert_query, Exchange, RowFormat};
use crate::report::{figure, median, Section, Table};
use crate::stack::{Stack, StackOptions};

const TABLE: &str = "bench.culprit";

#[derive(Debug, Clone, clap::Args)]
pub struct CulpritOptions {
    #[arg(long, default_value_t = 450)]
    pub inserts: u32,
    /// Of each kind of batch, alternately.
    #[arg(long, default_value_t = 15)]
    pub rounds: u32,
}

struct Round {
    /// Until the last of the good ones was answered.
    good_ms: f64,
    refused: u32,
}

impl Part for CulpritOptions {
    fn measure(&self, stack: &Stack, _: &StackOptions) -> Result<Section, BenchError> {
        let create = format!(
            "CREATE TABLE {TABLE} (id UInt64, city String, CONSTRAINT known CHECK city != 'Atlantis') \
             ENGINE = MergeTree ORDER BY id"
        );
        fresh_table(&stack.clickhouse, TABLE, &create)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(BenchError::io("starting the load generator"))?;
        let (mut without, mut with) = (Vec::new(), Vec::new());
        let local = LocalSet::new();
        local.block_on(&runtime, async {
            let mut exchanges = self.connect(stack).await?;
            for round in 0..=self.rounds {
                // A different place in the batch each time.
                let culprit = (round * 197) % self.inserts;
                let clean = self.round(&mut exchanges, None).await?;
                let marred = self.round(&mut exchanges, Some(culprit)).await?;
                if (clean.refused, marred.refused) != (0, 1) {
                    let found = format!("{} and {} refused, not 0 and 1", clean.refused, marred.refused);
                    return Err(BenchError::Unsound(found));
                }
                // The first warms connections and caches.
                if round > 0 {
                    without.push(clean.good_ms);
                    with.push(marred.good_ms);
                }
            }
            Ok(())
        })?;
        self.check_stored(stack)?;
        Ok(Section {
            name: "culprit",
            title: "A batch with one insert that is refused",
            command: format!("bench/run culprit --inserts {} --rounds {}", self.inserts, self.rounds),
            body: self.report(&without, &with),
            charts: Vec::new(),
        })
    }
}

impl CulpritOptions {
    async fn connect(&self, stack: &Stack) -> Result<Vec<Exchange>, BenchError> {
        let number = format!("async_insert_max_query_number={}", self.inserts);
        let settings = [
            "async_insert=1",
            "wait_for_async_insert=1",
            "async_insert_use_adaptive_busy_timeout=0",
            "async_insert_busy_timeout_ms=5000",
            &number,
        ];
        let query = insert_query(TABLE, RowFormat::JsonEachRow, &settings);
        let target = stack.require_gateway()?.endpoint();
        let mut exchanges = Vec::new();
        for _ in 0..self.inserts {
            let mut exchange = Exchange::new(target, &query);
            exchange.connect().await?;
            exchanges.push(exchange);
        }
        Ok(exchanges)
    }

    async fn round(&self, exchanges: &mut Vec<Exchange>, culprit: Option<u32>) -> Result<Round, BenchError> {
        let refused = Arc::new(Mutex::new(Vec::new()));
        let began = Instant::now();
        let tasks: Vec<_> = std::mem::take(exchanges)
            .into_iter()
            .enumerate()
            .map(|(number, mut exchange)| {
                let is_culprit = culprit == Some(number as u32);
                let city = if is_culprit { "Atlantis" } else { "Oslo" };
                let body = format!("{{\"id\":{number},\"city\":\"{city}\"}}\n");
                let refused = refused.clone();
                tokio::task::spawn_local(async move {
                    let answer = exchange.post(body.as_bytes()).await?;
                    let after = began.elapsed();
                    if let Some(error) = answer.error {
                        refused.lock().expect("no task panics with it").push(error);
                    }
                    Ok::<_, BenchError>((exchange, if is_culprit { Duration::ZERO } else { after }))
                })
            })
            .collect();
        let mut last = Duration::ZERO;
        for task in tasks {
            let (exchange, after) =
                task.await.map_err(|_| BenchError::Setup("an insert's task was cancelled".into()))??;
            exchanges.push(exchange);
            last = last.max(after);
        }
        let refused = refused.lock().expect("no task panics with it");
        if let Some(other) = refused.iter().find(|error| !error.contains("Code: 469")) {
            return Err(BenchError::Unsound(format!("an insert failed otherwise: {other}")));
        }
        Ok(Round { good_ms: last.as_secs_f64() * 1000.0, refused: refused.len() as u32 })
    }

    fn check_stored(&self, stack: &Stack) -> Result<(), BenchError> {
        let stored = stack.clickhouse.number(&format!("SELECT count() FROM {TABLE}"))?;
        let rounds = u64::from(self.rounds) + 1;
        let expected = rounds * (2 * u64::from(self.inserts) - 1);
        stack.clickhouse.execute(&format!("DROP TABLE {TABLE} SYNC"))?;
        match stored == expected {
            true => Ok(()),
            false => Err(BenchError::Unsound(format!("{stored} rows were stored instead of {expected}"))),
        }
    }

    fn report(&self, without: &[f64], with: &[f64]) -> String {
        let mut table = Table::new(["batch", "ms until the last good one is answered", "slowest"]);
        for (batch, rounds) in [("without a culprit", without), ("with one", with)] {
            let slowest = rounds.iter().copied().fold(0.0, f64::max);
            table.row([batch.to_owned(), figure(median(rounds.iter().copied())), figure(slowest)]);
        }
        let mut goals = Goals::new();
        let ratio = median(with.iter().copied()) / median(without.iter().copied());
        goals.at_most("with one culprit to without", 3.0, ratio);
        format!(
            "{} inserts of one row each, sealed together; one violates a constraint.\n\n{}\n{}",
            self.inserts,
            table.to_markdown(),
            goals.to_markdown()
        )
    }
}
