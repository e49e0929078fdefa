//! Appends into ClickHouse.
//!
//! # From batches to the table
//!
//! An append has a table of its own beside its target, the *staging table* `__windrow_append_<id>`: it has the target's
//! columns, keys, defaults and constraints, is not replicated, hangs no views, and never merges. Batches are read into
//! blocks here, exactly (`read.rs`), joined, and sent to it as INSERTs one after the other, each under a token, so that
//! a lost answer costs nothing (`staging.rs`). Its parts are numbered in that order. The commit *publishes* them
//! (`attempt.rs`): parts move into the target, or are linked into it, all at one moment, in their order; a replicated
//! table takes them partition by partition; a table with views, or of another engine, gets the rows by one `INSERT …
//! SELECT`. `method.rs` says which.
//!
//! The question whether its user may insert is asked with that user's credentials, by an INSERT of no rows;
//! looking the table up, staging and publishing are the gateway's own work. Where the gateway's account may
//! not do that, it is tried with the user's. An error of the look-up is told to users who may see the table;
//! to others it is a missing right.
//!
//! # After a crash
//!
//! The state log (`state_log.rs`) says which appends have a staging table and which were decided. An append
//! that was not decided is dropped at the next start; one that was is published (`publish.rs`), from what
//! both tables show (`evidence.rs`, `look.rs`). The parts of a staging table have UUIDs that go with them, so
//! a part that has arrived is recognised.
//!
//! Not here: the order in which batches are handed over, and how long they are held (`progress`).

mod arrow_names;
mod attempt;
mod blame;
mod evidence;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod look;
mod method;
mod publication;
mod publish;
mod read;
mod record;
mod server;
mod staging;
mod state_log;
mod statements;
mod table;
mod target;

pub(crate) use target::ClickHouse;
