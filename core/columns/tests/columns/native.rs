use windrow_columns::{decode_native, read_json_each_row, Block, DataType, NativeError, NativeLimits, ReadPlan};

use crate::render::render_native;
use crate::samples::{mutate, COLUMNS, JSON};
use crate::support::{data_type, plan};

/// Returns the sample as Native bytes with the types that they carry.
fn sample() -> (Vec<u8>, Vec<DataType>) {
    let plan: ReadPlan = plan(COLUMNS);
    let parsed = read_json_each_row(JSON.as_bytes(), &plan).unwrap();
    let columns: Vec<_> = parsed.present.iter().map(|index| &plan.columns()[index]).collect();
    let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
    let types: Vec<DataType> = columns.iter().map(|column| column.data_type.clone()).collect();
    let sent = types.iter().map(|data_type| DataType::parse(&data_type.native_name()).unwrap()).collect();
    (parsed.block.encode_native(&names, &types), sent)
}

#[test]
fn what_is_encoded_is_decoded() {
    let (native, types) = sample();
    let with_more = [native.as_slice(), b"more"].concat();
    let decoded = decode_native(&with_more, NativeLimits::default()).unwrap();
    assert_eq!(decoded.consumed_bytes, native.len());
    assert_eq!(decoded.types, types);
    assert_eq!(decoded.names[0], "id");
    assert_eq!(decoded.block.rows(), 3);
    assert_eq!(decoded.block.encode_native(&decoded.names, &decoded.types), native);
}

#[test]
fn an_empty_block_has_its_columns() {
    let types = [data_type("Array(String)"), data_type("UInt8")];
    let native = Block::empty(&types).encode_native(&["a", "b"], &types);
    assert_eq!(native, b"\x02\x00\x01a\x0dArray(String)\x01b\x05UInt8");
    assert_eq!(decode_native(&native, NativeLimits::default()).unwrap().block, Block::empty(&types));
    assert_eq!(decode_native(b"\x00\x00", NativeLimits::default()).unwrap().block, Block::default());
}

#[test]
fn golden_bytes() {
    let plan = plan(&["a UInt16", "s Nullable(String)", "m Map(String, UInt8)"]);
    let payload = br#"{"a":258,"s":"xy","m":{"k":1,"l":2}}{"a":3,"s":null,"m":{}}"#;
    let block = read_json_each_row(payload, &plan).unwrap().block;
    let types: Vec<DataType> = plan.columns().iter().map(|column| column.data_type.clone()).collect();
    let expected = b"\x03\x02\
        \x01a\x06UInt16\x02\x01\x03\x00\
        \x01s\x10Nullable(String)\x00\x01\x02xy\x00\
        \x01m\x12Map(String, UInt8)\x02\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\x01k\x01l\x01\x02";
    assert_eq!(block.encode_native(&["a", "s", "m"], &types), expected);
}

#[test]
fn every_shorter_block_is_truncated() {
    let (native, _) = sample();
    for length in 0..native.len() {
        let error = decode_native(&native[..length], NativeLimits::default()).unwrap_err();
        assert_eq!(error, NativeError::Truncated, "cut at {length}");
    }
}

#[test]
fn mutated_blocks_do_no_harm() {
    let (native, _) = sample();
    let mut decoded_count = 0;
    for seed in 0..20_000 {
        let mutated = mutate(&native, &mut fastrand::Rng::with_seed(seed));
        let outcome = std::panic::catch_unwind(|| {
            let Ok(decoded) = decode_native(&mutated, NativeLimits::default()) else { return false };
            let again = decoded.block.encode_native(&decoded.names, &decoded.types);
            assert_eq!(render_native(&again, &decoded.types).len(), decoded.block.rows());
            true
        });
        decoded_count += usize::from(outcome.unwrap_or_else(|_| panic!("seed {seed}")));
    }
    assert!(decoded_count > 100, "{decoded_count} of 20,000 mutations were blocks");
}

#[test]
fn lengths_are_checked_before_anything_is_allocated() {
    let limits = NativeLimits::default();
    let huge = b"\xff\xff\xff\xff\xff\xff\xff\x7f";
    let cases: [(Vec<u8>, NativeError); 6] = [
        ([huge.as_slice(), b"\x01"].concat(), NativeError::OverLimit("columns")),
        ([b"\x01", huge.as_slice()].concat(), NativeError::OverLimit("rows")),
        (b"\x00\x05".to_vec(), NativeError::Malformed("rows without columns")),
        (b"\x01\x80\xc2\xd7\x2f\x01a\x05UInt8x".to_vec(), NativeError::Truncated),
        ([b"\x01\x01\x01a\x06String".as_slice(), huge, b"x"].concat(), NativeError::Truncated),
        ([b"\x01\x01\x01a\x0cArray(UInt8)".as_slice(), &[0xFF; 7], &[0x0F], b"x"].concat(), NativeError::Truncated),
    ];
    for (bytes, expected) in cases {
        assert_eq!(decode_native(&bytes, limits), Err(expected), "{bytes:?}");
    }
    let small = NativeLimits { max_rows: 2, ..limits };
    let (native, _) = sample();
    assert_eq!(decode_native(&native, small), Err(NativeError::OverLimit("rows")));
}

#[test]
fn blocks_that_contradict_themselves_are_refused() {
    let backwards =
        [b"\x01\x02\x01a\x0cArray(UInt8)".as_slice(), &[2, 0, 0, 0, 0, 0, 0, 0, 1], &[0; 7], b"xy"].concat();
    assert!(matches!(decode_native(&backwards, NativeLimits::default()), Err(NativeError::Malformed(_))));
    let null_mark = b"\x01\x01\x01a\x0fNullable(UInt8)\x02\x00";
    assert!(matches!(decode_native(null_mark, NativeLimits::default()), Err(NativeError::Malformed(_))));
    let long_length = b"\x81\x00\x00";
    assert!(matches!(decode_native(long_length, NativeLimits::default()), Err(NativeError::Malformed(_))));
}
