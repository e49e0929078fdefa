use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::Duration;

use windrow_client::Exception;
use windrow_policy::SealReason;
use windrow_sink::{Destination, Sink};

use crate::gatherer::Gatherer;
use crate::insert::{InsertKind, QueryId};
use crate::log::{InsertStatus, LogEntry, LoggedBatch};
use crate::table::Table;

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TableName {
    pub database: String,
    pub table: String,
}

/// A batch that is being gathered or waits for its turn: a row of `system.asynchronous_inserts`.
pub struct BufferSnapshot {
    pub destination: Arc<Destination>,
    pub kind: Arc<InsertKind>,
    /// Microseconds since 1970.
    pub first_update_micros: u64,
    pub entries: Vec<BufferEntry>,
}

pub struct BufferEntry {
    pub query_id: QueryId,
    pub bytes: u64,
}

impl<S: Sink> Gatherer<S> {
    /// Flushes all buffers, or those of some tables, and waits for everything of these tables that was under way.
    pub async fn flush(&self, only: Option<&[TableName]>) {
        self.flush_for(SealReason::Command, only).await;
    }

    async fn flush_for(&self, reason: SealReason, only: Option<&[TableName]>) {
        let tables = self.tables();
        let meant = |table: &Arc<Table>| only.is_none_or(|names| names.contains(&table.name));
        let mut ended = Vec::new();
        for table in tables.iter().filter(|table| meant(table)) {
            let flushing = table.flush(reason);
            flushing.launches.into_iter().for_each(|launch| self.launch(launch));
            ended.extend(flushing.ended);
        }
        for end in ended {
            // An error means that the batch ended without telling, which is an end.
            let _ = end.await;
        }
        self.core.posting.all_arrived().await;
    }

    /// Takes no more inserts and stores what there is. False: not everything was stored within `limit`.
    pub async fn shut_down(&self, limit: Duration) -> bool {
        self.closing.store(true, Ordering::Release);
        tokio::time::timeout(limit, self.flush_for(SealReason::Shutdown, None)).await.is_ok()
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

    /// The latest inserts that came to an end, oldest first.
    pub fn log(&self) -> Vec<LoggedBatch> {
        self.core.log.snapshot()
    }

    /// Enters an insert that was refused because nobody could read its payload.
    pub fn log_unreadable(
        &self,
        destination: Destination,
        kind: Arc<InsertKind>,
        query_id: QueryId,
        payload_bytes: u64,
        exception: Exception,
    ) {
        let insert = LogEntry {
            event_time_micros: self.core.stores.surroundings.wall_micros(),
            kind,
            query_id,
            bytes: payload_bytes,
            rows: 0,
            exception: Some(Arc::from(exception.line)),
            status: InsertStatus::ParsingError,
        };
        self.core.log.add(LoggedBatch {
            destination: Arc::new(destination),
            flush_query_id: None,
            flush_time_micros: 0,
            timeout_ms: 0,
            inserts: Arc::new([insert]),
        });
    }

    /// Bytes in buffers and in batches on their way.
    pub fn held_bytes(&self) -> u64 {
        self.registry.budget.held_bytes()
    }

    /// Brings the gauges up to date, before metrics are read.
    pub fn update_gauges(&self) {
        self.tables().iter().for_each(|table| table.update_gauges());
    }
}
