//! Makes tables that are missing, as the collector's exporter makes them.
//!
//! They are made as the user whose rows are to go into them, not with Windrow's own account. Otherwise users
//! could, by sending rows, have databases and tables made that ClickHouse would not let them make.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::{Duration, Instant};

use windrow_clickhouse::{Call, CallError, Client};
use windrow_engine::sink::TableKey;
use windrow_gateway::protocol::{GatewayHandle, Recent, Refusal, User};
use windrow_gateway::MARKED_WINDOW;
use windrow_otlp::{create_database_statement, create_statements, Kind, TableOptions};
use windrow_settings::OtlpTables;

use crate::refused::{RefusalReason, Refused};

/// Time limit of a statement that makes a table. On a cluster it may take as long as the slowest server.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Time for which an attempt that has failed is not repeated.
const FAILURE_HOLDS: Duration = Duration::from_secs(5);
const MAX_FAILURES: usize = 1_000;

/// The largest number of tables that are made at the same time. One table is made once: other requests that
/// come at the same time find it made.
const TURNS: usize = 16;

pub(crate) struct Creating {
    /// Locks, each for the tables whose names are hashed to it.
    turns: [tokio::sync::Mutex<()>; TURNS],
    failures: Recent<Attempt, Arc<Failure>>,
}

/// The user who attempts to make a table, and the table.
type Attempt = (String, TableKey);

struct Failure {
    at: Instant,
    refused: Refused,
}

impl Creating {
    pub(crate) fn new() -> Creating {
        Creating { turns: Default::default(), failures: Recent::new(MAX_FAILURES) }
    }

    fn turn(&self, key: &TableKey) -> &tokio::sync::Mutex<()> {
        let mut hasher = DefaultHasher::new();
        key.hash(&mut hasher);
        &self.turns[(hasher.finish() % TURNS as u64) as usize]
    }

    /// Makes the table of a kind, with the tables and views that belong to it. Does nothing if the table is
    /// there by now.
    pub(crate) async fn make(
        &self,
        gateway: &GatewayHandle,
        user: &User,
        key: &TableKey,
        kind: Kind,
    ) -> Result<(), Refused> {
        let _turn = self.turn(key).lock().await;
        if gateway.has_table(user, key).await {
            return Ok(());
        }
        let attempt = (user.credentials().user.clone(), key.clone());
        if let Some(failure) = self.failures.get(&attempt).filter(|failure| failure.at.elapsed() < FAILURE_HOLDS) {
            return Err(failure.refused.clone());
        }
        let made = make(gateway, user, key, kind).await;
        match &made {
            Ok(()) => {
                tracing::info!(database = key.database, table = key.table, "a table for OTLP was made");
                gateway.tables_have_changed();
            }
            Err(refused) => {
                let failure = Failure { at: Instant::now(), refused: refused.clone() };
                self.failures.put(attempt, Arc::new(failure));
            }
        }
        made
    }
}

async fn make(gateway: &GatewayHandle, user: &User, key: &TableKey, kind: Kind) -> Result<(), Refused> {
    let Some(clickhouse) = gateway.clickhouse() else {
        let text = format!(
            "The table {}.{} is missing, and the exporter's tables are made in ClickHouse alone: make one of your own, and \
             say in [[otlp.mappings]] what its columns are filled with",
            key.database, key.table
        );
        return Err(Refused::new(RefusalReason::NoTable, text));
    };
    let version = gateway.server_version(user).await?;
    let settings = gateway.settings();
    let options = options(&settings.otlp.tables, key, kind, version);
    let mut statements = create_statements(kind, &options);
    // There is a database already that has no table of this name, mostly: who may not make databases is not asked to.
    if !database_exists(clickhouse, user, &key.database).await {
        statements.insert(0, create_database_statement(&options));
    }
    for mut statement in statements {
        if has_no_window(&options, &statement) && !gateway.manages_windows() {
            // A batch that is sent again is to be stored once. The table is new, so nobody counts on its having none.
            statement.push_str(&format!(", non_replicated_deduplication_window = {MARKED_WINDOW}"));
        }
        let call = Call::new(user.credentials(), &statement).timeout(TIMEOUT);
        clickhouse.call(call).await.map_err(|error| told(error, key))?;
    }
    Ok(())
}

async fn database_exists(client: &Client, user: &User, database: &str) -> bool {
    let question = format!("EXISTS DATABASE {} FORMAT TSV", windrow_sql::backquote(database));
    let answer = client.call(Call::new(user.credentials(), &question).timeout(TIMEOUT)).await;
    answer.is_ok_and(|answer| answer.text().trim() == "1")
}

fn options(tables: &OtlpTables, key: &TableKey, kind: Kind, server_version: (u32, u32)) -> TableOptions {
    TableOptions {
        table: key.table.clone(),
        engine: tables.engine.clone(),
        cluster: tables.cluster.clone(),
        ttl_seconds: tables.ttl_seconds,
        json: tables.json,
        server_version,
        ..TableOptions::new(kind, key.database.clone())
    }
}

/// Says whether a statement makes a table that remembers nothing of what is stored in it. The table's
/// settings stand at the end of such a statement.
fn has_no_window(options: &TableOptions, statement: &str) -> bool {
    let engine = options.engine.split('(').next().unwrap_or_default().trim();
    let is_alone = !engine.starts_with("Replicated") && !engine.starts_with("Shared");
    is_alone && engine.ends_with("MergeTree") && statement.starts_with("CREATE TABLE") && statement.contains("SETTINGS")
}

fn told(error: CallError, key: &TableKey) -> Refused {
    let refused = match error {
        CallError::Exception(exception) => Refused::from(Refusal::exception(exception)),
        CallError::NotSent(error) => Refused::from(Refusal::unreachable(&error.to_string())),
        CallError::Unknown(cause) => Refused::from(Refusal::unreachable(&cause)),
    };
    let TableKey { database, table } = key;
    let message = format!("The table {database}.{table} is missing and could not be made: {}", refused.message);
    Refused { message, ..refused }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_that_remember_nothing_get_a_window() {
        let of_engine = |engine: &str, kind| {
            let options = TableOptions { engine: engine.to_owned(), ..TableOptions::new(kind, "d") };
            let statements = create_statements(kind, &options);
            statements.iter().map(|statement| has_no_window(&options, statement)).collect::<Vec<_>>()
        };
        assert_eq!(of_engine("MergeTree()", Kind::Logs), [true]);
        assert_eq!(of_engine("MergeTree", Kind::Traces), [true, true, false], "a view has no settings");
        assert_eq!(of_engine("ReplicatedMergeTree('/t', 'r')", Kind::Logs), [false]);
        assert_eq!(of_engine("SharedMergeTree", Kind::Logs), [false]);
        assert_eq!(of_engine("Null", Kind::Logs), [false]);
    }
}
