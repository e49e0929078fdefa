//! By what stored batches are known when they come again: a table of their ids beside the tables that they go to.
//!
//! As on DuckDB, old ids go only when many newer ones are there: a batch comes again after a lost answer, which is at
//! once, or after a crash, which may be as long ago as the gateway was away.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use windrow_clickhouse::{ErrorCode, Exception};
use windrow_engine::sink::BatchId;

use crate::connection::Connection;
use crate::system::BATCHES;

/// Ids that are kept whatever their age, and however many there are.
const KEPT: u64 = 100_000;
const KEPT_AT_MOST: u64 = 2_000_000;
/// After so many stored batches the table is looked through.
const PRUNED_EVERY: u64 = 20_000;

#[derive(Default)]
pub(crate) struct Batches {
    is_made: AtomicBool,
    since_pruned: AtomicU64,
}

/// What became of an id that was to be noted.
pub(crate) enum Noted {
    New,
    /// The batch is stored, or is about to be: the same id is there.
    Known,
}

impl Batches {
    /// Before a transaction that writes into the table.
    pub(crate) fn make(&self, connection: &mut Connection) -> Result<(), Exception> {
        if !self.is_made.load(Ordering::Relaxed) {
            connection.execute(&connection.system().create_batches())?;
            self.is_made.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    /// The first statement of a batch's transaction. Another one that has noted the same id, and has not ended, is
    /// waited for: what follows an id that is new is surely not stored by an earlier attempt.
    pub(crate) fn note(&self, connection: &mut Connection, id: BatchId) -> Result<Noted, Exception> {
        if !connection.system().keeps_ids_apart() && knows(connection, id)? {
            return Ok(Noted::Known);
        }
        match connection.execute(&format!("INSERT INTO {BATCHES} (id) VALUES ('{id}')")) {
            Ok(_) => Ok(Noted::New),
            Err(exception) if exception.code == ErrorCode::VIOLATED_CONSTRAINT => Ok(Noted::Known),
            Err(exception) => {
                // Somebody may have dropped it.
                self.is_made.fetch_and(exception.code != ErrorCode::UNKNOWN_TABLE, Ordering::Relaxed);
                Err(exception)
            }
        }
    }

    /// Whether it is time to look the table through.
    pub(crate) fn stored(&self) -> bool {
        let is_due = self.since_pruned.fetch_add(1, Ordering::Relaxed) + 1 >= PRUNED_EVERY;
        if is_due {
            self.since_pruned.store(0, Ordering::Relaxed);
        }
        is_due
    }
}

pub(crate) fn knows(connection: &mut Connection, id: BatchId) -> Result<bool, Exception> {
    let found = connection.rows(&format!("SELECT 1 FROM {BATCHES} WHERE id = '{id}'"))?;
    Ok(found.iter().any(|batch| batch.num_rows() > 0))
}

pub(crate) fn prune(connection: &mut Connection) -> Result<u64, Exception> {
    let newest =
        |count: u64| format!("(SELECT stored_at FROM {BATCHES} ORDER BY stored_at DESC LIMIT 1 OFFSET {count})");
    let (newest_kept, newest_kept_at_most, week_ago) =
        (newest(KEPT), newest(KEPT_AT_MOST), connection.system().week_ago());
    connection.execute(&format!(
        "DELETE FROM {BATCHES} WHERE stored_at < {newest_kept_at_most} \
         OR (stored_at < {week_ago} AND stored_at < {newest_kept})"
    ))
}
