//! The decision about an append: everything that it takes to bring its rows into the table, also after a restart.

use serde::{Deserialize, Serialize};

use super::method::Method;
use super::statements::Name;
use crate::answer::{Atomicity, Committed, State};
use crate::id::AppendId;
use crate::target::Totals;

/// A part of the staging table when it was complete.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PlannedPart {
    pub(super) uuid: String,
    pub(super) partition: String,
    pub(super) rows: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Publication {
    #[serde(alias = "way")]
    pub(super) method: WrittenMethod,
    pub(super) database: String,
    pub(super) table: String,
    /// The UUID of the target: another table of its name is not written to.
    pub(super) table_uuid: String,
    /// The user whose append it is.
    pub(super) user: String,
    pub(super) columns: Vec<String>,
    pub(super) parts: Vec<PlannedPart>,
    /// The highest number of a block in the target's parts before.
    pub(super) newest_block: i64,
    pub(super) has_parts: bool,
    /// The time of the decision; `shows_merged_ms` is for how long the target shows parts that were merged since.
    #[serde(default)]
    pub(super) decided_at_ms: u64,
    #[serde(default)]
    pub(super) shows_merged_ms: u64,
    /// True if a repeated INSERT is recognised by its token.
    pub(super) deduplicates: bool,
    /// Bytes that the rows take unpacked.
    pub(super) unpacked_bytes: u64,
    pub(super) rows: u64,
    pub(super) bytes: u64,
    pub(super) batches: u64,
    pub(super) elapsed_ms: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum WrittenMethod {
    Parts,
    PartsByPartition,
    Rows,
}

impl From<Method> for WrittenMethod {
    fn from(method: Method) -> WrittenMethod {
        match method {
            Method::Parts => WrittenMethod::Parts,
            Method::PartsByPartition => WrittenMethod::PartsByPartition,
            Method::Rows => WrittenMethod::Rows,
        }
    }
}

impl Publication {
    pub(super) fn target(&self) -> Name {
        Name { database: self.database.clone(), table: self.table.clone() }
    }

    /// Returns the partitions in order, each once.
    pub(super) fn partitions(&self) -> Vec<&str> {
        let mut partitions: Vec<&str> = self.parts.iter().map(|part| part.partition.as_str()).collect();
        partitions.sort_unstable();
        partitions.dedup();
        partitions
    }

    /// Returns the part of the append that becomes visible at one moment, if nothing comes in between.
    pub(super) fn atomicity(&self) -> Atomicity {
        match self.method {
            WrittenMethod::Parts => Atomicity::All,
            WrittenMethod::PartsByPartition if self.partitions().len() > 1 => Atomicity::Partition,
            WrittenMethod::PartsByPartition => Atomicity::All,
            WrittenMethod::Rows => Atomicity::Block,
        }
    }

    /// Says whether a part that came into the target would still be seen there.
    pub(super) fn would_show(&self, now_ms: u64) -> bool {
        now_ms < self.decided_at_ms.saturating_add(self.shows_merged_ms)
    }

    pub(super) fn committed(&self, id: AppendId, atomic: Atomicity) -> Committed {
        Committed {
            id,
            state: State::Committed,
            rows: self.rows,
            bytes: self.bytes,
            batches: self.batches,
            seconds: self.elapsed_ms as f64 / 1000.0,
            atomic,
        }
    }

    /// Drops the details that need not be known of an append that has ended.
    pub(super) fn forget_details(&mut self) {
        self.parts = Vec::new();
        self.columns = Vec::new();
    }

    pub(super) fn set_totals(&mut self, totals: Totals) {
        self.rows = totals.rows;
        self.bytes = totals.bytes;
        self.batches = totals.batches;
        self.elapsed_ms = totals.elapsed_ms;
    }
}
