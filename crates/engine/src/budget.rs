use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;

/// A bound on the bytes held, for everything together and for one table.
#[derive(Debug, Clone)]
pub(crate) struct Budget {
    total: Arc<Pot>,
    max_table_bytes: u64,
    /// Of inserts that wait for others before they may take their part.
    waiting: Arc<Pot>,
}

/// An insert that waits for others counts for as long as this lives.
#[derive(Debug)]
pub(crate) struct Waiting<'a> {
    pot: &'a Pot,
    bytes: u64,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.pot.give_back(self.bytes);
    }
}

#[derive(Debug)]
struct Pot {
    held: AtomicU64,
    max: u64,
    freed: Notify,
}

impl Pot {
    fn new(max: u64) -> Pot {
        Pot { held: AtomicU64::new(0), max, freed: Notify::new() }
    }

    fn try_take(&self, bytes: u64) -> bool {
        // Relaxed: the counter guards no other memory.
        self.held
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |held| {
                held.checked_add(bytes).filter(|&after| after <= self.max)
            })
            .is_ok()
    }

    fn give_back(&self, bytes: u64) {
        self.held.fetch_sub(bytes, Ordering::Relaxed);
        self.freed.notify_waiters();
    }
}

/// One table's part of the budget.
#[derive(Debug)]
pub(crate) struct TableBudget {
    total: Arc<Pot>,
    table: Pot,
}

/// Which bound an insert ran into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exhausted {
    Total { max_bytes: u64 },
    Table { max_bytes: u64 },
    Waiting { max_bytes: u64 },
}

impl Budget {
    pub(crate) fn new(max_bytes: u64, max_table_bytes: u64) -> Budget {
        Budget {
            total: Arc::new(Pot::new(max_bytes)),
            max_table_bytes: max_table_bytes.min(max_bytes),
            waiting: Arc::new(Pot::new(max_bytes)),
        }
    }

    /// Inserts that wait for others hold no part of the budget, since those need it; they have a bound of their own.
    pub(crate) fn wait_with(&self, bytes: u64) -> Result<Waiting<'_>, Exhausted> {
        match self.waiting.try_take(bytes) {
            true => Ok(Waiting { pot: &self.waiting, bytes }),
            false => Err(Exhausted::Waiting { max_bytes: self.waiting.max }),
        }
    }

    pub(crate) fn for_table(&self) -> TableBudget {
        TableBudget { total: self.total.clone(), table: Pot::new(self.max_table_bytes) }
    }

    pub(crate) fn held_bytes(&self) -> u64 {
        self.total.held.load(Ordering::Relaxed)
    }

    pub(crate) fn max_bytes(&self) -> u64 {
        self.total.max
    }
}

impl TableBudget {
    pub(crate) fn held_bytes(&self) -> u64 {
        self.table.held.load(Ordering::Relaxed)
    }

    /// What of `bytes` can be had at all: the table may have been given a larger share when the rows came.
    pub(crate) fn at_most(&self, bytes: u64) -> u64 {
        bytes.min(self.table.max).min(self.total.max)
    }

    /// Takes `bytes`, however long that takes.
    pub(crate) async fn take_at_last(&self, bytes: u64) {
        self.take_when_freed(bytes).await;
    }

    pub(crate) fn try_take(&self, bytes: u64) -> Result<(), Exhausted> {
        if !self.table.try_take(bytes) {
            return Err(Exhausted::Table { max_bytes: self.table.max });
        }
        if !self.total.try_take(bytes) {
            self.table.give_back(bytes);
            return Err(Exhausted::Total { max_bytes: self.total.max });
        }
        Ok(())
    }

    /// Takes `bytes`; waits up to `patience` for others to give some back.
    pub(crate) async fn take(&self, bytes: u64, patience: Duration) -> Result<(), Exhausted> {
        let Err(exhausted) = self.try_take(bytes) else { return Ok(()) };
        if bytes > self.table.max {
            return Err(exhausted);
        }
        tokio::time::timeout(patience, self.take_when_freed(bytes)).await.map_err(|_| exhausted)
    }

    async fn take_when_freed(&self, bytes: u64) {
        loop {
            let freed = self.total.freed.notified();
            tokio::pin!(freed);
            // Registered before the look, so that what is freed in between is not missed.
            freed.as_mut().enable();
            if self.try_take(bytes).is_ok() {
                return;
            }
            freed.await;
        }
    }

    pub(crate) fn give_back(&self, bytes: u64) {
        self.table.held.fetch_sub(bytes, Ordering::Relaxed);
        self.total.give_back(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_table_takes_its_share_and_no_more() {
        let budget = Budget::new(100, 60);
        let (one, two) = (budget.for_table(), budget.for_table());
        assert_eq!(one.take(60, Duration::ZERO).await, Ok(()));
        assert_eq!(one.take(1, Duration::ZERO).await, Err(Exhausted::Table { max_bytes: 60 }));
        assert_eq!(two.take(41, Duration::ZERO).await, Err(Exhausted::Total { max_bytes: 100 }));
        assert_eq!(two.held_bytes(), 0, "what the total refused is not kept by the table");
        assert_eq!(two.take(40, Duration::ZERO).await, Ok(()));
        assert_eq!(budget.held_bytes(), 100);
    }

    #[tokio::test]
    async fn who_waits_gets_what_is_freed() {
        let budget = Budget::new(10, 10);
        let table = Arc::new(budget.for_table());
        table.take(10, Duration::ZERO).await.unwrap();
        let waiting = tokio::spawn({
            let table = table.clone();
            async move { table.take(4, Duration::from_secs(60)).await }
        });
        tokio::task::yield_now().await;
        table.give_back(5);
        assert_eq!(waiting.await.unwrap(), Ok(()));
        assert_eq!(budget.held_bytes(), 9);
    }

    #[tokio::test]
    async fn what_can_never_fit_is_refused_at_once() {
        let table = Budget::new(10, 5).for_table();
        let refused = table.take(6, Duration::from_secs(3600)).await;
        assert_eq!(refused, Err(Exhausted::Table { max_bytes: 5 }));
    }
}
