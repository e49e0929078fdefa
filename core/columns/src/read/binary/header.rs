use super::super::sent_type;
use super::input::BinaryInput;
use super::NotParsedReason;
use crate::column::Column;
use crate::plan::ReadPlan;

#[derive(Clone, Copy, PartialEq)]
pub(super) enum HeaderForm {
    Names,
    NamesAndTypes,
}

/// The place that the values of one of the payload's columns go to.
pub(in crate::read) enum Target {
    Column(usize),
    /// The payload's column is none of the table's: its values are read to get past them.
    Nowhere(Column),
}

/// Reads the number of columns, their names, and their types.
pub(super) fn read_header(
    input: &mut BinaryInput<'_>,
    plan: &ReadPlan,
    form: HeaderForm,
) -> Result<Vec<Target>, NotParsedReason> {
    let count = input.length()?;
    // Each name takes a byte at least. Without any column there are no rows, whatever follows.
    if count == 0 || count > input.rest().len() {
        return Err(NotParsedReason::Syntax);
    }
    let names = (0..count).map(|_| input.text()).collect::<Result<Vec<_>, _>>()?;
    let positions: Vec<Option<usize>> = names.iter().map(|name| plan.position(name)).collect();
    check_names(&names, &positions, plan, form)?;
    if form == HeaderForm::Names {
        return Ok(positions.into_iter().flatten().map(Target::Column).collect());
    }
    positions.into_iter().map(|position| read_type(input, plan, position)).collect()
}

fn check_names(
    names: &[&[u8]],
    positions: &[Option<usize>],
    plan: &ReadPlan,
    form: HeaderForm,
) -> Result<(), NotParsedReason> {
    for (name, position) in names.iter().zip(positions) {
        // A value of no known type can't be skipped.
        let may_skip = form == HeaderForm::NamesAndTypes && plan.rules.settings.skip_unknown_fields;
        if position.is_none() && (!may_skip || plan.resembles_a_column(name)) {
            return Err(NotParsedReason::UnknownField);
        }
    }
    let mut known: Vec<usize> = positions.iter().flatten().copied().collect();
    known.sort_unstable();
    if known.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(NotParsedReason::DuplicateField);
    }
    Ok(())
}

/// Reads the type of a column. ClickHouse compares a column's type by its text.
fn read_type(input: &mut BinaryInput<'_>, plan: &ReadPlan, position: Option<usize>) -> Result<Target, NotParsedReason> {
    let text = input.text()?;
    match position {
        Some(column) if plan.rules.readers[column].type_text.as_bytes() == text => Ok(Target::Column(column)),
        Some(_) => Err(NotParsedReason::Value),
        None => {
            let text = std::str::from_utf8(text).map_err(|_| NotParsedReason::Value)?;
            let data_type = sent_type::parse(text)?;
            Ok(Target::Nowhere(Column::empty(&data_type)))
        }
    }
}
