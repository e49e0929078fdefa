//! Results of the real engine, whole, in pieces, cut and damaged.

use super::support::row_binary::assert_same_rows;
use super::support::{decoded, golden_file, goldens};
use windrow_columns::{DataType, TypeError};
use windrow_results::{BlockDecoder, Column, Problem};

#[test]
fn every_type_is_read_as_clickhouse_means_it() {
    for golden in goldens() {
        let blocks = decoded(&golden.native, &[usize::MAX]).unwrap_or_else(|error| panic!("{}: {error}", golden.name));
        assert_same_rows(&golden.name, &blocks, &golden_file(&format!("{}.rowbinary", golden.name)));
    }
}

#[test]
fn types_are_spelled_as_they_came() {
    for golden in goldens() {
        for block in decoded(&golden.native, &[usize::MAX]).expect("a golden file") {
            for (name, column_type) in block.header.names.iter().zip(&block.header.types) {
                let spelled = column_type.to_string();
                let length = match spelled.len() {
                    short @ 0..128 => vec![short as u8],
                    long => vec![long as u8 | 0x80, (long >> 7) as u8],
                };
                let head = [&[name.len() as u8], name.as_bytes(), &length, spelled.as_bytes()].concat();
                let found = golden.native.windows(head.len()).any(|window| window == head);
                assert!(found, "{}: {name} is no {spelled}", golden.name);
            }
        }
    }
}

#[test]
fn it_makes_no_difference_how_a_result_is_cut() {
    for golden in goldens() {
        let whole = decoded(&golden.native, &[usize::MAX]);
        for pieces in [&[1][..], &[2], &[3, 1], &[7], &[64, 1, 1], &[1000]] {
            assert_eq!(decoded(&golden.native, pieces), whole, "{} in pieces of {pieces:?}", golden.name);
        }
    }
}

#[test]
fn a_cut_result_needs_more() {
    for golden in goldens() {
        let ends = block_ends(&golden.native);
        for length in 0..golden.native.len() {
            let mut decoder = BlockDecoder::new();
            decoder.push(&golden.native[..length]);
            while let Some(_block) =
                decoder.next().unwrap_or_else(|error| panic!("{} at {length}: {error}", golden.name))
            {}
            let at_an_end = length == 0 || ends.contains(&length);
            assert_eq!(decoder.finish().is_ok(), at_an_end, "{} at {length}", golden.name);
        }
    }
}

fn block_ends(native: &[u8]) -> Vec<usize> {
    let mut decoder = BlockDecoder::new();
    let mut ends = Vec::new();
    for (index, byte) in native.iter().enumerate() {
        decoder.push(std::slice::from_ref(byte));
        if decoder.next().expect("a golden file").is_some() {
            ends.push(index + 1);
        }
    }
    ends
}

#[test]
fn damaged_results_are_errors_or_other_values() {
    let mut random = fastrand::Rng::with_seed(5);
    for golden in goldens() {
        for round in 0..400 {
            let mut damaged = golden.native.clone();
            for _ in 0..random.usize(1..4) {
                let at = random.usize(0..damaged.len());
                match random.u8(0..4) {
                    0 => damaged[at] = random.u8(..),
                    1 => damaged[at] ^= 1 << random.u8(0..8),
                    2 => drop(damaged.remove(at)),
                    _ => damaged.insert(at, random.choice([0, 1, 0x7F, 0x80, 0xFF]).expect("one of five")),
                }
            }
            let whole = decoded(&damaged, &[usize::MAX]);
            assert_eq!(decoded(&damaged, &[5]), whole, "{}, round {round}", golden.name);
        }
    }
}

/// Returns a block of one column, as far as its name and type.
fn head_of(rows: u8, type_name: &str) -> Vec<u8> {
    [
        b"\x01\x00\x02\xff\xff\xff\xff\x00\x01".as_slice(),
        &[rows],
        b"\x01x",
        &[type_name.len() as u8],
        type_name.as_bytes(),
    ]
    .concat()
}

fn problem_of(native: &[u8]) -> Problem {
    let mut decoder = BlockDecoder::new();
    decoder.push(native);
    let error = decoder.next().expect_err("something is wrong");
    assert_eq!(decoder.next(), Err(error.clone()), "an error stays");
    assert_eq!(decoder.finish(), Err(error.clone()));
    error.problem
}

#[test]
fn what_has_no_values_says_which_column_and_what_to_do() {
    let mut decoder = BlockDecoder::new();
    decoder.push(&head_of(1, "AggregateFunction(sum, UInt64)"));
    let error = decoder.next().expect_err("a state");
    let message = "column x of type AggregateFunction(sum, UInt64): values of type AggregateFunction(sum, UInt64) can't be read: cast it in the query";
    assert_eq!(error.to_string(), message);
    let unknown = problem_of(&head_of(1, "Array(Colour(3, 'a)'))"));
    assert_eq!(unknown, Problem::Type(TypeError::Unreadable("Colour(3, 'a)')".to_string())));
}

#[test]
fn dynamic_in_another_form_names_the_setting() {
    let shared_type = b"\x01\0\0\0\0\0\0\0\x01\x01\x06String\0\0\0\0\0\0\0\0\x00\x03\x0fVG";
    let shared_path = b"\0\0\0\0\0\0\0\0\x00\x00\x01\0\0\0\0\0\0\0\x01a\x03\x15\x01x";
    let cases = [
        ("Dynamic", vec![2, 0, 0, 0, 0, 0, 0, 0]),
        ("JSON", vec![1, 0, 0, 0, 0, 0, 0, 0]),
        ("Dynamic(max_types=1)", shared_type.to_vec()),
        ("JSON(max_dynamic_paths=0)", shared_path.to_vec()),
    ];
    for (type_name, data) in cases {
        let problem = problem_of(&[head_of(1, type_name), data].concat());
        let Problem::Form(hint) = problem else { panic!("{type_name}: {problem:?}") };
        assert!(hint.contains("output_format_native_use_flattened_dynamic_and_json_serialization=1"));
    }
}

#[test]
fn what_is_announced_is_not_believed() {
    let huge = 1_u64 << 40;
    let rows = b"\x01\x00\x02\xff\xff\xff\xff\x00\x01\xff\xff\xff\xff\xff\x3f".as_slice();
    assert_eq!(problem_of(rows), Problem::TooLarge("the rows"));
    let array = [head_of(1, "Array(UInt8)"), huge.to_le_bytes().to_vec()].concat();
    assert_eq!(problem_of(&array), Problem::TooLarge("the arrays"));
    let string = [head_of(1, "String"), vec![0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x3F]].concat();
    assert_eq!(problem_of(&string), Problem::TooLarge("the strings"));
    let dictionary = [1, 0x200, huge].map(u64::to_le_bytes).concat();
    let dictionary = [head_of(1, "LowCardinality(String)"), dictionary].concat();
    assert_eq!(problem_of(&dictionary), Problem::TooLarge("the dictionaries"));
}

#[test]
fn rows_refer_to_what_there_is() {
    let one_key = [1, 0x200, 1].map(u64::to_le_bytes).concat();
    let low_cardinality =
        [head_of(1, "LowCardinality(UInt8)"), one_key, vec![7], 1_u64.to_le_bytes().to_vec(), vec![1]];
    assert_eq!(problem_of(&low_cardinality.concat()), Problem::Malformed("a row that is not in the dictionary"));
    let variant = [head_of(1, "Variant(String, UInt8)"), vec![0; 8], vec![2]].concat();
    assert_eq!(problem_of(&variant), Problem::Malformed("a row of an alternative that its column has not"));
    let backwards = [head_of(2, "Array(UInt8)"), [2, 1].map(u64::to_le_bytes).concat()].concat();
    assert_eq!(problem_of(&backwards), Problem::Malformed("an array that ends before it begins"));
}

/// Tests a limit: each value of a Dynamic may name a type with a Dynamic inside, and so on without an end.
#[test]
fn types_inside_values_are_followed_only_so_far() {
    let mut native = head_of(1, "Dynamic");
    for _ in 0..1000 {
        native.extend(3_u64.to_le_bytes());
        native.extend(b"\x01\x0eArray(Dynamic)");
    }
    assert_eq!(problem_of(&native), Problem::Type(TypeError::TooDeepToRead));
    let deep = format!("{}UInt8{}", "Array(".repeat(200), ")".repeat(200));
    assert_eq!(DataType::parse_result(&deep), Err(TypeError::TooDeepToRead));
}

#[test]
fn a_block_of_other_columns_has_its_own_header() {
    let first = [head_of(1, "UInt8"), vec![1]].concat();
    let second = [head_of(1, "String"), b"\x01a".to_vec()].concat();
    let blocks = decoded(&[first.clone(), first, second].concat(), &[usize::MAX]).expect("three blocks");
    assert!(std::sync::Arc::ptr_eq(&blocks[0].header, &blocks[1].header));
    assert_eq!(blocks[2].header.types[0].to_string(), "String");
    assert_eq!(blocks[2].columns, [Column::Strings { offsets: vec![0, 1], data: b"a".to_vec() }]);
}

#[test]
fn a_block_without_rows_tells_the_header() {
    for type_name in [
        "UInt8",
        "String",
        "LowCardinality(String)",
        "Array(JSON)",
        "Dynamic",
        "JSON(a UInt8)",
        "QBit(Float32, 3)",
        "Tuple()",
    ] {
        let blocks = decoded(&head_of(0, type_name), &[1]).expect("a head");
        assert_eq!((blocks.len(), blocks[0].rows, blocks[0].columns[0].rows()), (1, 0, 0), "{type_name}");
        assert_eq!(blocks[0].header.types[0].to_string(), type_name);
    }
}
