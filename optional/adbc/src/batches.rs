//! The table of the ids of stored batches, which stands beside their tables. A batch that comes again is
//! known by its id.
//!
//! Old ids are removed only when many newer ones are there, as on DuckDB: a batch comes again after a lost
//! answer, which is at once, or after a crash, which may be as long ago as the gateway was away.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use windrow_clickhouse::{ErrorCode, Exception};
use windrow_engine::sink::BatchId;

use crate::connection::Connection;
use crate::system::BATCHES;

/// Count of the newest ids that are kept whatever their age.
const KEPT: u64 = 100_000;
const KEPT_AT_MOST: u64 = 2_000_000;
/// Count of stored batches after which old ids are removed.
const PRUNED_EVERY: u64 = 20_000;

#[derive(Default)]
pub(crate) struct Batches {
    is_made: AtomicBool,
    since_pruned: AtomicU64,
}

/// The result of noting an id.
pub(crate) enum Noted {
    New,
    /// The batch is stored, or is about to be: the same id is there.
    Known,
}

impl Batches {
    /// Makes the table. It is called before a transaction that writes into it.
    pub(crate) fn make(&self, connection: &mut Connection) -> Result<(), Exception> {
        if !self.is_made.load(Ordering::Relaxed) {
            connection.execute(&connection.system().create_batches())?;
            self.is_made.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Notes the id, as the first statement of a batch's transaction. This waits for any other transaction
    /// that has noted the same id and has not ended. So after a new id nothing was stored by an earlier
    /// attempt.
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

    /// Counts a stored batch, and says whether it is time to remove old ids.
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
