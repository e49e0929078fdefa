//! Cuts rows into those of each shard.

use std::ops::Range;

use crate::block::Block;
use crate::rows::Rows;

/// Returns the rows of each shard that gets any, in their order, by the shards' positions. Nothing is copied
/// where all rows are of one shard.
///
/// # Panics
/// If the rows are not parsed, if there is not one shard for each row, or if one is not below `count`.
pub fn cut_by_shard(rows: Rows, shards: &[u32], count: usize) -> Vec<(u32, Rows)> {
    assert_eq!(rows.count(), shards.len(), "every row has its shard");
    let blocks = rows.blocks().expect("only of parsed rows it is known which is on which shard");
    let Some(first) = shards.first() else { return Vec::new() };
    if shards.iter().all(|shard| shard == first) {
        assert!((*first as usize) < count, "shard {first} of {count}");
        return vec![(*first, rows)];
    }
    let like = Rows::Parsed(blocks.first().map_or_else(Block::default, Block::like));
    let mut ranges: Vec<Vec<Range<usize>>> = vec![Vec::new(); count];
    let mut start = 0;
    for run in shards.chunk_by(|one, next| one == next) {
        ranges[run[0] as usize].push(start..start + run.len());
        start += run.len();
    }
    let with_rows = ranges.iter().enumerate().filter(|(_, ranges)| !ranges.is_empty());
    let of_shard = with_rows.map(|(shard, ranges)| {
        let mut part = like.clone();
        part.append_ranges(&rows, ranges);
        (shard as u32, part)
    });
    of_shard.collect()
}
