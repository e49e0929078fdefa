//! The rows that are left of an insert of which a part is stored already.

use crate::sink::{Destination, Form};
use windrow_columns::Rows;

/// Takes out the rows for the partitions `known`. Returns false if the partitions can't be told: nothing was
/// taken then.
pub(crate) fn cut_known(rows: &mut Rows, destination: &Destination, known: &[u64]) -> bool {
    if known.is_empty() {
        return true;
    }
    let Some(partitions) = partitions(rows, destination) else { return false };
    let all = rows.take();
    let mut start = 0;
    for run in partitions.chunk_by(|one, other| one == other) {
        let end = start + run.len();
        if !known.contains(&run[0]) {
            rows.append_range(&all, start..end);
        }
        start = end;
    }
    true
}

fn partitions(rows: &Rows, destination: &Destination) -> Option<Vec<u64>> {
    let key = destination.partitioning.as_ref()?.key.as_ref()?;
    let (Rows::Parsed(block), Form::Native { types }) = (rows, &destination.form) else { return None };
    key.of_rows(&destination.columns, types, block)
}
