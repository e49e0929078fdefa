//! The table `windrow.batches`, by which stored batches are known when they come again.
//!
//! A batch comes again after a lost answer, which is at once, or after a crash, which may be as long ago as
//! the gateway was away. So old ids are removed only when many newer ones are there: no id is forgotten
//! because the gateway was away.

use std::sync::atomic::{AtomicU64, Ordering};

use windrow_clickhouse::Exception;
use windrow_engine::sink::BatchId;

use crate::connection::Connection;
use crate::database::{spawn, DuckDb};

const TABLE: &str = "batches";

/// Returns the statement that makes the table, at start.
pub(crate) fn create(connection: &Connection) -> String {
    let table = connection.own_table(TABLE);
    format!("CREATE TABLE IF NOT EXISTS {table} (id UUID PRIMARY KEY, stored_at TIMESTAMPTZ NOT NULL DEFAULT now())")
}

/// Count of the newest ids that are kept whatever their age.
const KEPT: u64 = 100_000;
const KEPT_AT_MOST: u64 = 2_000_000;
const KEPT_FOR: &str = "7 days";
/// Count of stored batches after which old ids are removed.
const PRUNED_EVERY: u64 = 20_000;

/// Counter of stored batches, to remove old ids from time to time.
#[derive(Default)]
pub(crate) struct Batches {
    since_pruned: AtomicU64,
}

impl Batches {
    pub(crate) fn insert(database: &DuckDb, id: BatchId) -> String {
        format!("INSERT INTO {} (id) VALUES ('{id}')", database.own_table(TABLE))
    }

    pub(crate) fn knows(connection: &mut Connection, id: BatchId) -> Result<bool, Exception> {
        let table = connection.own_table(TABLE);
        let found = connection.rows(&format!("SELECT 1 FROM {table} WHERE id = '{id}'"))?;
        Ok(found.iter().any(|batch| batch.num_rows() > 0))
    }

    /// Counts a stored batch, and removes old ids if it is time. This runs on a thread of its own: no store
    /// waits for it.
    pub(crate) fn stored(&self, database: &DuckDb) {
        if self.since_pruned.fetch_add(1, Ordering::Relaxed) < PRUNED_EVERY {
            return;
        }
        self.since_pruned.store(0, Ordering::Relaxed);
        let database = database.clone();
        let prune = move || {
            let pruned = database.connect().and_then(|mut connection| prune(&mut connection, KEPT, KEPT_AT_MOST));
            if let Err(exception) = pruned {
                tracing::warn!(%exception, "ids of stored batches could not be pruned");
            }
        };
        if let Err(error) = spawn("windrow-prune", prune) {
            tracing::warn!(%error, "ids of stored batches could not be pruned");
        }
    }
}

/// Removes old ids. Returns how many were removed.
pub(crate) fn prune(connection: &mut Connection, kept: u64, kept_at_most: u64) -> Result<u64, Exception> {
    let table = connection.own_table(TABLE);
    let newest = |count: u64| format!("(SELECT stored_at FROM {table} ORDER BY stored_at DESC OFFSET {count} LIMIT 1)");
    let (newest_kept, newest_kept_at_most) = (newest(kept), newest(kept_at_most));
    connection.execute(&format!(
        "DELETE FROM {table} WHERE stored_at < {newest_kept_at_most} \
         OR stored_at < now() - INTERVAL '{KEPT_FOR}' AND stored_at < {newest_kept}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::DuckDbOptions;

    #[test]
    fn old_ids_go_when_enough_newer_ones_are_there() {
        let library = std::env::var_os("WINDROW_DUCKDB_LIBRARY").map(Into::into);
        let database = DuckDb::open(DuckDbOptions { library, ..DuckDbOptions::default() }).unwrap();
        let mut connection = database.connect().unwrap();
        let days_ago =
            "INSERT INTO windrow.batches SELECT uuid(), now() - to_days(day::INTEGER) FROM range(30) AS days(day)";
        connection.execute(days_ago).unwrap();
        let left = |connection: &mut Connection| {
            let rows = connection.rows("SELECT id FROM windrow.batches").unwrap();
            rows.iter().map(arrow_array::RecordBatch::num_rows).sum::<usize>()
        };
        prune(&mut connection, 100, 1000).unwrap();
        assert_eq!(left(&mut connection), 30, "so few are kept whatever their age");
        prune(&mut connection, 20, 1000).unwrap();
        assert_eq!(left(&mut connection), 21, "older than the 20 newest");
        prune(&mut connection, 2, 1000).unwrap();
        assert!((7..=9).contains(&left(&mut connection)), "a week is kept");
        prune(&mut connection, 2, 3).unwrap();
        assert_eq!(left(&mut connection), 4, "so many are too many, whatever their age");
    }
}
