//! One pipeline at work: from fetched batches to stored rows and committed offsets.
//!
//! # How it hangs together
//!
//! A session is one membership of the group. Its task holds all state and does nothing that takes time: it takes what
//! the consumer has fetched and hands it to threads that read it, one at a time for each partition (`read.rs`); puts
//! the chunks that come back into the open batch; asks the policy when to seal it; and takes the steps that the
//! accounts ask for, one at a time (`commit.rs`, `push.rs`). So while one batch is stored, the next is gathered, and
//! the one after that is fetched. There is no task, no message to another task and no allocation for a single message
//! of Kafka, but for those that are refused.
//!
//! # Bounds
//!
//! Fetched bytes that wait to be read are bounded by the consumer (`prefetch`), rows in memory by `held`: beyond that
//! no partition is read, and all are paused until a quarter of it is free again.
//!
//! # What ends a session
//!
//! The command to stop; a message that can't be stored where that is to stop the pipeline; the consumer, when what is
//! wrong doesn't pass by itself; and a table that begins, or ceases, to recognise repeated batches. All but the first
//! two begin another.

mod chunk;
mod commit;
mod dead_letters;
mod expired;
mod isolate;
mod partition;
mod prefix;
mod push;
mod read;
mod replay;
mod revive;
mod session;
mod setup;
mod sizes;
mod start;

use crate::Backoff;

pub(crate) use read::Readers;
pub(crate) use revive::{revive, Current};
pub(crate) use setup::{run, Pipeline};

/// Pauses between attempts that go on for ever.
fn endless_retries() -> Backoff {
    const FIRST_MS: u64 = 100;
    const LONGEST_MS: u64 = 5_000;
    Backoff::new(FIRST_MS, LONGEST_MS)
}
