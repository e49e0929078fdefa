use std::time::Duration;

#[derive(Debug, Clone)]
pub struct GathererOptions {
    /// Bytes that all buffers and flights may hold together.
    pub max_buffer_bytes: u64,
    /// Bytes that one table may take of them.
    pub max_table_bytes: u64,
    /// How long an insert waits for room before it is refused.
    pub overload_wait: Duration,
    /// For how long a batch is tried again after errors that may pass; `None`: until it is stored.
    pub retry_for: Option<Duration>,
    /// Bytes of the journal that one table's inserts may take.
    pub max_table_journal_bytes: u64,
    /// Entries kept for `system.asynchronous_insert_log`.
    pub log_entries: usize,
}

impl Default for GathererOptions {
    fn default() -> Self {
        GathererOptions {
            max_buffer_bytes: 256 << 20,
            max_table_bytes: 128 << 20,
            overload_wait: Duration::from_secs(1),
            retry_for: None,
            max_table_journal_bytes: 1 << 30,
            log_entries: 100_000,
        }
    }
}
