//! The choice of the batches of a partition's answer that may be seen.
//!
//! With `read_committed` the broker sends only batches before the first open transaction. With them comes the
//! list of the transactions there that were aborted: the producer of each, and the offset where it begins.
//! Such a transaction ends at its producer's next abort marker.

use crate::batch::error::BatchError;
use crate::batch::record_batch::{Batches, RecordBatch};
use crate::wire::{AbortedTransaction, FetchedPartition, Isolation};

/// An iterator over the batches with records that may be seen. It passes over aborted ones and over the
/// markers of transactions.
#[derive(Debug, Clone)]
pub struct VisibleBatches {
    batches: Batches,
    /// Aborted transactions that are not reached yet, the first one last.
    ahead: Vec<AbortedTransaction>,
    /// Ids of producers inside an aborted transaction.
    aborting: Vec<i64>,
    position: i64,
}

impl VisibleBatches {
    /// Iterates over an answer to a request from `fetch_offset` on. The first batch may begin before it,
    /// since batches are sent whole: the caller has to leave out the records before it.
    pub fn new(partition: &FetchedPartition, isolation: Isolation, fetch_offset: i64) -> Self {
        let mut ahead = match isolation {
            Isolation::ReadCommitted => partition.aborted_transactions.clone(),
            Isolation::ReadUncommitted => Vec::new(),
        };
        ahead.sort_by_key(|transaction| std::cmp::Reverse(transaction.first_offset));
        Self { batches: Batches::new(partition.records.clone()), ahead, aborting: Vec::new(), position: fetch_offset }
    }

    /// Returns the offset to go on with. It lies behind every batch that was passed so far, seen or not.
    pub fn position(&self) -> i64 {
        self.position
    }

    fn is_visible(&mut self, batch: &RecordBatch) -> Result<bool, BatchError> {
        while let Some(begun) = self.ahead.pop_if(|transaction| transaction.first_offset <= batch.last_offset) {
            self.aborting.push(begun.producer_id);
        }
        if batch.is_control {
            if is_abort_marker(batch)? {
                self.aborting.retain(|producer_id| *producer_id != batch.producer_id);
            }
            return Ok(false);
        }
        Ok(!batch.is_transactional || !self.aborting.contains(&batch.producer_id))
    }
}

impl Iterator for VisibleBatches {
    type Item = Result<RecordBatch, BatchError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let batch = match self.batches.next()? {
                Ok(batch) => batch,
                Err(error) => return Some(Err(error)),
            };
            match self.is_visible(&batch) {
                Ok(visible) => {
                    self.position = self.position.max(batch.last_offset.saturating_add(1));
                    // A batch that compaction has emptied has nothing to show.
                    if visible && batch.count > 0 {
                        return Some(Ok(batch));
                    }
                }
                Err(error) => {
                    self.batches = Batches::new(bytes::Bytes::new());
                    return Some(Err(error));
                }
            }
        }
    }
}

/// Says whether a control batch aborts a transaction. A marker's key is its version and its kind: 0 for an
/// aborted transaction, 1 for a committed one. Other kinds are for the brokers.
fn is_abort_marker(batch: &RecordBatch) -> Result<bool, BatchError> {
    let Some(marker) = batch.uncompressed_records().next().transpose()? else { return Ok(false) };
    match marker.key {
        Some([_, _, 0, 0, ..]) => Ok(true),
        Some([_, _, _, _, ..]) => Ok(false),
        _ => Err(BatchError::corrupt(batch.base_offset, "the marker of a transaction has no kind")),
    }
}
