//! Dead letters: inserts that were acknowledged and can't be stored, kept with their rows until an operator
//! deals with them; and messages that a pipeline could not store, kept unchanged.
//!
//! # How they are kept
//!
//! A log of its own (`windrow_log::log`, in `dead-letters/` of the data directory) holds one record per dead
//! letter (`record.rs`), which is durable before the gatherer forgets the insert. The data for lists and
//! selections is kept in memory (`index.rs`), about half a kilobyte a dead letter; rows are read on request.
//! Passwords are not written: a retried insert is stored with the gateway's own account.
//!
//! # When there is no more room
//!
//! Dead letters are only thrown away on request, or by their age if an age was set. When they have reached
//! their bound, no more are taken: the gatherer keeps on trying, inserts that are in the journal stay there,
//! and tables that have dead letters take no inserts any more that could become one.
//!
//! # After a crash
//!
//! - After a message's dead letter was written, before its offset was committed: the message comes back, may
//!   be refused again, and stays the same dead letter: there is one for each pipeline, topic, partition and
//!   offset.
//! - After the dead letter was written, before the journal has recorded that the insert is done: the insert
//!   comes back at the next start, is found to be a dead letter (`holds`), and is done.
//! - After a retried dead letter's insert is in the journal, before the dead letter is gone: the dead letter
//!   is still there. If it is retried again, the insert has the same deduplication key as before, so that it
//!   is stored once.

mod dead_letter;
mod incoming;
mod index;
mod message;
mod metrics;
mod moment;
mod record;
mod recovery;
mod selection;
mod store;
mod summary;

pub use dead_letter::{DeadLetter, Kept, KeptInsert, Revived};
pub use index::{Amount, Listing};
pub use message::{
    MessageDeadLetter, MessageRetrier, MessageRows, MessageSource, MessagesNotKept, NotKept, Rereading, MAX_VALUE_BYTES,
};
pub use moment::{parse_moment, write_moment};
pub use record::Gone;
pub use recovery::DeadLettersOpenError;
pub use selection::{parse_id, Page, Selection};
pub use store::{DeadLetterError, DeadLetterOptions, DeadLetters};
pub use summary::{DeadLetterId, DeadLetterSummary, MessagePlace, Origin, Stream};
