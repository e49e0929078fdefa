//! The rows of messages that follow each other.

use windrow_columns::{Block, Present};

/// Rows of consecutive messages that give the same columns. Left out are columns with a DEFAULT expression
/// that no row of these messages has a value for. ClickHouse computes them, which it could not if some rows
/// had a value and others not.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// The columns in `present`, in the plan's order.
    pub block: Block,
    /// The plan's columns that the block has.
    pub present: Present,
    /// Offset of the first message that has rows here.
    pub first_offset: i64,
    pub last_offset: i64,
    /// Number of messages with rows.
    pub messages: u32,
    pub rows: usize,
    /// Earliest timestamp of the messages that have one, in milliseconds since 1970.
    pub min_timestamp_ms: Option<i64>,
    pub max_timestamp_ms: Option<i64>,
}
