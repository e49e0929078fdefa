//! The options of a buffer on a disk.

/// The time at which written rows are made to survive a loss of power.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskSync {
    /// The kernel decides when. The death of the process loses nothing even so.
    Never,
    /// The time after which written rows are synced, in milliseconds.
    Interval(u64),
    /// Each append is synced before it is confirmed; one sync serves all who wait.
    Always,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskOptions {
    pub batch_rows: usize,
    pub batch_bytes: usize,
    /// The limit of bytes on the disk for the segments of this writer and of the logs that it has adopted,
    /// together.
    pub max_disk_bytes: u64,
    /// The size of a segment. A row that is larger gets a larger segment.
    pub segment_bytes: u64,
    pub sync: DiskSync,
}

impl Default for DiskOptions {
    fn default() -> Self {
        DiskOptions {
            batch_rows: 5000,
            batch_bytes: 16 << 20,
            max_disk_bytes: 1 << 30,
            segment_bytes: 16 << 20,
            sync: DiskSync::Never,
        }
    }
}

const MIN_SEGMENT_BYTES: u64 = 16 << 10;
const MAX_SEGMENT_BYTES: u64 = 1 << 30;

impl DiskOptions {
    /// Returns options that work: there is room for several segments, and a segment has room for several rows.
    pub(super) fn sane(mut self) -> DiskOptions {
        self.batch_rows = self.batch_rows.max(1);
        self.batch_bytes = self.batch_bytes.max(1);
        let most = (self.max_disk_bytes / 4).clamp(MIN_SEGMENT_BYTES, MAX_SEGMENT_BYTES);
        self.segment_bytes = self.segment_bytes.clamp(MIN_SEGMENT_BYTES, most).next_multiple_of(4096);
        self
    }

    /// Returns the bytes at the end of each segment that are for seals and dones alone: when rows find no
    /// room any more, the rows that are there can still be sealed, sent and released.
    pub(super) fn reserve_bytes(&self) -> u64 {
        (self.segment_bytes / 16).next_multiple_of(8)
    }

    /// Returns the most bytes of rows in one record. A larger row gets its own record; more rows than fit
    /// become several records, none larger than a batch.
    pub(super) fn record_bytes(&self) -> usize {
        self.batch_bytes.min((self.segment_bytes / 4) as usize)
    }
}
