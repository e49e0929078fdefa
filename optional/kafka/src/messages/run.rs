//! What is made of messages that follow each other.

use windrow_columns::{Block, Present};

/// Rows of consecutive messages that give the same columns. What is left out are columns with a DEFAULT expression that
/// no row of these messages has a value for: ClickHouse computes them, as it can't if some rows had them and others
/// not.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// The columns in `present`, in the plan's order.
    pub block: Block,
    /// Which of the plan's columns the block carries.
    pub present: Present,
    /// Of the first message that has rows here.
    pub first_offset: i64,
    pub last_offset: i64,
    /// Messages with rows.
    pub messages: u32,
    pub rows: usize,
    /// Of messages that have a timestamp.
    pub min_timestamp_ms: Option<i64>,
    pub max_timestamp_ms: Option<i64>,
}
