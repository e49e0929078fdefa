//! Queries for the rows of this run in the tables.

use std::time::Duration;

use windrow_clickhouse::{Call, CallError, Client, Credentials, Endpoint, ErrorCode};
use windrow_sql::{backquote, quote_string};

use super::{OtelOptions, SIGNALS};
use crate::errors::DemoError;

const TIMEOUT: Duration = Duration::from_secs(30);

pub(super) struct Store {
    client: Client,
    credentials: Credentials,
    database: String,
    tables: [Vec<String>; SIGNALS.len()],
    run: String,
    /// Parts that were made before the run.
    parts_before: u64,
}

/// The results of one look at the tables.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) signals: [OfSignal; SIGNALS.len()],
    pub(super) active_parts: Option<u64>,
    /// Count of parts that the run has made, with those that are merged by now.
    pub(super) parts_created: u64,
    pub(super) problem: Option<String>,
}

#[derive(Debug, Default)]
pub(super) struct OfSignal {
    pub(super) rows: Option<u64>,
    /// Age of the newest row, in seconds.
    pub(super) newest_seconds: Option<f64>,
}

/// A route, with the figures that its spans give.
#[derive(Debug, Clone)]
pub struct RouteRow {
    pub service: String,
    pub route: String,
    pub requests: u64,
    pub failed_percent: f64,
    pub p50_ms: f64,
    pub p99_ms: f64,
}

impl Store {
    pub(super) fn new(options: &OtelOptions, run: &str) -> Result<Store, DemoError> {
        let destination = &options.destination;
        let unusable =
            |reason: String| DemoError::Options(format!("{} can't be used: {reason}", destination.address()));
        let endpoint = Endpoint::parse(&destination.url).map_err(|error| unusable(error.to_string()))?;
        let client = Client::new(endpoint, destination.client.clone()).map_err(|error| unusable(error.to_string()))?;
        Ok(Store {
            client,
            credentials: Credentials { user: destination.user.clone(), password: destination.password.clone() },
            database: destination.database.clone(),
            tables: options.tables.clone(),
            run: run.to_owned(),
            parts_before: 0,
        })
    }

    /// Notes the parts that were made before: tables may have been filled earlier.
    pub(super) async fn count_from_now(&mut self) {
        self.parts_before = self.look().await.parts_created;
    }
    /// Looks at all tables. A table that does not exist yet is no error: it is made when its first rows come.
    pub(super) async fn look(&self) -> Found {
        let mut found = Found::default();
        for (signal, tables) in self.tables.iter().enumerate() {
            match self.look_at(signal, tables).await {
                Ok(of_signal) => found.signals[signal] = of_signal,
                Err(CallError::Exception(exception))
                    if [ErrorCode::UNKNOWN_TABLE, ErrorCode::UNKNOWN_DATABASE].contains(&exception.code) => {}
                Err(error) => found.problem = Some(error.to_string()),
            }
        }
        match self.numbers(&self.count_parts()).await {
            Ok(numbers) => {
                let number = |at: usize| numbers.get(at).copied().flatten().unwrap_or_default() as u64;
                (found.active_parts, found.parts_created) =
                    (Some(number(0)), number(1).saturating_sub(self.parts_before));
            }
            Err(error) => found.problem = Some(error.to_string()),
        }
        found
    }

    async fn look_at(&self, signal: usize, tables: &[String]) -> Result<OfSignal, CallError> {
        let time = if SIGNALS[signal] == "metrics" { "TimeUnix" } else { "Timestamp" };
        let of_table = |table: &String| {
            let name = self.named(table);
            format!(
                "SELECT count() AS rows, max(toDateTime64({time}, 3)) AS newest FROM {name} WHERE {}",
                self.of_run()
            )
        };
        let each: Vec<String> = tables.iter().map(of_table).collect();
        let query = format!(
            "SELECT sum(rows), if(sum(rows) = 0, NULL, dateDiff('millisecond', max(newest), now64(3)) / 1000) FROM ({}) \
             FORMAT TabSeparated",
            each.join(" UNION ALL ")
        );
        let numbers = self.numbers(&query).await?;
        let number = |at: usize| numbers.get(at).copied().flatten();
        Ok(OfSignal { rows: number(0).map(|rows| rows as u64), newest_seconds: number(1).map(|age| age.max(0.0)) })
    }

    /// Returns the query for counts of parts. ClickHouse numbers the blocks that come into each partition,
    /// and the first one is 1.
    fn count_parts(&self) -> String {
        let names: Vec<String> = self.tables.iter().flatten().map(|table| quote_string(table)).collect();
        format!(
            "SELECT sum(active), sum(created) FROM (SELECT countIf(active) AS active, max(max_block_number) AS created FROM \
             system.parts WHERE database = {} AND table IN ({}) GROUP BY table, partition) FORMAT TabSeparated",
            quote_string(&self.database),
            names.join(", ")
        )
    }

    pub(super) async fn flush(&self) -> Result<(), CallError> {
        for table in self.tables.iter().flatten() {
            self.query(&format!("SYSTEM FLUSH ASYNC INSERT QUEUE {}", self.named(table))).await?;
        }
        Ok(())
    }

    /// Returns the slowest routes first, according to the spans of servers.
    pub(super) async fn routes(&self) -> Result<Vec<RouteRow>, CallError> {
        let traces = self.named(&self.tables[1][0]);
        let query = format!(
            "SELECT ServiceName, SpanName, count() AS requests, 100 * countIf(StatusCode = 'Error') / requests, \
             quantile(0.5)(Duration) / 1e6, quantile(0.99)(Duration) / 1e6 AS p99 FROM {traces} \
             WHERE {} AND SpanKind = 'Server' GROUP BY 1, 2 ORDER BY p99 DESC LIMIT 5 FORMAT TabSeparated",
            self.of_run()
        );
        let answer = self.query(&query).await?;
        let row = |line: &str| {
            let mut fields = line.split('\t');
            let (service, route) = (fields.next()?.to_owned(), fields.next()?.to_owned());
            let mut number = || fields.next()?.parse::<f64>().ok();
            let requests = number()? as u64;
            Some(RouteRow { service, route, requests, failed_percent: number()?, p50_ms: number()?, p99_ms: number()? })
        };
        Ok(answer.lines().filter_map(row).collect())
    }

    fn of_run(&self) -> String {
        format!("ScopeName = {}", quote_string(&self.run))
    }

    fn named(&self, table: &str) -> String {
        format!("{}.{}", backquote(&self.database), backquote(table))
    }

    /// Returns the numbers of a result with one row.
    async fn numbers(&self, query: &str) -> Result<Vec<Option<f64>>, CallError> {
        let answer = self.query(query).await?;
        Ok(answer.split_whitespace().map(|field| field.parse().ok()).collect())
    }

    async fn query(&self, query: &str) -> Result<String, CallError> {
        let call = Call::new(&self.credentials, query).timeout(TIMEOUT);
        self.client.call(call).await.map(|answer| answer.text().to_owned())
    }
}
