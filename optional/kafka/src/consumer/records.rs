//! What was fetched, on its way to whoever decodes it.

use std::sync::Arc;

use tokio::sync::mpsc;

use crate::batch::VisibleBatches;
use crate::consumer::budget::Held;
use crate::consumer::event::Claim;
use crate::consumer::shared::Shared;

/// Some of a partition's records, next to those before.
#[derive(Debug)]
pub struct Fetched {
    pub claim: Claim,
    /// The first of them may begin before `from_offset`, since batches are sent whole: records before it are to be left out.
    pub batches: VisibleBatches,
    pub from_offset: i64,
    /// What comes next begins here. There may be nothing to see before it: aborted transactions, what compaction has removed.
    pub next_offset: i64,
    pub high_watermark: i64,
    /// On the wire.
    pub bytes: usize,
    /// Bounds what is fetched in advance, until this is dropped.
    pub(crate) _held: Held,
}

/// Everything that is fetched, in the order of each partition.
#[derive(Debug)]
pub struct Records {
    pub(crate) receiver: mpsc::UnboundedReceiver<Delivery>,
    pub(crate) shared: Arc<Shared>,
}

#[derive(Debug)]
pub(crate) struct Delivery {
    pub fetched: Fetched,
    /// Of the partition's start that it belongs to.
    pub start: u64,
}

impl Records {
    /// Nothing when the consumer has ended. What was fetched of a partition that was given up, lost or started anew since is passed
    /// over. May be dropped and called again without loss.
    pub async fn next(&mut self) -> Option<Fetched> {
        loop {
            let delivery = self.receiver.recv().await?;
            if self.shared.is_current(&delivery) {
                return Some(delivery.fetched);
            }
        }
    }
}
