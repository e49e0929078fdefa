use super::allowance::Allowance;
use super::outcome::{NotTyped, NotTypedReason, Parsed};
use crate::block::Block;
use crate::column::Column;
use crate::plan::ReadPlan;
use crate::present::Present;

/// The rows read so far and what the current row has given.
pub(super) struct Rows<'p> {
    pub(super) plan: &'p ReadPlan,
    pub(super) columns: Vec<Column>,
    rows: usize,
    /// Columns that the current row has given or left out explicitly.
    seen: Present,
    seen_count: usize,
    /// Columns with a DEFAULT expression that were left out so far; what one row leaves out, all have to.
    left_out: Present,
    allowance: Allowance,
}

impl<'p> Rows<'p> {
    pub(super) fn new(plan: &'p ReadPlan, payload_bytes: usize) -> Result<Self, NotTyped> {
        match plan.refusal {
            Some(reason) => Err(NotTyped { reason, row: 0 }),
            None => Ok(Rows {
                plan,
                columns: plan.columns().iter().map(|column| Column::empty(&column.data_type)).collect(),
                rows: 0,
                seen: Present::default(),
                seen_count: 0,
                left_out: Present::default(),
                allowance: Allowance::of(payload_bytes),
            }),
        }
    }

    /// Whether the current row is the second.
    pub(super) fn is_second(&self) -> bool {
        self.rows == 1
    }

    /// The current row has a key for `column`.
    #[inline]
    pub(super) fn see(&mut self, column: usize) -> Result<(), NotTypedReason> {
        if self.seen.contains(column) {
            return Err(NotTypedReason::DuplicateField);
        }
        self.seen.insert(column);
        self.seen_count += 1;
        Ok(())
    }

    /// The current row has a value for `column`.
    #[inline]
    pub(super) fn give(&self, column: usize) -> Result<(), NotTypedReason> {
        if !self.left_out.is_empty() && self.left_out.contains(column) {
            return Err(NotTypedReason::MixedDefaults);
        }
        Ok(())
    }

    /// The current row wants the default of `column`.
    pub(super) fn leave_out(&mut self, column: usize) -> Result<(), NotTypedReason> {
        let reader = &self.plan.readers[column];
        if !reader.has_default {
            self.account_for(column, 1)?;
            reader.reader.push_default(&mut self.columns[column]);
            return Ok(());
        }
        if !self.left_out.contains(column) {
            if self.rows > 0 {
                return Err(NotTypedReason::MixedDefaults);
            }
            self.left_out.insert(column);
        }
        Ok(())
    }

    /// The current row has NULL for a column that can't hold it.
    pub(super) fn give_null(&mut self, column: usize) -> Result<(), NotTypedReason> {
        if !self.plan.settings.null_as_default {
            return Err(NotTypedReason::Null);
        }
        self.give_default(column)
    }

    /// The current row asks for the default of `column` in so many words. Without a DEFAULT expression ClickHouse
    /// stores the column's zero here, not the type's default as for a column that is left out.
    pub(super) fn give_default(&mut self, column: usize) -> Result<(), NotTypedReason> {
        let reader = &self.plan.readers[column];
        if !reader.has_default && reader.reader.zero_is_doubtful() {
            return Err(NotTypedReason::Null);
        }
        self.leave_out(column)
    }

    #[inline]
    pub(super) fn end_row(&mut self) -> Result<(), NotTypedReason> {
        if self.seen_count != self.columns.len() {
            for column in 0..self.columns.len() {
                if !self.seen.contains(column) {
                    self.leave_out(column)?;
                }
            }
        }
        self.seen.clear();
        self.seen_count = 0;
        self.rows += 1;
        Ok(())
    }

    /// So many rows are over, each of which gave the columns seen. ClickHouse stores the others' zeros here, not their
    /// types' defaults.
    pub(super) fn end_rows(&mut self, count: usize) -> Result<(), NotTypedReason> {
        if count > 0 && self.seen_count != self.columns.len() {
            for column in (0..self.columns.len()).filter(|column| !self.seen.contains(*column)).collect::<Vec<_>>() {
                self.leave_out_rows(column, count)?;
            }
        }
        self.seen.clear();
        self.seen_count = 0;
        self.rows += count;
        Ok(())
    }

    fn leave_out_rows(&mut self, column: usize, count: usize) -> Result<(), NotTypedReason> {
        let reader = &self.plan.readers[column];
        if reader.has_default {
            return self.leave_out(column);
        }
        if reader.reader.zero_is_doubtful() {
            return Err(NotTypedReason::Value);
        }
        self.account_for(column, count)?;
        (0..count).for_each(|_| self.columns[column].push_zero());
        Ok(())
    }

    /// Values that no bytes of the payload stand for, before they are made.
    #[inline]
    fn account_for(&mut self, column: usize, count: usize) -> Result<(), NotTypedReason> {
        let bytes = self.columns[column].zero_bytes().saturating_mul(count);
        self.allowance.take(bytes)
    }

    /// Ends a row that gave every column or left it out explicitly, each once by its place in the row.
    #[inline]
    pub(super) fn end_full_row(&mut self) {
        self.rows += 1;
    }

    pub(super) fn not_typed(&self, reason: NotTypedReason) -> NotTyped {
        NotTyped { reason, row: self.rows as u64 }
    }

    pub(super) fn finish(mut self) -> Result<Parsed, NotTyped> {
        if !self.nested_lengths_agree() {
            return Err(NotTyped { reason: NotTypedReason::Value, row: 0 });
        }
        let mut present = Present::all(self.columns.len());
        if !self.left_out.is_empty() {
            present = Present::default();
            let given: Vec<usize> = (0..self.columns.len()).filter(|column| !self.left_out.contains(*column)).collect();
            given.iter().for_each(|column| present.insert(*column));
            let mut index = 0;
            self.columns.retain(|_| {
                index += 1;
                present.contains(index - 1)
            });
        }
        Ok(Parsed { block: Block { rows: self.rows, columns: self.columns }, present })
    }

    fn nested_lengths_agree(&self) -> bool {
        self.plan.nested.iter().all(|group| {
            let mut lengths = group.iter().filter(|column| !self.left_out.contains(**column)).map(|column| match &self
                .columns[*column]
            {
                Column::Array { offsets, .. } => offsets.as_slice(),
                _ => &[],
            });
            let first = lengths.next();
            lengths.all(|other| Some(other) == first)
        })
    }
}
