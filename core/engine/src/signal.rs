use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// An event that happens once. Tasks that wait for it wake in the order in which they began to wait, which
/// tokio's `watch` leaves to chance: the simulation repeats a run by its seed.
#[derive(Debug, Default)]
pub(crate) struct Signal {
    has_happened: AtomicBool,
    waiting: Notify,
}

impl Signal {
    pub(crate) fn happens(&self) {
        self.has_happened.store(true, Ordering::Release);
        self.waiting.notify_waiters();
    }

    pub(crate) async fn wait(&self) {
        // Whoever has this misses nothing from here on.
        let notified = self.waiting.notified();
        if !self.has_happened.load(Ordering::Acquire) {
            notified.await;
        }
    }
}
