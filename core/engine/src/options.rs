use std::time::Duration;

#[derive(Debug, Clone)]
pub struct GathererOptions {
    /// Bytes that all buffers and flights may hold together.
    pub max_buffer_bytes: u64,
    /// Bytes of these that one table may take.
    pub max_table_bytes: u64,
    /// Time that an insert waits for room before it is refused.
    pub overload_wait: Duration,
    /// Time that an insert, if its sender waits for the sink, goes on waiting while its table has too many
    /// parts.
    pub too_many_parts_wait: Duration,
    /// Time for which a batch is tried again after errors that may pass; with `None`, until it is stored.
    pub retry_for: Option<Duration>,
    /// Bytes of the journal that one table's inserts may take.
    pub max_table_journal_bytes: u64,
    /// Time that inserts that nobody waits for may be held for others when the backend has too much to do.
    pub longest_hold: Duration,
    /// Number of tables with series of their own in the metrics; the others share some.
    pub max_tables_in_metrics: usize,
    /// Number of entries kept for `system.asynchronous_insert_log`.
    pub log_entries: usize,
}

impl Default for GathererOptions {
    fn default() -> Self {
        GathererOptions {
            max_buffer_bytes: 256 << 20,
            max_table_bytes: 128 << 20,
            overload_wait: Duration::from_secs(1),
            too_many_parts_wait: Duration::from_secs(5),
            retry_for: None,
            max_table_journal_bytes: 1 << 30,
            longest_hold: Duration::from_secs(60),
            max_tables_in_metrics: 1_000,
            log_entries: 100_000,
        }
    }
}
