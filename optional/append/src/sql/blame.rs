//! The row that a failed append failed at.
//!
//! A database says what was violated, often not by which row. So rows are tried again, in transactions that are
//! rolled back: the shortest beginning of the rows that fails ends with the row. The row that it clashes with may
//! lie in batches that were applied before and are gone; then nothing fails any more, and the row isn't known.

use arrow_array::RecordBatch;
use windrow_adbc::SqlDatabase;
use windrow_duckdb::TableRef;

use crate::target::Held;

/// The place where an error lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Culprit {
    pub(super) batch: u64,
    pub(super) row: u64,
}

pub(super) struct Tried<'a> {
    pub(super) database: &'a SqlDatabase,
    pub(super) table: &'a TableRef,
    pub(super) columns: Option<&'a [String]>,
    pub(super) held: &'a [Held<Vec<RecordBatch>>],
}

/// The number of trials: the rows of one call, halved until one is left. This bounds what trying costs.
const MAX_TRIALS: u32 = 40;

impl Tried<'_> {
    pub(super) async fn culprit(&self) -> Option<Culprit> {
        let all = self.held.iter().map(rows).sum();
        if self.passes(all).await? {
            return None;
        }
        // So many rows pass; so many fail.
        let (mut passing, mut failing) = (0, all);
        for _ in 0..MAX_TRIALS {
            if failing - passing <= 1 {
                return place_of(failing.checked_sub(1)?, self.held.iter().map(|held| (held.number, rows(held))));
            }
            let middle = passing + (failing - passing) / 2;
            match self.passes(middle).await? {
                true => passing = middle,
                false => failing = middle,
            }
        }
        None
    }

    /// Says whether the first rows can be appended. Returns `None` if that can't be tried.
    async fn passes(&self, rows: u64) -> Option<bool> {
        let mut transaction = self.database.begin().await.ok()?;
        let done = transaction.ingest(self.table, self.columns, self.first(rows)).await;
        transaction.rollback().await;
        Some(done.is_ok())
    }

    fn first(&self, rows: u64) -> Vec<RecordBatch> {
        let (mut left, mut first) = (rows as usize, Vec::new());
        for batch in self.held.iter().flat_map(|held| &held.batch) {
            let length = batch.num_rows().min(left);
            left -= length;
            if length > 0 {
                first.push(batch.slice(0, length));
            }
        }
        first
    }
}

pub(super) fn rows(held: &Held<Vec<RecordBatch>>) -> u64 {
    held.batch.iter().map(|batch| batch.num_rows() as u64).sum()
}

/// Returns where a row of all is, given numbers and rows of the batches.
pub(super) fn place_of(row: u64, batches: impl Iterator<Item = (u64, u64)>) -> Option<Culprit> {
    let mut left = row;
    for (batch, rows) in batches {
        if left < rows {
            return Some(Culprit { batch, row: left });
        }
        left -= rows;
    }
    None
}
