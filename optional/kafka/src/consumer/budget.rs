//! The budget of bytes that may be fetched in advance.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use tokio::sync::Notify;

#[derive(Debug)]
pub(crate) struct Budget {
    max_bytes: usize,
    held_bytes: AtomicUsize,
    /// The signal that some of the budget is free again.
    freed: Arc<Notify>,
}

/// A part of the budget that is free again when it is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Budget {
    pub(crate) fn new(max_bytes: usize, freed: Arc<Notify>) -> Arc<Self> {
        Arc::new(Self { max_bytes, held_bytes: AtomicUsize::new(0), freed })
    }

    pub(crate) fn max_bytes(&self) -> usize {
        self.max_bytes
    }

    /// Takes this number of bytes, or returns `None` if there is no room. An amount larger than the whole
    /// budget is granted when nobody else holds any.
    pub(crate) fn try_hold(self: &Arc<Self>, bytes: usize) -> Option<Held> {
        let fits = |held: usize| held == 0 || held.saturating_add(bytes) <= self.max_bytes;
        let hold = |held: usize| fits(held).then(|| held.saturating_add(bytes));
        let held = self.held_bytes.fetch_update(Ordering::AcqRel, Ordering::Acquire, hold);
        held.ok().map(|_| Held { budget: self.clone(), bytes })
    }

    /// Takes this number of bytes whether there is room or not: they are in memory already.
    pub(crate) fn hold(self: &Arc<Self>, bytes: usize) -> Held {
        self.held_bytes.fetch_add(bytes, Ordering::AcqRel);
        Held { budget: self.clone(), bytes }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.budget.held_bytes.fetch_sub(self.bytes, Ordering::AcqRel);
        self.budget.freed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_is_bounded_and_comes_back() {
        let budget = Budget::new(100, Arc::default());
        let first = budget.try_hold(60).unwrap();
        assert!(budget.try_hold(41).is_none());
        let second = budget.try_hold(40).unwrap();
        drop(first);
        assert!(budget.try_hold(1_000).is_none());
        drop(second);
        let over = budget.try_hold(1_000).unwrap();
        assert!(budget.try_hold(1).is_none());
        drop((over, budget.hold(7)));
        assert_eq!(budget.held_bytes.load(Ordering::Acquire), 0);
    }
}
