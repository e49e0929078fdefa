//! A table's backlog: which inserts have to wait behind it, and what the feeder takes out of it.

use std::sync::atomic::Ordering;
use std::time::Duration;

use windrow_clickhouse::Exception;
use windrow_log::{ContextKey, RecordId};

use crate::backlog::{Backlog, Leftover, Sender, ToFeed, Turn};
use crate::table::Table;

impl Table {
    /// Returns the turn that an insert has to wait for, or `None` if it may go. `turn` is the one that it has
    /// waited for already.
    pub(crate) fn has_to_wait(&self, turn: Option<Turn>) -> Option<Turn> {
        // Set before anything of the backlog is acknowledged, so that whoever comes after that sees it.
        if !self.has_backlog.load(Ordering::Acquire) {
            return None;
        }
        let state = self.lock();
        let backlog = state.backlog.as_ref()?;
        let turn = turn.unwrap_or_else(|| backlog.turn());
        (!backlog.is_turn_of(turn)).then_some(turn)
    }

    /// Says whether an insert that comes now is parked behind others.
    pub(crate) fn has_backlog(&self) -> bool {
        self.has_backlog.load(Ordering::Acquire)
    }

    /// Waits until all inserts that came before have been put into buffers, and all that an earlier run left
    /// have come to their end.
    pub(crate) async fn turn_comes(&self, turn: Turn) {
        loop {
            let moved = self.moved.notified();
            tokio::pin!(moved);
            // Registered before the look, so that nothing is missed in between.
            moved.as_mut().enable();
            if self.has_to_wait(Some(turn)).is_none() {
                return;
            }
            moved.await;
        }
    }

    /// Waits until the table has too many parts and `patience` is over. Returns the error of the sink's
    /// system.
    pub(crate) async fn refuses_parts(&self, patience: Duration) -> Exception {
        tokio::time::sleep(patience).await;
        loop {
            let moved = self.moved.notified();
            tokio::pin!(moved);
            moved.as_mut().enable();
            if let Some(exception) = self.too_many_parts() {
                return exception;
            }
            moved.await;
        }
    }

    /// Returns the place behind all that is in the backlog now.
    pub(crate) fn last_turn(&self) -> Option<Turn> {
        self.has_to_wait(None)
    }

    /// Makes the inserts that an earlier run left the table's backlog, which needs a feeder.
    pub(crate) fn set_leftover(&self, leftover: Leftover) {
        let mut state = self.lock();
        self.has_backlog.store(true, Ordering::Release);
        state.backlog = Some(Box::new(Backlog::of_leftover(leftover)));
    }

    /// Notes that an insert is about to be parked. Returns true if it is the first: then a feeder is needed.
    pub(crate) fn begin_parking(&self, bytes: u64) -> bool {
        let mut state = self.lock();
        self.has_backlog.store(true, Ordering::Release);
        let entered = state.entered_before;
        let is_first = state.backlog.is_none();
        state.backlog.get_or_insert_with(|| Box::new(Backlog::new(entered))).begin_parking(bytes);
        is_first
    }

    /// Notes that a parked insert is on the disk.
    pub(crate) fn parked(&self, record: RecordId, context: ContextKey, sender: &Sender) {
        if let Some(backlog) = &mut self.lock().backlog {
            backlog.parked(record, context, sender);
        }
        self.to_feed.notify_one();
    }

    pub(crate) fn not_parked(&self, bytes: u64) {
        if let Some(backlog) = &mut self.lock().backlog {
            backlog.not_parked(bytes);
        }
        self.moved.notify_waiters();
        self.to_feed.notify_one();
    }

    pub(crate) fn next_to_feed(&self) -> ToFeed {
        let mut state = self.lock();
        let Some(backlog) = &mut state.backlog else { return ToFeed::Over };
        let next = backlog.next();
        if let ToFeed::Over = next {
            state.entered_before = backlog.entered();
            let over = state.backlog.take();
            self.has_backlog.store(false, Ordering::Release);
            drop(state);
            // With the shapes that it kept, of which one may be the last that knows this table.
            drop(over);
            self.moved.notify_waiters();
        }
        next
    }

    pub(crate) fn sender_of(&self, context: ContextKey) -> Option<Sender> {
        self.lock().backlog.as_ref()?.sender(context)
    }

    /// Notes that inserts of the backlog are in a buffer, or will never be.
    pub(crate) fn fed(&self, inserts: u64, bytes: u64) {
        if let Some(backlog) = &mut self.lock().backlog {
            backlog.fed(inserts, bytes);
        }
        self.moved.notify_waiters();
    }

    /// Says whether more inserts of an earlier run are to be fed that belong together with the last ones.
    pub(crate) fn has_more_of_run(&self) -> bool {
        self.lock().backlog.as_ref().is_some_and(|backlog| backlog.has_more_of_run())
    }

    /// Notes that inserts that an earlier run left have come to their end. Returns true if these were the
    /// last.
    pub(crate) fn leftovers_settled(&self, inserts: u64) -> bool {
        if inserts == 0 {
            return false;
        }
        let mut state = self.lock();
        let Some(backlog) = &mut state.backlog else { return false };
        backlog.settled(inserts);
        let were_last = backlog.unsettled() == 0;
        drop(state);
        self.moved.notify_waiters();
        self.to_feed.notify_one();
        were_last
    }
}
