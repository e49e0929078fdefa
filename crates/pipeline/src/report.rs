//! What a check of a pipeline finds. It reads, and leaves no trace: it joins no group, commits nothing and stores nothing.

use crate::status::Guarantee;

#[derive(Debug, Clone, Default)]
pub struct CheckReport {
    pub topics: Vec<CheckedTopic>,
    pub columns: Vec<CheckedColumn>,
    /// Nothing if the table could not be asked.
    pub guarantee: Option<Guarantee>,
    pub sample: Sample,
    /// What keeps the pipeline from working as it is set; empty if nothing does.
    pub problems: Vec<String>,
    /// What is worth knowing, and no fault.
    pub notes: Vec<String>,
}

impl CheckReport {
    pub fn is_fine(&self) -> bool {
        self.problems.is_empty() && self.sample.refused_messages == 0
    }
}

#[derive(Debug, Clone)]
pub struct CheckedTopic {
    pub name: String,
    pub partitions: Vec<CheckedPartition>,
}

#[derive(Debug, Clone)]
pub struct CheckedPartition {
    pub partition: i32,
    /// The first offset that is there.
    pub earliest: i64,
    /// Behind the last one.
    pub latest: i64,
    /// What the group has committed.
    pub committed: Option<i64>,
}

#[derive(Debug, Clone)]
pub struct CheckedColumn {
    pub name: String,
    pub type_name: String,
    /// Where its values come from, in words: `the field event.time`, `the message's key`, `its DEFAULT expression`.
    pub source: String,
    /// What is wrong with that.
    pub problem: Option<String>,
}

/// Some of the latest messages, read as the pipeline would.
#[derive(Debug, Clone, Default)]
pub struct Sample {
    pub messages: u64,
    pub rows: u64,
    pub tombstones: u64,
    pub refused_messages: u64,
    /// The first of them.
    pub refused: Vec<RefusedMessage>,
    /// The first rows as text, in the order of the columns that they give.
    pub row_columns: Vec<String>,
    pub first_rows: Vec<Vec<String>>,
}

#[derive(Debug, Clone)]
pub struct RefusedMessage {
    pub topic: String,
    pub partition: i32,
    pub offset: i64,
    /// Which row of the message, from 1.
    pub row: Option<u64>,
    pub column: Option<String>,
    pub error: String,
}
