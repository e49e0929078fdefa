//! The engine of a pipeline: from fetched batches to stored rows and committed offsets.
//!
//! # Structure
//!
//! A session is one membership of the group. Its task holds all state and does nothing that takes time. It
//! takes what the consumer has fetched and hands it to threads that read it, one at a time for each partition
//! (`read.rs`). It puts the chunks that come back into the open batch, asks the policy when to seal it, and
//! takes the steps that the accounts ask for, one at a time (`commit.rs`, `push.rs`). So while one batch is
//! stored, the next is gathered, and the one after that is fetched. A single message of Kafka costs no task,
//! no message to another task and no allocation, unless it is refused.
//!
//! # Bounds
//!
//! Fetched bytes that wait to be read are bounded by the consumer (`prefetch_bytes`), rows in memory by `held_bytes`.
//! Above this bound no partition is read, and all are paused until a quarter of it is free again.
//!
//! # End of a session
//!
//! A session ends by the command to stop; by a message that can't be stored, where that stops the pipeline;
//! by the consumer, when its error doesn't pass by itself; and by a table that begins, or ceases, to
//! recognise repeated batches. After all but the first two, another session begins.

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

/// Returns the pauses between attempts that go on for ever.
fn endless_retries() -> Backoff {
    const FIRST_MS: u64 = 100;
    const LONGEST_MS: u64 = 5_000;
    Backoff::new(FIRST_MS, LONGEST_MS)
}
