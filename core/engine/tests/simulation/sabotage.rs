//! Ways of breaking the gatherer on purpose, which show that the simulation notices faults.
//!
//! A simulated gateway runs on one thread, so the gatherer is broken for that thread alone: other tests go on
//! beside it.

use std::cell::Cell;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sabotage {
    /// No write of the journal is synced.
    SkipsSync,
    /// An insert is acknowledged before it is on the disk.
    AcknowledgesEarly,
    /// A batch that is tried again goes under another id.
    ForgetsIdOnRetry,
    /// Segments are given up while they hold inserts that aren't stored.
    DropsSegmentsEarly,
    /// The journal says that inserts are done before they are stored.
    WritesDoneEarly,
    /// A batch that an earlier life has sent goes under another id.
    ForgetsIdAfterCrash,
    /// An insert is acknowledged when one of its parts is.
    AcknowledgesParts,
    /// An insert with a token stays at the gateway that it comes to.
    LeavesTokens,
}

thread_local! {
    static COMMITTED: Cell<Option<Sabotage>> = const { Cell::new(None) };
}

/// Says whether the gatherer is broken in this way.
pub(crate) fn is(sabotage: Sabotage) -> bool {
    COMMITTED.get() == Some(sabotage)
}

/// Breaks this thread's gatherers until the returned value is dropped.
pub(super) fn commit(sabotage: Option<Sabotage>) -> Broken {
    COMMITTED.set(sabotage);
    Broken
}

pub(super) struct Broken;

impl Drop for Broken {
    fn drop(&mut self) {
        COMMITTED.set(None);
    }
}
