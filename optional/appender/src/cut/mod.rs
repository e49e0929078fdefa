//! The cutting of a source into numbered batches: cut by bytes, encoded as Arrow IPC streams.
//!
//! The rows that a number stands for depend on the source's batches and on [`CutOptions`] alone, not on time,
//! threads or connections: a resumed append sends the numbers that are missing and trusts that the others hold
//! the rest. Cutting copies nothing; encoding copies each row once and can run for several cuts at the same time.

mod cutter;
mod encode;
mod plain;
mod size;

pub use cutter::{Cut, CutOptions, Cutter};
pub use encode::{Compression, Encoder};
pub use plain::plain_schema;
pub use size::batch_bytes;
