//! Arrow arrays of golden results: who frees their memory, and the way back into Native.

use std::sync::Arc;

use arrow_array::ffi::{from_ffi, FFI_ArrowSchema};
use arrow_array::ffi_stream::ArrayStreamReader;
use arrow_array::Array;
use windrow_columns::DataType;
use windrow_results::{arrow_array, arrow_schema, arrow_stream, ArrowColumn, ArrowOptions, Block};

use super::support::{decoded, goldens, Golden};

fn blocks_of(golden: &Golden) -> Vec<Arc<Block>> {
    decoded(&golden.native, &[usize::MAX]).expect("a golden file").into_iter().map(Arc::new).collect()
}

/// Takes the block out as others get it, and in as it comes from them.
fn column_of(block: &Arc<Block>, options: &ArrowOptions) -> Option<ArrowColumn> {
    let array = arrow_array(block, options).ok()?;
    let schema = FFI_ArrowSchema::try_from(arrow_schema(&block.header, options).ok()?).expect("types that Arrow has");
    // SAFETY: both were made here, for the same columns.
    let array = unsafe { from_ffi(array, &schema) }.expect("an array of its schema");
    Some(ArrowColumn::new(array.data_type().clone(), vec![array]))
}

#[test]
fn a_block_is_free_when_all_its_arrays_are_released() {
    for golden in goldens() {
        for dictionaries in [false, true] {
            let options = ArrowOptions { low_cardinality_as_dictionary: dictionaries, ..ArrowOptions::default() };
            for block in blocks_of(&golden) {
                let arrays: Vec<_> = (0..3).map(|_| column_of(&block, &options)).collect();
                let shared = Arc::strong_count(&block) - 1;
                drop(arrays);
                assert_eq!(Arc::strong_count(&block), 1, "{}: {shared} were shared", golden.name);
            }
        }
    }
}

#[test]
fn streams_are_read_to_their_end_and_freed_unread() {
    for golden in goldens().into_iter().filter(|golden| golden.name != "qbit") {
        let blocks = blocks_of(&golden);
        let stream = || arrow_stream(&blocks[0].header, blocks.clone(), ArrowOptions::default());
        let stream = || stream().expect("columns that Arrow has");
        drop(stream());
        let read = ArrayStreamReader::try_new(stream()).expect("a stream that was not read");
        let arrays: Vec<_> = read.map(|array| array.expect("a stream without errors").to_data()).collect();
        let column = ArrowColumn::new(arrays[0].data_type().clone(), arrays);
        let rows: usize = blocks.iter().map(|block| block.rows).sum();
        let names = blocks[0].header.names.clone();
        assert_eq!((column.rows(), column.names()), (rows, Some(names)), "{}", golden.name);
        drop(column);
        assert!(blocks.iter().all(|block| Arc::strong_count(block) == 1), "{}", golden.name);
    }
}

/// Compares the data of a golden file's columns, as far as they are flat and so stand in the file byte for
/// byte.
#[test]
fn what_went_to_arrow_comes_back() {
    let (mut same, mut other) = (Vec::new(), Vec::new());
    for golden in goldens() {
        for block in blocks_of(&golden) {
            let Some(table) = column_of(&block, &ArrowOptions::default()) else { continue };
            for (index, of) in block.header.types.iter().enumerate() {
                let mut data = Vec::new();
                let put = table.column(index).expect("a column").put(of, 0..block.rows, &mut data);
                let head = [of.to_string().as_bytes(), &data].concat();
                let is_there = golden.native.windows(head.len()).any(|window| window == head);
                match put {
                    Ok(()) if is_there => same.push(of.to_string()),
                    // Dictionaries and the placeholders of NULLs differ, which the comparison with ClickHouse looks
                    // after.
                    Ok(()) => assert!(has_other_bytes(of), "{}: {of}", golden.name),
                    Err(_) => other.push(of.to_string()),
                }
            }
        }
    }
    for wanted in
        ["Int64", "UUID", "Decimal(38, 10)", "DateTime64(6)", "Array(Array(UInt64))", "Map(String, UInt64)", "Bool"]
    {
        assert!(same.iter().any(|name| name == wanted), "{wanted} is not among {same:?}");
    }
    assert!(other.iter().any(|name| name.starts_with("Variant")), "{other:?}");
}

fn has_other_bytes(of: &DataType) -> bool {
    ["LowCardinality", "Nullable"].iter().any(|name| of.to_string().contains(name))
}

#[test]
fn every_part_of_the_rows_is_written_as_such() {
    let golden = goldens().into_iter().find(|golden| golden.name == "arrays").expect("it is in the list");
    let block = &blocks_of(&golden)[0];
    let table = column_of(block, &ArrowOptions::default()).expect("columns that Arrow has");
    for (index, of) in block.header.types.iter().enumerate() {
        let column = table.column(index).expect("a column");
        for start in 0..=block.rows {
            for stop in start..=block.rows {
                let mut data = vec![7];
                column.put(of, start..stop, &mut data).expect("rows that are there");
                // Ends of arrays are counted from the first row on.
                let ends: Vec<_> = data[1..].chunks_exact(8).take(stop - start).collect();
                assert_eq!((data[0], ends.len()), (7, stop - start));
            }
        }
        let mut data = vec![7];
        assert!(column.put(of, 0..block.rows + 1, &mut data).is_err());
        assert_eq!(data, [7], "nothing is left of what was not written");
    }
}
