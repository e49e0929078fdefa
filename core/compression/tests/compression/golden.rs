//! Tests against ClickHouse's bytes: its output can be read, and the output made here is the same as
//! ClickHouse's.

use windrow_compression::{compress_clickhouse, decompress, ClickHouseMethod, DecompressError, Encoding};

const LIMIT: usize = 64 << 20;

macro_rules! golden {
    ($name:literal) => {
        include_bytes!(concat!("../golden/", $name)).as_slice()
    };
}

/// Returns the bytes that the golden files of many lengths were made of.
fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|i| ((i * i * 7 + i * 13 + length) % 251) as u8).collect()
}

fn u64_column(count: u64) -> Vec<u8> {
    (0..count).flat_map(u64::to_le_bytes).collect()
}

#[test]
fn blocks_of_every_length_have_the_checksum_that_clickhouse_computes() {
    let expected: Vec<u8> = (1..=400).flat_map(pattern).collect();
    assert_eq!(decompress(Encoding::ClickHouse, golden!("lengths-lz4.bin"), LIMIT), Ok(expected));
}

#[test]
fn streams_of_several_blocks_and_errors_are_read() {
    let expected = b"x\n".repeat(1_500_000);
    assert_eq!(
        decompress(Encoding::ClickHouse, golden!("several-blocks-lz4.bin"), LIMIT).as_deref(),
        Ok(&expected[..])
    );
    let error = decompress(Encoding::ClickHouse, golden!("error-lz4.bin"), LIMIT).expect("a complete block");
    assert!(error.starts_with(b"Code: 73. DB::Exception: "), "{}", error.escape_ascii());
}

#[test]
fn zstd_and_uncompressed_blocks_are_read() {
    assert_eq!(decompress(Encoding::ClickHouse, golden!("column-zstd.bin"), LIMIT), Ok(u64_column(200)));
    assert_eq!(decompress(Encoding::ClickHouse, golden!("column-none.bin"), LIMIT), Ok(u64_column(200)));
    let codec = decompress(Encoding::ClickHouse, golden!("column-delta.bin"), LIMIT);
    assert!(matches!(codec, Err(DecompressError::Unsupported(_))), "{codec:?}");
}

#[test]
fn an_uncompressed_block_is_written_as_clickhouse_writes_it() {
    assert_eq!(compress_clickhouse(ClickHouseMethod::None, &u64_column(200)), golden!("column-none.bin"));
}

#[test]
fn http_encodings_are_read() {
    let expected: Vec<u8> = (0..2000).flat_map(|number| format!("{number}\n").into_bytes()).collect();
    let answers = [
        ("gzip", golden!("numbers.gz")),
        ("deflate", golden!("numbers.zz")),
        ("br", golden!("numbers.br")),
        ("zstd", golden!("numbers.zst")),
        ("lz4", golden!("numbers.lz4")),
    ];
    for (name, answer) in answers {
        let encoding = Encoding::from_content_encoding(name).expect("a known name");
        assert_eq!(decompress(encoding, answer, LIMIT).as_deref(), Ok(&expected[..]), "{name}");
        assert_eq!(
            decompress(encoding, answer, expected.len()).as_deref(),
            Ok(&expected[..]),
            "{name}, exactly the limit"
        );
        let error = decompress(encoding, answer, expected.len() - 1);
        assert_eq!(error, Err(DecompressError::TooLarge { max_bytes: expected.len() - 1 }), "{name}");
    }
}
