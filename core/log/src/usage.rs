//! Figures of a log: the room that it takes, and its work since it was opened.

use std::sync::atomic::Ordering;

use super::Shared;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    pub segments: u64,
    /// Bytes that the segments take on the disk.
    pub file_bytes: u64,
    /// Bytes that the segments take, without the free part of the segment that is written to.
    pub used_bytes: u64,
    /// The number of records that were not released. Their bytes are up to an eighth too large.
    pub live_records: u64,
    pub live_bytes: u64,
    /// Bytes of records that were appended and are not yet on the disk.
    pub pending_bytes: u64,
    /// The number of records that were appended since the log was opened.
    pub appended: u64,
    pub refused: u64,
    pub groups: u64,
    pub failed_groups: u64,
    pub syncs: u64,
    /// Time that writing and syncing took, all groups together, in microseconds.
    pub sync_micros: u64,
    pub written_bytes: u64,
    /// The id that the next record gets.
    pub next_id: u64,
}

impl Usage {
    pub(super) fn of(shared: &Shared) -> Usage {
        let (segments, totals) = {
            let index = shared.index();
            (index.segments.len() as u64, index.totals())
        };
        let queue = shared.queue.usage();
        let counters = &shared.counters;
        Usage {
            segments,
            file_bytes: totals.file_bytes,
            used_bytes: queue.used_bytes,
            live_records: totals.live_records,
            live_bytes: totals.live_bytes,
            pending_bytes: queue.pending_bytes,
            appended: queue.appended,
            refused: queue.refused,
            groups: counters.groups.load(Ordering::Relaxed),
            failed_groups: counters.failed_groups.load(Ordering::Relaxed),
            syncs: counters.syncs.load(Ordering::Relaxed),
            sync_micros: counters.sync_micros.load(Ordering::Relaxed),
            written_bytes: counters.written_bytes.load(Ordering::Relaxed),
            next_id: queue.next_id,
        }
    }
}
