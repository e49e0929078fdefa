//! The program that appends: cuts a source into numbered batches and sends them over several connections.
//!
//! - [`Source`] gives the rows: batches in memory, readers, files. It blocks, and knows no network.
//! - [`Cutter`] decides which rows a number stands for, [`Encoder`] makes them the body of a request. Both
//!   are plain functions of what they are given, so that every program that appends cuts the same way.
//! - [`append`] sends a source's batches and the commit, and sends again the requests that got lost.

mod cut;
mod faults;
mod id;
mod numbers;
mod options;
mod pipeline;
mod send;
mod source;

pub use cut::{batch_bytes, plain_schema, Compression, Cut, CutOptions, Cutter, Encoder};
pub use faults::Faults;
pub use id::AppendId;
pub use options::{AppendOptions, OnProgress, OnWaiting, Progress};
pub use send::{abort, append, AppendFailure, Appended, Input, Why};
pub use source::{
    fingerprint, needs_columns, open_files, BatchesSource, Column, FileFormat, FileOptions, ReaderSource, Source,
    SourceError,
};
