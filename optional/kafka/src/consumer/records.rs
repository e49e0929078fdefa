//! Fetched records on their way to the code that decodes them.

use std::sync::Arc;

use tokio::sync::mpsc;

use crate::batch::VisibleBatches;
use crate::consumer::budget::Held;
use crate::consumer::event::Claim;
use crate::consumer::shared::Shared;

/// Some of a partition's records, which follow those before without a gap.
#[derive(Debug)]
pub struct Fetched {
    pub claim: Claim,
    /// The batches of these records. The first one may begin before `from_offset`, since batches are sent
    /// whole: the reader has to leave out the records before it.
    pub batches: VisibleBatches,
    pub from_offset: i64,
    /// Offset of the next delivery. The range before it may have nothing to see: aborted transactions, or
    /// records that compaction has removed.
    pub next_offset: i64,
    pub high_watermark: i64,
    /// Bytes of the records as they were sent.
    pub bytes: usize,
    /// The part of the budget that is taken until this is dropped. It bounds what is fetched in advance.
    pub(crate) _held: Held,
}

/// The stream of everything that is fetched. Records of one partition come in their order.
#[derive(Debug)]
pub struct Records {
    pub(crate) receiver: mpsc::UnboundedReceiver<Delivery>,
    pub(crate) shared: Arc<Shared>,
}

#[derive(Debug)]
pub(crate) struct Delivery {
    pub fetched: Fetched,
    /// Number of the partition's start that this delivery belongs to.
    pub start: u64,
}

impl Records {
    /// Returns the next records, or `None` when the consumer has ended. Records of a partition that was given
    /// up, lost or started anew since they were fetched are passed over. The future may be dropped and made
    /// anew without loss.
    pub async fn next(&mut self) -> Option<Fetched> {
        loop {
            let delivery = self.receiver.recv().await?;
            if self.shared.is_current(&delivery) {
                return Some(delivery.fetched);
            }
        }
    }
}
