//! The mapping of a payload's fields to the table's columns.

use windrow_columns::{NotParsedReason, ReadPlan};

/// Returns the position of each field's column, or `None` for a field that is not read.
pub(crate) fn positions<'n>(
    names: impl Iterator<Item = &'n str>,
    plan: &ReadPlan,
) -> Result<Vec<Option<usize>>, NotParsedReason> {
    let mut positions: Vec<Option<usize>> = Vec::new();
    for name in names {
        let position = plan.position(name.as_bytes());
        match position {
            Some(_) if positions.contains(&position) => return Err(NotParsedReason::DuplicateField),
            Some(_) => {}
            None if may_be_meant(name, plan) || !plan.settings().skips_unknown_fields() => {
                return Err(NotParsedReason::UnknownField);
            }
            None => {}
        }
        positions.push(position);
    }
    // A payload that names none of the columns is more likely a mistake than a wish for defaults.
    match positions.iter().any(Option::is_some) {
        true => Ok(positions),
        false => Err(NotParsedReason::UnknownField),
    }
}

/// Says whether ClickHouse might still find a column by this name: in another case, or as a part of a nested column.
fn may_be_meant(name: &str, plan: &ReadPlan) -> bool {
    let first_part = |name: &str| name.split('.').next().unwrap_or_default().to_ascii_lowercase();
    plan.resembles_a_column(name.as_bytes())
        || plan.columns().iter().any(|column| {
            (column.name.contains('.') || name.contains('.')) && first_part(&column.name) == first_part(name)
        })
}
