//! The program that appends: cuts a source into numbered batches and sends them over several connections.
//!
//! - [`Source`] is where rows come from: batches in memory, readers, files. It blocks, and knows no network.
//! - [`Cutter`] decides which rows a number stands for, [`Encoder`] makes them the body of a request. Both are plain
//!   functions of what they are given, so that every program that appends cuts the same way.

mod cut;
mod source;

pub use cut::{batch_bytes, plain_schema, Compression, Cut, CutOptions, Cutter, Encoder};
pub use source::{
    needs_columns, open_files, BatchesSource, Column, FileFormat, FileOptions, ReaderSource, Source, SourceError,
};
