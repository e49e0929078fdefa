use super::allowance::Allowance;
use super::outcome::{NotParsed, NotParsedReason, Parsed};
use crate::block::Block;
use crate::column::{Column, StringsEnd};
use crate::plan::ReadPlan;
use crate::present::Present;

/// The rows read so far, and the columns that the current row has given.
pub(super) struct Rows<'p> {
    pub(super) plan: &'p ReadPlan,
    pub(super) columns: Vec<Column>,
    rows: usize,
    /// Columns that the current row has given or left out explicitly.
    seen: Present,
    seen_count: usize,
    /// Columns with a DEFAULT expression that were left out so far. A column that one row leaves out has to
    /// be left out by all rows.
    left_out: Present,
    allowance: Allowance,
    /// The column whose value could not be read.
    failed: Option<usize>,
}

impl<'p> Rows<'p> {
    pub(super) fn new(plan: &'p ReadPlan, payload_bytes: usize) -> Result<Self, NotParsed> {
        match plan.rules.refusal {
            Some(reason) => Err(NotParsed { reason, row: 0 }),
            None => Ok(Rows {
                plan,
                columns: plan.columns().iter().map(|column| Column::empty(&column.data_type)).collect(),
                rows: 0,
                seen: Present::default(),
                seen_count: 0,
                left_out: Present::default(),
                allowance: Allowance::of(payload_bytes),
                failed: None,
            }),
        }
    }

    /// Says whether the current row is the second.
    pub(super) fn is_second(&self) -> bool {
        self.rows == 1
    }

    pub(super) fn count(&self) -> usize {
        self.rows
    }

    /// Notes that the current value, of this column, can't be read.
    #[cold]
    pub(super) fn fail(&mut self, column: usize) {
        self.failed = Some(column);
    }

    pub(super) fn failed(&self) -> Option<usize> {
        self.failed
    }

    /// Begins another payload, whose rows are put to those that are there.
    #[inline]
    pub(super) fn begin(&mut self, payload_bytes: usize) {
        self.allowance = Allowance::of(payload_bytes);
    }

    /// Drops all rows but the first ones, and the values that were begun of another row.
    pub(super) fn truncate(&mut self, rows: usize, ends: &[StringsEnd]) {
        let mut ends = ends.iter();
        self.columns.iter_mut().for_each(|column| column.truncate(rows, &mut ends));
        self.rows = rows;
        self.seen.clear();
        self.seen_count = 0;
        self.failed = None;
        if rows == 0 {
            self.left_out.clear();
        }
    }

    /// Notes that the current row has a key for `column`. Fails where it had one before.
    #[inline]
    pub(super) fn see(&mut self, column: usize) -> Result<(), NotParsedReason> {
        if self.seen.contains(column) {
            return Err(NotParsedReason::DuplicateField);
        }
        self.seen.insert(column);
        self.seen_count += 1;
        Ok(())
    }

    /// Checks that the current row may have a value for `column`.
    #[inline]
    pub(super) fn give(&self, column: usize) -> Result<(), NotParsedReason> {
        if !self.left_out.is_empty() && self.left_out.contains(column) {
            return Err(NotParsedReason::MixedDefaults);
        }
        Ok(())
    }

    /// Leaves `column` to its default in the current row.
    pub(super) fn leave_out(&mut self, column: usize) -> Result<(), NotParsedReason> {
        let reader = &self.plan.rules.readers[column];
        if !reader.has_default {
            self.account_for(column, 1)?;
            reader.reader.push_default(&mut self.columns[column]);
            return Ok(());
        }
        if !self.left_out.contains(column) {
            if self.rows > 0 {
                return Err(NotParsedReason::MixedDefaults);
            }
            self.left_out.insert(column);
        }
        Ok(())
    }

    /// Takes NULL in the current row, for a column that can't hold it.
    pub(super) fn give_null(&mut self, column: usize) -> Result<(), NotParsedReason> {
        let rules = &self.plan.rules;
        if rules.settings.is_for_sql() && rules.readers[column].reader.holds_others() {
            self.account_for(column, 1)?;
            self.give(column)?;
            self.columns[column].push_zero();
            return Ok(());
        }
        if !rules.settings.null_as_default {
            return Err(NotParsedReason::Null);
        }
        self.give_default(column)
    }

    /// Gives `column` its default, which the current row asks for explicitly. Without a DEFAULT expression
    /// ClickHouse stores the column's zero here, not the type's default as for a column that is left out.
    pub(super) fn give_default(&mut self, column: usize) -> Result<(), NotParsedReason> {
        let reader = &self.plan.rules.readers[column];
        if !reader.has_default && reader.reader.zero_is_doubtful() {
            return Err(NotParsedReason::Null);
        }
        self.leave_out(column)
    }

    #[inline]
    pub(super) fn end_row(&mut self) -> Result<(), NotParsedReason> {
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

    /// Ends `count` rows, each of which gave the columns seen. ClickHouse stores the others' zeros here, not
    /// their types' defaults.
    pub(super) fn end_rows(&mut self, count: usize) -> Result<(), NotParsedReason> {
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

    fn leave_out_rows(&mut self, column: usize, count: usize) -> Result<(), NotParsedReason> {
        let reader = &self.plan.rules.readers[column];
        if reader.has_default {
            return self.leave_out(column);
        }
        if reader.reader.zero_is_doubtful() {
            return Err(NotParsedReason::Value);
        }
        self.account_for(column, count)?;
        (0..count).for_each(|_| self.columns[column].push_zero());
        Ok(())
    }

    /// Accounts for values that no bytes of the payload stand for, before they are made.
    #[inline]
    fn account_for(&mut self, column: usize, count: usize) -> Result<(), NotParsedReason> {
        let bytes = self.columns[column].zero_bytes().saturating_mul(count);
        self.allowance.take(bytes)
    }

    /// Counts the rows of the current payload that came before the one that can't be read, though none of
    /// them was ended.
    #[cold]
    pub(super) fn skip_to(&mut self, count: usize) {
        self.rows += count;
    }

    /// Ends a row that gave every column or left it out explicitly, each once by its place in the row.
    #[inline]
    pub(super) fn end_full_row(&mut self) {
        self.rows += 1;
    }

    pub(super) fn not_parsed(&self, reason: NotParsedReason) -> NotParsed {
        NotParsed { reason, row: self.rows as u64 }
    }

    pub(super) fn finish(mut self) -> Result<Parsed, NotParsed> {
        match self.nested_lengths_agree(0) {
            true => Ok(self.take()),
            false => Err(NotParsed { reason: NotParsedReason::Value, row: 0 }),
        }
    }

    /// Hands out the rows, and continues without any.
    pub(super) fn take(&mut self) -> Parsed {
        let empty = self.columns.iter().map(Column::like).collect();
        let mut columns = std::mem::replace(&mut self.columns, empty);
        let rows = std::mem::take(&mut self.rows);
        let left_out = std::mem::take(&mut self.left_out);
        let mut present = Present::all(columns.len());
        if !left_out.is_empty() {
            present = Present::default();
            let given: Vec<usize> = (0..columns.len()).filter(|column| !left_out.contains(*column)).collect();
            given.iter().for_each(|column| present.insert(*column));
            let mut index = 0;
            columns.retain(|_| {
                index += 1;
                present.contains(index - 1)
            });
        }
        Parsed { block: Block { rows, columns }, present }
    }

    /// Says whether the columns of each nested structure have equally many elements in every row from `from`
    /// on. In the rows before they have.
    pub(super) fn nested_lengths_agree(&self, from: usize) -> bool {
        self.plan.rules.nested.iter().all(|group| {
            let mut lengths = group.iter().filter(|column| !self.left_out.contains(**column)).map(|column| match &self
                .columns[*column]
            {
                Column::Array { offsets, .. } => &offsets[from..],
                _ => &[],
            });
            let first = lengths.next();
            lengths.all(|other| Some(other) == first)
        })
    }

    pub(super) fn bytes(&self) -> usize {
        self.columns.iter().map(Column::bytes).sum()
    }
}
