//! An insert that is on its way under its keys, and the repeats that wait for its end.

use std::sync::{Arc, Weak};

use tokio::sync::watch;

use super::Shared;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Progress {
    UnderWay,
    /// The insert can't be lost any more.
    Durable,
    Ended,
}

/// The progress of an insert on its way, as others see it.
pub(super) struct Flight {
    progress: watch::Sender<Progress>,
}

impl Flight {
    pub(super) fn new() -> Flight {
        Flight { progress: watch::Sender::new(Progress::UnderWay) }
    }

    pub(super) fn is_durable(&self) -> bool {
        *self.progress.borrow() >= Progress::Durable
    }

    /// Waits until something has changed that a repeat may go by.
    pub(super) async fn wait(&self, durable_will_do: bool) {
        let enough = if durable_will_do { Progress::Durable } else { Progress::Ended };
        let mut progress = self.progress.subscribe();
        // It is told of the end before it is gone.
        let _ = progress.wait_for(|progress| *progress >= enough).await;
    }

    fn advance(&self, to: Progress) {
        self.progress.send_if_modified(|progress| {
            let is_news = *progress < to;
            *progress = to.max(*progress);
            is_news
        });
    }

    pub(super) fn end(&self) {
        self.advance(Progress::Ended);
    }
}

/// The right to store an insert under its keys. If it is dropped before the insert is stored, the keys are
/// freed.
pub(super) struct Claim {
    pub(super) deduplication: Weak<Shared>,
    pub(super) table: u128,
    pub(super) key: u128,
    pub(super) flight: Arc<Flight>,
    /// The keys are to be freed at the end.
    pub(super) holds: bool,
}

/// A handle of the claim of an insert that is on its way.
pub struct ClaimHandle {
    flight: Arc<Flight>,
}

impl ClaimHandle {
    /// Notes that the insert can't be lost any more: a repeat that asks for no more than that need not wait
    /// for its end.
    pub fn tell_durable(&self) {
        self.flight.advance(Progress::Durable);
    }
}

impl Claim {
    pub(super) fn handle(&self) -> ClaimHandle {
        ClaimHandle { flight: self.flight.clone() }
    }

    /// Leaves the keys taken until the insert is claimed anew. The insert can't be lost until then.
    pub(super) fn park(mut self) {
        self.holds = false;
        self.flight.advance(Progress::Durable);
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if !self.holds {
            return;
        }
        if let Some(deduplication) = self.deduplication.upgrade() {
            deduplication.lock().release(self.table, self.key, &self.flight);
        }
        self.flight.end();
    }
}
