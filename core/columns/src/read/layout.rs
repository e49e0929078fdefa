//! The columns that a row's fields belong to, where a header says so.

use super::outcome::NotParsedReason;
use crate::plan::ReadPlan;
use crate::present::Present;

pub(super) struct Layout {
    /// The column of each field; `None` for a field that is skipped.
    pub(super) fields: Vec<Option<usize>>,
    /// The columns that have no field.
    pub(super) missing: Vec<usize>,
}

impl Layout {
    /// Returns the layout without a header: a field for each column, in order.
    pub(super) fn of_table(plan: &ReadPlan) -> Self {
        Layout { fields: (0..plan.columns().len()).map(Some).collect(), missing: Vec::new() }
    }

    /// Returns the layout that a header gives by its names.
    pub(super) fn of_names<'n>(
        names: impl Iterator<Item = &'n [u8]>,
        plan: &ReadPlan,
    ) -> Result<Self, NotParsedReason> {
        let mut fields = Vec::new();
        let mut seen = Present::default();
        for name in names {
            let column = plan.position(name);
            match column {
                Some(column) if seen.contains(column) => return Err(NotParsedReason::DuplicateField),
                Some(column) => seen.insert(column),
                None if !plan.rules.settings.skip_unknown_fields || plan.resembles_a_column(name) => {
                    return Err(NotParsedReason::UnknownField)
                }
                None => {}
            }
            fields.push(column);
        }
        let missing = (0..plan.columns().len()).filter(|column| !seen.contains(*column)).collect();
        Ok(Layout { fields, missing })
    }

    /// Checks the types that a header gives the fields: ClickHouse compares their texts.
    pub(super) fn with_types<'n>(
        self,
        mut types: impl Iterator<Item = &'n [u8]>,
        plan: &ReadPlan,
    ) -> Result<Self, NotParsedReason> {
        for field in &self.fields {
            let type_text = types.next().ok_or(NotParsedReason::Syntax)?;
            if field.is_some_and(|column| plan.rules.readers[column].type_text.as_bytes() != type_text) {
                return Err(NotParsedReason::Value);
            }
        }
        match types.next() {
            None => Ok(self),
            Some(_) => Err(NotParsedReason::Syntax),
        }
    }
}
