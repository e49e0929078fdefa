//! What a check has found.

use windrow_columns::{Block, ColumnSpec};

use crate::pipeline::status::Guarantee;

#[derive(Debug, Clone, Default)]
pub struct CheckReport {
    /// Why the cluster, or the table's backend, could not be asked. What follows may be incomplete then.
    pub unreachable: Vec<String>,
    pub topics: Vec<CheckedTopic>,
    pub columns: Vec<CheckedColumn>,
    /// Nothing if the table could not be asked.
    pub guarantee: Option<Guarantee>,
    /// Why messages may be stored twice after a crash.
    pub not_exactly_once: Option<String>,
    pub sample: Sample,
    /// Fields that messages of the sample have, or may have by their schema, and no column takes.
    pub unused_fields: Vec<UnusedField>,
    /// What keeps the pipeline from working as it is set; empty if nothing does.
    pub problems: Vec<String>,
    /// What is worth knowing, and no fault.
    pub notes: Vec<String>,
    /// What may be a fault that nobody else will notice.
    pub warnings: Vec<String>,
}

/// What it comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Fits,
    DoesNotFit,
    /// Something could not be asked.
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

    /// Messages that the group has not stored yet.
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
    /// Behind the last one.
    pub latest: i64,
    /// What the group has committed.
    pub committed: Option<i64>,
}

impl CheckedPartition {
    /// Offsets between what is committed, or there at all, and the end.
    pub fn lag(&self) -> i64 {
        let from = self.committed.map_or(self.earliest, |committed| committed.max(self.earliest));
        (self.latest - from).max(0)
    }
}

#[derive(Debug, Clone)]
pub struct CheckedColumn {
    pub name: String,
    pub type_name: String,
    /// Where its values come from, in words.
    pub source: String,
    /// The field, if they come from one.
    pub field: Option<String>,
    /// No field was found for it, and nobody has said that none is to be.
    pub takes_nothing: bool,
    /// Messages of the sample that have the field, where fields have names and can be seen.
    pub messages_with: Option<u64>,
    /// Messages of the sample whose value the type can't take.
    pub refused_messages: u64,
    /// How the first of them doesn't fit.
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
    /// With dots, if it lies within others.
    pub name: String,
    /// That have it; nothing where only the schema says that there is such a field.
    pub messages: Option<u64>,
    /// A value of it as it was sent.
    pub example: Option<String>,
}

/// Some of the latest messages, read as the pipeline would.
#[derive(Debug, Clone, Default)]
pub struct Sample {
    pub messages: u64,
    pub rows: u64,
    /// Of no value: they make no row.
    pub tombstones: u64,
    pub refused_messages: u64,
    /// The first of them.
    pub refused: Vec<RefusedMessage>,
    /// Whether the names of fields could be seen.
    pub knows_fields: bool,
    /// The first rows as they would be stored.
    pub rows_read: Option<SampledRows>,
}

#[derive(Debug, Clone)]
pub struct SampledRows {
    /// Those that are given; of the others the table has defaults.
    pub columns: Vec<ColumnSpec>,
    pub block: Block,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedMessage {
    pub topic: String,
    pub partition: i32,
    pub offset: i64,
    /// Which row of the message, from 1.
    pub row: Option<u64>,
    /// The columns whose values don't fit, as far as they can be told.
    pub columns: Vec<String>,
    pub error: String,
}
