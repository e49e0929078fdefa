use std::ops::Range;

use windrow_columns::{native_pieces, read_json_each_row, Block, DataType, Parsed, Rows};

use crate::render::{render_native, render_rows};
use crate::samples::{random_json_row, COLUMNS};
use crate::support::plan;

/// Joins, cuts, clears and takes blocks at random; they have to hold the same rows as a list of texts.
#[test]
fn blocks_behave_like_lists_of_rows() {
    let plan = plan(COLUMNS);
    for seed in 0..200 {
        let mut random = fastrand::Rng::with_seed(seed);
        let sources: Vec<Parsed> = (0..4)
            .map(|_| {
                let payload: String = (0..random.usize(..5)).map(|_| random_json_row(&mut random)).collect();
                // A payload of no rows leaves nothing out.
                read_json_each_row(format!("{payload}{{\"id\":0}}").as_bytes(), &plan).unwrap()
            })
            .collect();
        let texts: Vec<Vec<String>> = sources.iter().map(|source| render_rows(source, &plan)).collect();
        let columns: Vec<_> = sources[0].present.iter().map(|index| &plan.columns()[index]).collect();
        let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
        let types: Vec<DataType> = columns.iter().map(|column| column.data_type.clone()).collect();
        let mut block = Block::empty(&types);
        let mut model: Vec<String> = Vec::new();
        for step in 0..30 {
            let source = random.usize(..sources.len());
            let rows = texts[source].len();
            match random.u8(..10) {
                0..=2 => {
                    block.append(&sources[source].block);
                    model.extend_from_slice(&texts[source]);
                }
                3..=5 => {
                    let start = random.usize(..=rows);
                    let end = random.usize(start..=rows);
                    block.append_range(&sources[source].block, start..end);
                    model.extend_from_slice(&texts[source][start..end]);
                }
                6 => {
                    let ranges = random_ranges(&mut random, rows);
                    block.append_ranges(&sources[source].block, &ranges);
                    model.extend(ranges.into_iter().flat_map(|range| texts[source][range].to_vec()));
                }
                7 => {
                    let taken = block.take();
                    assert_eq!((block.rows(), block.bytes()), (0, 0), "seed {seed}, step {step}");
                    let start = random.usize(..=taken.rows());
                    block.append_range(&taken, start..taken.rows());
                    model.drain(..start);
                }
                8 => {
                    let some: Vec<usize> = (0..random.usize(..4)).map(|_| random.usize(..sources.len())).collect();
                    let mut blocks = vec![block.take()];
                    blocks.extend(some.iter().map(|&source| sources[source].block.clone()));
                    model.extend(some.iter().flat_map(|&source| texts[source].clone()));
                    let lent = native_pieces(&blocks, &names, &types).concat();
                    let mut rows = Rows::Blocks(blocks);
                    assert_eq!(rows.count(), model.len(), "seed {seed}, step {step}");
                    let ranges = random_ranges(&mut random, model.len());
                    let mut picked = Rows::Parsed(Block::empty(&types));
                    picked.append_ranges(&rows, &ranges);
                    let second = rows.split_off(random.usize(..=model.len()));
                    rows.append(&second);
                    let (Rows::Parsed(joined), Rows::Parsed(picked)) = (rows, picked) else {
                        panic!("they are in one")
                    };
                    assert_eq!(joined.encode_native(&names, &types), lent, "seed {seed}, step {step}");
                    let expected: Vec<String> = ranges.into_iter().flat_map(|range| model[range].to_vec()).collect();
                    assert_eq!(
                        render_native(&picked.encode_native(&names, &types), &types),
                        expected,
                        "seed {seed}, step {step}"
                    );
                    block = joined;
                }
                _ if random.u8(..4) == 0 => {
                    block.clear();
                    model.clear();
                }
                _ => {}
            }
            assert_eq!(block.rows(), model.len(), "seed {seed}, step {step}");
        }
        let native = block.encode_native(&names, &types);
        assert_eq!(render_native(&native, &types), model, "seed {seed}");
    }
}

/// Returns some ranges of `rows` rows, ascending, some of them empty.
fn random_ranges(random: &mut fastrand::Rng, rows: usize) -> Vec<Range<usize>> {
    let (mut ranges, mut at) = (Vec::new(), 0);
    for _ in 0..random.usize(..4) {
        let start = random.usize(at..=rows);
        at = random.usize(start..=rows);
        ranges.push(start..at);
    }
    ranges
}

#[test]
fn bytes_are_those_of_the_values() {
    let plan = plan(&["a UInt64", "s String", "n Nullable(UInt8)", "arr Array(UInt16)"]);
    let block = read_json_each_row(br#"{"a":1,"s":"xyz","n":null,"arr":[1,2]}"#, &plan).unwrap().block;
    assert_eq!(block.bytes(), 8 + 4 + 2 + (8 + 4));
}

#[test]
#[should_panic(expected = "same columns")]
fn blocks_of_other_columns_are_not_mixed() {
    let one = Block::empty(&[DataType::UInt8]);
    Block::empty(&[DataType::UInt8, DataType::UInt8]).append(&one);
}

#[test]
#[should_panic(expected = "same types")]
fn blocks_of_other_types_are_not_mixed() {
    let strings = Block::empty(&[DataType::String]);
    Block::empty(&[DataType::UInt8]).append(&strings);
}
