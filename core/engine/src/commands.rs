use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::Duration;

use crate::policy::SealReason;
use crate::sink::{Destination, Sink, TableKey};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use windrow_clickhouse::Exception;
use windrow_log::{RecordId, Usage};

use crate::activity::TableFigures;
use crate::gatherer::Gatherer;
use crate::insert::{InsertKind, QueryId};
use crate::journaling::Leftovers;
use crate::latency::LatencyCounts;
use crate::log::{InsertStatus, LogEntry, LoggedBatch};
use crate::metrics::Held;
use crate::table::Table;

/// A batch that is being gathered or waits for its turn: a row of `system.asynchronous_inserts`.
pub struct BufferSnapshot {
    pub destination: Arc<Destination>,
    pub kind: Arc<InsertKind>,
    /// Time of the first insert, in microseconds since 1970.
    pub first_update_micros: u64,
    pub entries: Vec<BufferEntry>,
}

pub struct BufferEntry {
    pub query_id: QueryId,
    pub bytes: u64,
}

/// Waits for the end of all these batches.
async fn all(ended: Vec<oneshot::Receiver<()>>) {
    for end in ended {
        // An error means that the batch ended without telling, which is an end.
        let _ = end.await;
    }
}

/// Inserts that a gatherer leaves behind when it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShutDown {
    /// Inserts that the next start will store.
    pub left_in_journal: Leftovers,
    /// Number of acknowledged inserts that only memory kept, and that were not stored.
    pub lost_inserts: u64,
}

impl<S: Sink> Gatherer<S> {
    /// Flushes all buffers, or those of some tables, and waits for everything of these tables that was under
    /// way.
    pub async fn flush(&self, only: Option<&[TableKey]>) {
        self.flush_for(SealReason::Command, only).await;
    }

    async fn flush_for(&self, reason: SealReason, only: Option<&[TableKey]>) {
        let tables = self.tables();
        let meant = tables.into_iter().filter(|table| only.is_none_or(|names| names.contains(&table.name)));
        let (mut ended, mut behind) = (Vec::new(), JoinSet::new());
        for table in meant {
            // What lies in the buffers may also take the room that the backlog needs.
            let turn = table.last_turn();
            ended.extend(self.seal(reason, &table));
            if let Some(turn) = turn {
                let gatherer = self.clone();
                behind.spawn(async move {
                    table.turn_comes(turn).await;
                    all(gatherer.seal(reason, &table)).await;
                });
            }
        }
        all(ended).await;
        behind.join_all().await;
        // Dead letters may find no room for days: only the end, which has a limit, waits for them.
        if reason == SealReason::Shutdown {
            self.core.posting.all_arrived().await;
        }
    }

    /// Seals the table's buffers. Returns the ends of all batches that are under way.
    fn seal(&self, reason: SealReason, table: &Table) -> Vec<oneshot::Receiver<()>> {
        let flushing = table.flush(reason);
        self.launch(flushing.launches);
        flushing.ended
    }

    /// Stops taking inserts, and stores what there is for as long as `limit` says.
    pub async fn shut_down(&self, limit: Duration) -> ShutDown {
        self.closing.store(true, Ordering::Release);
        // What could not be stored in time is counted, and whoever waits for it is told.
        if tokio::time::timeout(limit, self.flush_for(SealReason::Shutdown, None)).await.is_err() {
            self.core.gave_up.happens();
        }
        let in_batches: u64 = self.tables().iter().map(|table| table.unkept_inserts()).sum();
        self.core.ended.happens();
        let lost_inserts = in_batches + self.core.posting.unkept_inserts();
        ShutDown { left_in_journal: self.leftovers(), lost_inserts }
    }

    /// Makes sure that inserts that became dead letters don't come back from the journal after a crash. It
    /// has to be called before such dead letters are given up.
    ///
    /// # Errors
    /// Fails with the reason where the journal has no room for the record, or can't write it.
    pub async fn ensure_done(&self, journal_ids: &[u64]) -> Result<(), String> {
        match &self.core.journal {
            Some(journal) if !journal_ids.is_empty() => {
                journal.ensure_done(&journal_ids.iter().copied().map(RecordId).collect::<Vec<_>>()).await
            }
            _ => Ok(()),
        }
    }

    /// Returns the inserts in the journal that have not come to their end.
    pub fn leftovers(&self) -> Leftovers {
        self.core.journal.as_ref().map(|journal| journal.leftovers()).unwrap_or_default()
    }

    pub fn buffers(&self) -> Vec<BufferSnapshot> {
        let views = self.tables().into_iter().flat_map(|table| table.buffers());
        let snapshot = views.map(|view| BufferSnapshot {
            destination: view.shape.destination.clone(),
            kind: view.kind,
            first_update_micros: view.opened_wall_micros,
            entries: view.entries.into_iter().map(|(query_id, bytes)| BufferEntry { query_id, bytes }).collect(),
        });
        snapshot.collect()
    }

    /// Returns the latest inserts that came to an end, oldest first.
    pub fn log(&self) -> Vec<LoggedBatch> {
        self.core.log.snapshot()
    }

    /// Adds an insert to the log that no batch has: it has no rows, or was refused when it came.
    pub fn log_without_batch(
        &self,
        destination: Arc<Destination>,
        kind: Arc<InsertKind>,
        query_id: QueryId,
        payload_bytes: u64,
        refusal: Option<Exception>,
    ) {
        let now = self.core.stores.environment.wall_micros();
        let status = match &refusal {
            None => InsertStatus::Ok,
            Some(exception) if exception.is_of_writing() => InsertStatus::FlushError,
            Some(_) => InsertStatus::ParsingError,
        };
        let exception = refusal.map(|exception| Arc::from(exception.line));
        let (event_time_micros, bytes, rows) = (now, payload_bytes, 0);
        let insert = LogEntry { event_time_micros, kind, query_id, bytes, rows, exception, status };
        self.core.log.add(LoggedBatch {
            destination,
            flush_query_id: None,
            flush_time_micros: if status == InsertStatus::ParsingError { 0 } else { now },
            timeout_ms: 0,
            inserts: Arc::new([insert]),
        });
    }

    /// Returns the bytes in buffers and in batches on their way.
    pub fn held_bytes(&self) -> u64 {
        self.registry.budget.held_bytes()
    }

    /// Returns what each table has done since the start, in no particular order.
    pub fn activity(&self) -> Vec<(TableKey, TableFigures)> {
        let all = self.registry.metrics.activities.all().into_iter();
        all.map(|(name, activity)| (name, activity.figures())).collect()
    }

    /// Updates the rates of all tables, and returns what they have done together. The last update was
    /// `seconds` ago.
    pub fn tick_activity(&self, seconds: f64) -> TableFigures {
        self.registry.metrics.activities.tick(seconds)
    }

    /// Returns what each table in use holds at this moment, with all its shards.
    pub fn held_by_tables(&self) -> HashMap<TableKey, Held> {
        let mut held = HashMap::new();
        for table in self.tables_in_use() {
            let of_table: &mut Held = held.entry(table.name.clone()).or_default();
            *of_table = std::mem::take(of_table).and(table.held());
        }
        held
    }

    /// Returns what all tables in use hold together, with the age of the oldest insert.
    pub fn held_together(&self) -> Held {
        self.tables_in_use().iter().map(|table| table.held()).fold(Held::default(), Held::and)
    }

    /// Returns the durations from a batch's sealing to its end, for all tables together.
    pub fn flush_latency(&self) -> LatencyCounts {
        self.registry.metrics.flush_latency.counts()
    }

    /// Returns the usage of the journal, if there is one.
    pub fn journal_usage(&self) -> Option<Usage> {
        self.core.journal.as_ref().map(|journal| journal.log.usage())
    }

    /// Brings the gauges up to date, before metrics are read.
    pub fn update_gauges(&self) {
        self.registry.metrics.reset_shared();
        for shards in self.tables().chunk_by(|one, other| one.name == other.name) {
            let held = shards.iter().map(|table| table.held()).fold(Held::default(), Held::and);
            shards[0].metrics.holds(&held);
        }
        if let Some(journal) = &self.core.journal {
            self.registry.metrics.journal.update(journal);
        }
    }
}
