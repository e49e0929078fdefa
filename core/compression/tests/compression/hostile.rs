//! Tests with bodies that are cut, damaged, joined, or bombs.

use windrow_compression::{
    cityhash128, compress, compress_clickhouse, decompress, AnswerEncoding, ClickHouseMethod, DecompressError, Encoding,
};

const LIMIT: usize = 4 << 20;

struct Sample {
    encoding: Encoding,
    name: String,
    body: Vec<u8>,
}

/// Returns `content` in every encoding that is produced here and has members. Brotli's sample is not here:
/// ClickHouse made it, with other content.
fn samples(content: &[u8]) -> Vec<Sample> {
    let http = [
        (AnswerEncoding::Gzip, Encoding::Gzip),
        (AnswerEncoding::Deflate, Encoding::Deflate),
        (AnswerEncoding::Zstd, Encoding::Zstd),
        (AnswerEncoding::Lz4, Encoding::Lz4),
        (AnswerEncoding::Xz, Encoding::Xz),
        (AnswerEncoding::Snappy, Encoding::Snappy),
    ];
    let methods = [ClickHouseMethod::None, ClickHouseMethod::Lz4, ClickHouseMethod::Zstd];
    let sample = |encoding, name: String, body| Sample { encoding, name, body };
    let http = http.map(|(answer, encoding)| sample(encoding, answer.name().to_owned(), compress(answer, content)));
    let blocks = methods
        .map(|method| sample(Encoding::ClickHouse, format!("{method:?} blocks"), compress_clickhouse(method, content)));
    http.into_iter().chain(blocks).collect()
}

fn brotli() -> Sample {
    let body = include_bytes!("../golden/numbers.br").to_vec();
    Sample { encoding: Encoding::Brotli, name: "br".to_owned(), body }
}

fn rows(count: usize) -> Vec<u8> {
    (0..count)
        .flat_map(|number| format!("{{\"id\":{number},\"text\":\"row {}\"}}\n", number * number % 1013).into_bytes())
        .collect()
}

#[test]
fn what_was_compressed_comes_back() {
    let seed = 0x5EED_0003;
    let mut random = fastrand::Rng::with_seed(seed);
    let noise: Vec<u8> = std::iter::repeat_with(|| random.u8(..)).take(3 << 20).collect();
    for content in [vec![], vec![7], rows(3), rows(70_000), noise] {
        for sample in samples(&content) {
            let back = decompress(sample.encoding, &sample.body, LIMIT);
            assert!(back.as_deref() == Ok(&content[..]), "seed {seed:#x}, {} of {} bytes", sample.name, content.len());
        }
    }
}

#[test]
fn what_is_stored_as_brotli_is_read_as_brotli() {
    for length in [0, 1, 200, (1 << 16) - 1, 1 << 16, (1 << 16) + 1, 200_000] {
        let content: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
        let body = compress(AnswerEncoding::Brotli, &content);
        assert!(decompress(Encoding::Brotli, &body, LIMIT).as_deref() == Ok(&content[..]), "{length} bytes");
    }
}

#[test]
fn members_one_after_the_other_are_one_body() {
    let content = rows(50);
    for sample in samples(&content) {
        let twice = decompress(sample.encoding, &sample.body.repeat(2), LIMIT);
        assert_eq!(twice.as_deref(), Ok(&content.repeat(2)[..]), "{}", sample.name);
        let over = decompress(sample.encoding, &sample.body.repeat(2), content.len() * 2 - 1);
        assert_eq!(over, Err(DecompressError::TooLarge { max_bytes: content.len() * 2 - 1 }), "{}", sample.name);
    }
}

#[test]
fn a_body_cut_anywhere_is_truncated() {
    let whole_where_it_ends = |sample: &Sample| sample.encoding == Encoding::Snappy;
    for sample in samples(&rows(40)).into_iter().chain([brotli()]).filter(|sample| !whole_where_it_ends(sample)) {
        for end in 1..sample.body.len() {
            let result = decompress(sample.encoding, &sample.body[..end], LIMIT);
            assert_eq!(
                result,
                Err(DecompressError::Truncated),
                "{} cut at {end} of {}",
                sample.name,
                sample.body.len()
            );
        }
    }
}

/// Snappy's format has no end mark: a cut between chunks leaves the content in front of it, any other cut is
/// an error.
#[test]
fn a_snappy_body_is_cut_between_chunks_or_truncated() {
    let content = rows(4_000);
    let body = compress(AnswerEncoding::Snappy, &content);
    let mut whole = 0;
    for end in (1..body.len()).step_by(7).chain(1..400) {
        match decompress(Encoding::Snappy, &body[..end], LIMIT) {
            Err(error) => assert_eq!(error, DecompressError::Truncated, "cut at {end}"),
            Ok(output) => {
                whole += 1;
                assert!(output.len() % (1 << 16) == 0 && content.starts_with(&output), "cut at {end}");
            }
        }
    }
    assert!(whole > 0, "the identifier alone is an empty body");
}

/// The kinds of chunks of the framing format that ClickHouse takes, and those that it refuses.
#[test]
fn snappy_chunks_of_every_kind() {
    let (identifier, whole) = (b"\xff\x06\0\0sNaPpY", compress(AnswerEncoding::Snappy, b"{}"));
    let read = |tail: &[u8]| decompress(Encoding::Snappy, &[&whole[..], tail].concat(), LIMIT);
    assert_eq!(read(b"\xfe\x02\0\0\0\0").as_deref(), Ok(&b"{}"[..]), "padding");
    assert_eq!(read(b"\x80\x02\0\0xy").as_deref(), Ok(&b"{}"[..]), "to be passed over");
    assert_eq!(read(identifier).as_deref(), Ok(&b"{}"[..]), "another stream");
    assert!(read(b"\x02\x02\0\0xy").is_err(), "not to be passed over");
    assert!(decompress(Encoding::Snappy, &whole[identifier.len()..], LIMIT).is_err(), "no identifier");
}

/// Every encoding but brotli carries a checksum of the data (zstd's is optional, and not written here), so that most
/// damage is seen; all of them must end without a panic and within the limit.
#[test]
fn damage_never_panics_and_never_exceeds_the_limit() {
    let seed = 0x5EED_0004;
    let mut random = fastrand::Rng::with_seed(seed);
    let content = rows(200);
    for sample in samples(&content).into_iter().chain([brotli()]) {
        for round in 0..1_500 {
            let mut body = sample.body.clone();
            for _ in 0..random.usize(1..4) {
                let at = random.usize(..body.len());
                body[at] = random.u8(..);
            }
            let result = std::panic::catch_unwind(|| decompress(sample.encoding, &body, LIMIT));
            let result = result.unwrap_or_else(|_| panic!("seed {seed:#x}, {}, round {round}", sample.name));
            // A chunk of snappy's that is damaged into another kind is passed over.
            let unchecked = [Encoding::Brotli, Encoding::Zstd, Encoding::Lz4, Encoding::Snappy];
            let checked = !unchecked.contains(&sample.encoding);
            let undetected = checked && body != sample.body && result.as_ref().is_ok_and(|output| *output != content);
            assert!(!undetected, "seed {seed:#x}, {}, round {round}: damage was not seen", sample.name);
            assert!(result.is_err() || result.is_ok_and(|output| output.len() <= LIMIT));
        }
    }
}

#[test]
fn random_bytes_are_refused_or_at_least_harmless() {
    let seed = 0x5EED_0005;
    let mut random = fastrand::Rng::with_seed(seed);
    let all = [
        Encoding::Gzip,
        Encoding::Deflate,
        Encoding::Brotli,
        Encoding::Zstd,
        Encoding::Lz4,
        Encoding::Xz,
        Encoding::Snappy,
        Encoding::ClickHouse,
    ];
    for round in 0..3_000 {
        let length = random.usize(1..80);
        let body: Vec<u8> = std::iter::repeat_with(|| random.u8(..)).take(length).collect();
        for encoding in all {
            let result = std::panic::catch_unwind(|| decompress(encoding, &body, LIMIT));
            assert!(result.is_ok(), "seed {seed:#x}, round {round}, {encoding:?}");
        }
    }
}

#[test]
fn bombs_stop_at_the_limit() {
    let zeros = vec![0; 64 << 20];
    for sample in samples(&zeros) {
        let expected = Err(DecompressError::TooLarge { max_bytes: LIMIT });
        assert!(decompress(sample.encoding, &sample.body, LIMIT) == expected, "{}", sample.name);
    }
}

/// Returns a block of any content with a correct checksum.
fn block(method: u8, raw_bytes: u32, data: &[u8]) -> Vec<u8> {
    let mut checked = vec![method];
    checked.extend_from_slice(&(data.len() as u32 + 9).to_le_bytes());
    checked.extend_from_slice(&raw_bytes.to_le_bytes());
    checked.extend_from_slice(data);
    [&cityhash128(&checked)[..], &checked].concat()
}

#[test]
fn sizes_that_a_block_only_claims_are_not_believed() {
    let huge = 3 << 30;
    for method in [0x02, 0x82, 0x90] {
        let lie = block(method, huge, b"some bytes");
        assert_eq!(decompress(Encoding::ClickHouse, &lie, LIMIT), Err(DecompressError::TooLarge { max_bytes: LIMIT }));
        let unlimited = decompress(Encoding::ClickHouse, &lie, usize::MAX);
        assert!(matches!(unlimited, Err(DecompressError::Corrupt(_))), "{method:#x}: {unlimited:?}");
    }
    let content = rows(10);
    let zstd = compress(AnswerEncoding::Zstd, &content);
    let lz4 = lz4_flex::block::compress(&content);
    for (method, data) in [(0x02, &content), (0x82, &lz4), (0x90, &zstd)] {
        for raw_bytes in [content.len() as u32 - 1, content.len() as u32 + 1, 0] {
            let result = decompress(Encoding::ClickHouse, &block(method, raw_bytes, data), LIMIT);
            assert!(matches!(result, Err(DecompressError::Corrupt(_))), "{method:#x} claiming {raw_bytes}: {result:?}");
        }
        assert_eq!(
            decompress(Encoding::ClickHouse, &block(method, content.len() as u32, data), LIMIT),
            Ok(content.clone())
        );
    }
}

#[test]
fn damaged_blocks_and_unknown_methods_are_named() {
    let mut body = compress_clickhouse(ClickHouseMethod::Lz4, &rows(5));
    let last = body.len() - 1;
    body[last] ^= 1;
    assert_eq!(decompress(Encoding::ClickHouse, &body, LIMIT), Err(DecompressError::Checksum));
    let unknown = decompress(Encoding::ClickHouse, &block(0x91, 4, b"data"), LIMIT);
    assert!(matches!(unknown, Err(DecompressError::Unsupported(_))), "{unknown:?}");
}

/// A frame that asks for a window of 128 MiB gets no such memory.
#[test]
fn a_zstd_window_larger_than_reasonable_is_left_to_the_backend() {
    let frame = [0x28, 0xB5, 0x2F, 0xFD, 0x00, 0x88, 0x01, 0x00, 0x00];
    let result = decompress(Encoding::Zstd, &frame, LIMIT);
    assert!(matches!(result, Err(DecompressError::Unsupported(_))), "{result:?}");
}

/// The smallest stream of preset 9, whose dictionary is 64 MiB.
#[test]
fn an_xz_dictionary_larger_than_reasonable_is_left_to_the_backend() {
    let content = rows(3);
    let mut stream = liblzma::stream::Stream::new_easy_encoder(9, liblzma::stream::Check::Crc32).expect("memory");
    let mut body = Vec::with_capacity(1 << 16);
    stream.process_vec(&content, &mut body, liblzma::stream::Action::Finish).expect("memory takes it");
    let result = decompress(Encoding::Xz, &body, LIMIT);
    assert!(matches!(result, Err(DecompressError::Unsupported(_))), "{result:?}");
}

#[test]
fn garbage_behind_a_body_is_an_error() {
    for sample in samples(&rows(5)).into_iter().chain([brotli()]) {
        let body = [&sample.body[..], b"garbage that is no member of any kind"].concat();
        assert!(decompress(sample.encoding, &body, LIMIT).is_err(), "{}", sample.name);
    }
}

/// Frames with everything that the format allows: checksums of blocks, a content size, several blocks, other
/// programs' data.
#[test]
fn lz4_frames_of_every_make_are_read_and_their_cuts_seen() {
    use lz4_flex::frame::{BlockMode, BlockSize, FrameEncoder, FrameInfo};
    use std::io::Write;

    let seed = 0x5EED_0006;
    let mut random = fastrand::Rng::with_seed(seed);
    let mut content = rows(2_000);
    content.extend(std::iter::repeat_with(|| random.u8(..)).take(150_000));
    for (mode, checksums) in
        [(BlockMode::Linked, true), (BlockMode::Independent, false), (BlockMode::Independent, true)]
    {
        let mut info = FrameInfo::new().block_size(BlockSize::Max64KB).block_mode(mode);
        info = info
            .block_checksums(checksums)
            .content_checksum(checksums)
            .content_size(checksums.then_some(content.len() as u64));
        let mut encoder = FrameEncoder::with_frame_info(info, Vec::new());
        encoder.write_all(&content).expect("memory takes it");
        let frame = encoder.finish().expect("memory takes it");
        let skippable = [&[0x53, 0x2A, 0x4D, 0x18, 3, 0, 0, 0][..], b"own"].concat();
        let body = [&skippable[..], &frame, &skippable].concat();
        assert!(
            decompress(Encoding::Lz4, &body, LIMIT).as_deref() == Ok(&content[..]),
            "{mode:?}, checksums: {checksums}"
        );
        for end in (1..frame.len()).step_by(997).chain(frame.len() - 20..frame.len()) {
            assert_eq!(
                decompress(Encoding::Lz4, &frame[..end], LIMIT),
                Err(DecompressError::Truncated),
                "cut at {end}"
            );
        }
    }
}
