//! The one place that decides order: inserts come in, batches go out, and every insert gets its own answer.
//!
//! # How the parts work together
//!
//! An [`Insert`] belongs to a [`Shape`]: all that it must have in common with others to share a batch. A
//! shape belongs to a table, and one lock per table guards the open buffers of all its shapes and its flush
//! policy (`table.rs`). Appending happens in the task that brought the insert, so the usual insert costs one
//! short lock and no hand-over.
//!
//! A sealed buffer becomes a flight (`flight.rs`): a batch with a fixed id and fixed members on its way to
//! the sink. A shape has one flight at a time, and later batches queue behind it, so two batches of a shape
//! can't swap. A batch that fails again and again steps aside (`retry_state.rs`, `line.rs`). Tables share the
//! memory (`budget.rs`), of which each may take a part only. They also share the backend: a buffer whose
//! policy wants it to be flushed waits, open, for the turn of its lane (`schedule.rs`). A slow table delays
//! no other.
//!
//! An insert that was acknowledged at level `disk` stands in the journal until its end (`journaling.rs`).
//! Inserts that find no memory wait there, and so do those that an earlier run left (`backlog.rs`,
//! `feeder.rs`, `leftovers.rs`). An insert that can't be stored, and whose sender can't be told, becomes a
//! dead letter (`settle.rs`, `posting.rs`).
//!
//! The policies in `policy/` decide when a buffer is sealed, and are pure. A [`Sink`](sink::Sink) is the
//! place where batches go (`sink/`). The contents of the journal's records are in `records/`.
//!
//! Only this crate acknowledges inserts. It does so only after [`Sink::store`](sink::Sink::store) has said
//! `Ok` (ack level `stored`), the insert's record is on the disk (`disk`), or the rows are in the buffer
//! (`memory`).

mod activity;
mod attempt;
mod backlog;
mod budget;
mod clock;
mod commands;
mod cut;
mod dead_letter_store;
pub mod dead_letters;
mod deduplication;
mod environment;
mod feeder;
mod flight;
mod flush_trace;
mod gatherer;
mod insert;
mod isolate;
mod journal_metrics;
mod journaling;
mod latency;
mod leftovers;
mod line;
mod log;
mod member;
mod metrics;
mod options;
mod part_counts;
pub mod policy;
mod posting;
mod push;
mod pushed;
mod queueing;
pub mod records;
mod recovery;
mod retry_state;
mod schedule;
mod settle;
mod shape;
mod signal;
// Beside the other tests: it is none of the engine, and needs what only the engine sees.
#[cfg(test)]
#[path = "../tests/simulation/mod.rs"]
mod simulation;
pub mod sink;
mod stores;
mod table;
pub mod trace;

pub use activity::{Amounts, TableFigures};
pub use commands::{BufferEntry, BufferSnapshot, ShutDown};
pub use dead_letter_store::{DeadLetterStore, DeadLettersFull, FailedInsert, KeepError, Keeping};
pub use deduplication::{
    table_by_name, ClaimHandle, DedupKeys, DeduplicationBounds, DeduplicationIndex, DeduplicationIndexError, Entered,
    Resolved,
};
pub use environment::{Environment, Machine};
pub use gatherer::Gatherer;
pub use insert::{
    AckLevel, DataKind, History, Insert, InsertError, InsertKind, PushError, QueryId, Ticket, Withdrawal,
};
pub use journaling::Leftovers;
pub use latency::{LatencyCounts, LatencyHistogram};
pub use leftovers::{open_journal, OpenedJournal};
pub use log::{InsertStatus, LogEntry, LoggedBatch};
pub use metrics::{Held, OTHER_TABLES};
pub use options::GathererOptions;
pub use pushed::{BatchProgress, BatchTicket, Progress, PushedBatch, PushedMember};
pub use shape::Shape;
pub use sink::TableKey;
pub use stores::Stores;
pub use windrow_log::Usage as JournalUsage;
