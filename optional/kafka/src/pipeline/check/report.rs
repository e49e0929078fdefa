//! The report of a check.

use windrow_columns::{Block, ColumnSpec};

use crate::pipeline::status::Guarantee;

#[derive(Debug, Clone, Default)]
pub struct CheckReport {
    /// Causes why the cluster, or the table's backend, could not be asked. The rest may be incomplete then.
    pub unreachable: Vec<String>,
    pub topics: Vec<CheckedTopic>,
    pub columns: Vec<CheckedColumn>,
    /// The guarantee, or `None` if the table could not be asked.
    pub guarantee: Option<Guarantee>,
    /// The cause why messages may be stored twice after a crash.
    pub not_exactly_once: Option<String>,
    pub sample: Sample,
    /// Fields that messages of the sample have, or may have by their schema, and that no column takes.
    pub unused_fields: Vec<UnusedField>,
    /// Faults that keep the pipeline from working with these settings. Empty if there are none.
    pub problems: Vec<String>,
    /// Remarks that are worth knowing, but are no faults.
    pub notes: Vec<String>,
    /// Possible faults that would not be noticed later.
    pub warnings: Vec<String>,
}

/// The result of the check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Fits,
    DoesNotFit,
    /// The cluster or the backend could not be asked.
    Unknown,
}

impl Verdict {
    pub const fn as_str(self) -> &'static str {
        match self {
            Verdict::Fits => "fits",
            Verdict::DoesNotFit => "does not fit",
            Verdict::Unknown => "unknown",
        }
    }
}

impl CheckReport {
    pub fn verdict(&self) -> Verdict {
        match (self.unreachable.is_empty(), self.problems.is_empty() && self.sample.refused_messages == 0) {
            (false, _) => Verdict::Unknown,
            (true, false) => Verdict::DoesNotFit,
            (true, true) => Verdict::Fits,
        }
    }

    /// Returns the number of messages that the group has not stored yet.
    pub fn lag(&self) -> i64 {
        self.topics.iter().flat_map(|topic| &topic.partitions).map(CheckedPartition::lag).sum()
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
    /// Offset behind the last message.
    pub latest: i64,
    /// Offset that the group has committed.
    pub committed: Option<i64>,
}

impl CheckedPartition {
    /// Returns the number of offsets between the committed one, or the first one that is there, and the end.
    pub fn lag(&self) -> i64 {
        let from = self.committed.map_or(self.earliest, |committed| committed.max(self.earliest));
        (self.latest - from).max(0)
    }
}

#[derive(Debug, Clone)]
pub struct CheckedColumn {
    pub name: String,
    pub type_name: String,
    /// The source of the column's values, in words.
    pub source: String,
    /// The field, if the values come from one.
    pub field: Option<String>,
    /// True if no field was found for the column, and the user has not said that it takes none.
    pub takes_nothing: bool,
    /// Messages of the sample that have the field, where fields have names and can be seen.
    pub messages_with: Option<u64>,
    /// Messages of the sample whose value the type can't take.
    pub refused_messages: u64,
    /// Description of the first value that doesn't fit.
    pub problem: Option<String>,
}

impl CheckedColumn {
    pub(super) fn new(name: &str, type_name: &str, source: String) -> CheckedColumn {
        CheckedColumn {
            name: name.to_owned(),
            type_name: type_name.to_owned(),
            source,
            field: None,
            takes_nothing: false,
            messages_with: None,
            refused_messages: 0,
            problem: None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnusedField {
    /// Name of the field, with dots if it lies within others.
    pub name: String,
    /// Number of messages that have the field, or `None` where only the schema has it.
    pub messages: Option<u64>,
    /// A value of the field as it was sent.
    pub example: Option<String>,
}

/// Some of the latest messages, read as the pipeline would.
#[derive(Debug, Clone, Default)]
pub struct Sample {
    pub messages: u64,
    pub rows: u64,
    /// Messages without a value, which make no row.
    pub tombstones: u64,
    pub refused_messages: u64,
    /// The first refused messages.
    pub refused: Vec<RefusedMessage>,
    /// True if the names of fields could be seen.
    pub knows_fields: bool,
    /// The first rows as they would be stored.
    pub rows_read: Option<SampledRows>,
}

#[derive(Debug, Clone)]
pub struct SampledRows {
    /// Columns that have values here. The table has defaults for the others.
    pub columns: Vec<ColumnSpec>,
    pub block: Block,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedMessage {
    pub topic: String,
    pub partition: i32,
    pub offset: i64,
    /// Number of the row within the message, counted from 1.
    pub row: Option<u64>,
    /// Columns whose values don't fit, as far as they can be found.
    pub columns: Vec<String>,
    pub error: String,
}
