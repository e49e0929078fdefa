//! Cuts that divide a batch before it is stored, so that no piece goes into more partitions than one INSERT
//! may write to.
//!
//! Inserts are taken in their order, and none is cut in two: an insert that goes into too many partitions by
//! itself is a piece of its own, for ClickHouse to refuse. Where the partitions can't be told, nothing is
//! cut; ClickHouse refuses the batch then, and it is narrowed down.

use std::collections::HashSet;

use crate::sink::{Destination, Form};

use crate::member::{Contents, Member};

/// Returns the batch in pieces, in order; mostly there is one.
pub(crate) fn cut(contents: Contents, destination: &Destination) -> Vec<Contents> {
    let cuts = cuts(&contents, destination).unwrap_or_default();
    let mut pieces = Vec::with_capacity(cuts.len() + 1);
    split(contents, &cuts, 0, &mut pieces);
    pieces
}

/// Finds the members before which to cut. Returns `None` where the partitions can't be told, or there can't
/// be too many.
fn cuts(contents: &Contents, destination: &Destination) -> Option<Vec<usize>> {
    let partitioning = destination.partitioning.as_ref()?;
    let (Some(blocks), Form::Native { types }) = (contents.rows.blocks(), &destination.form) else { return None };
    let max = usize::try_from(partitioning.max_per_insert?).ok()?;
    if contents.rows.count() <= max {
        return None;
    }
    let key = partitioning.key.as_ref()?;
    let mut keys = Vec::with_capacity(contents.rows.count());
    for block in blocks {
        keys.extend(key.of_rows(&destination.columns, types, block)?);
    }
    Some(greedy(&keys, &contents.members, max))
}

/// Finds the cuts so that each piece takes members for as long as it can. `keys` are equal for rows of one
/// partition.
fn greedy(keys: &[u64], members: &[Member], max: usize) -> Vec<usize> {
    let (mut piece, mut own) = (HashSet::<u64>::new(), HashSet::<u64>::new());
    let (mut cuts, mut start) = (Vec::new(), 0);
    for (index, member) in members.iter().enumerate() {
        let end = start + member.rows;
        own.clear();
        own.extend(keys.get(start..end).unwrap_or_default());
        start = end;
        let others = own.iter().filter(|key| !piece.contains(*key)).count();
        if piece.len() + others > max && !piece.is_empty() {
            cuts.push(index);
            piece.clear();
        }
        piece.extend(&own);
    }
    cuts
}

/// Splits in the middle first: a row is then copied only as often as the pieces can be halved. `cuts` are
/// places in the whole batch, in which `base` is the place of the first member.
fn split(mut contents: Contents, cuts: &[usize], base: usize, pieces: &mut Vec<Contents>) {
    let (before, rest) = cuts.split_at(cuts.len() / 2);
    let [middle, after @ ..] = rest else {
        pieces.push(contents);
        return;
    };
    let second = contents.split_off(middle - base);
    split(contents, before, base, pieces);
    split(second, after, *middle, pieces);
}
