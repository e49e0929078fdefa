//! Where the values of a column come from.

use std::ops::Range;

use pyo3::prelude::*;

use super::parts::Items;
use super::plan::ColumnPlan;
use super::problem::Problem;
use super::value::Value;

pub(super) enum Source<'py> {
    /// Python objects; value `offset` of the column is the first of them.
    Values { items: Items<'py>, offset: usize },
}

impl<'py> Source<'py> {
    /// Values `range` of what was given for a column.
    pub(super) fn of(given: &Bound<'py, PyAny>, range: Range<usize>, _plan: &ColumnPlan) -> Result<Self, Problem> {
        let value = Value::of(given);
        if value.is_list() || value.is_tuple() {
            let items = Items::of(value)?;
            if items.len() < range.end {
                return Err(Problem::said(format!("{} values for {} rows", items.len(), range.end)));
            }
            return Ok(Source::Values { items, offset: 0 });
        }
        let slice = pyo3::types::PySlice::new(given.py(), range.start as isize, range.end as isize, 1);
        let items = Items::of(Value::of(&given.get_item(slice)?))?;
        if items.len() != range.len() {
            return Err(Problem::said(format!("{} values for {} rows", range.start + items.len(), range.end)));
        }
        Ok(Source::Values { items, offset: range.start })
    }
}
