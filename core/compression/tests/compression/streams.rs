//! Tests of bodies in pieces: they give the same content as whole bodies, whatever the pieces, and never more
//! than was asked for.

use windrow_compression::{
    compress, decompress, AnswerEncoding, DecompressError, Encoding, StreamCompressor, StreamDecompressor,
};

const ENCODINGS: [(AnswerEncoding, Encoding); 5] = [
    (AnswerEncoding::Lz4, Encoding::Lz4),
    (AnswerEncoding::Zstd, Encoding::Zstd),
    (AnswerEncoding::Gzip, Encoding::Gzip),
    (AnswerEncoding::Deflate, Encoding::Deflate),
    (AnswerEncoding::Brotli, Encoding::Brotli),
];

fn rows(count: usize) -> Vec<u8> {
    (0..count).flat_map(|number| format!("{number}\trow {}\n", number * number % 1013).into_bytes()).collect()
}

fn noise(seed: u64, bytes: usize) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(seed);
    std::iter::repeat_with(|| random.u8(..)).take(bytes).collect()
}

/// Reads a body in pieces and portions of the sizes that `size` gives.
fn read(encoding: Encoding, body: &[u8], mut size: impl FnMut() -> usize) -> Result<Vec<u8>, DecompressError> {
    let mut decoder = StreamDecompressor::new(encoding)?;
    let mut output = Vec::new();
    let mut rest = body;
    loop {
        let piece = &rest[..size().min(rest.len())];
        let (portion, before) = (size(), output.len());
        let step = decoder.step(piece, &mut output, portion)?;
        assert!(output.len() - before <= portion, "{encoding:?}: more than was asked for");
        assert!(step.full || step.consumed == piece.len(), "{encoding:?}: input was left over without a reason");
        rest = &rest[step.consumed..];
        if rest.is_empty() && !step.full {
            return decoder.finish().map(|()| output);
        }
    }
}

#[test]
fn pieces_give_what_the_whole_gives() {
    let mut random = fastrand::Rng::with_seed(0x5EED_0011);
    for content in [vec![], vec![7], rows(40), rows(60_000), noise(0x5EED_0012, 1 << 20)] {
        for (answer, encoding) in ENCODINGS {
            let body = compress(answer, &content);
            for largest in [1, 100, 100_000] {
                if largest == 1 && content.len() > 10_000 {
                    continue;
                }
                let back = read(encoding, &body, || random.usize(1..=largest));
                assert!(back.as_deref() == Ok(&content[..]), "{encoding:?}, {} bytes, up to {largest}", content.len());
            }
        }
    }
}

#[test]
fn members_and_foreign_frames_are_passed() {
    for (answer, encoding) in ENCODINGS.into_iter().filter(|(answer, _)| *answer != AnswerEncoding::Brotli) {
        let body = compress(answer, &rows(50)).repeat(2);
        assert_eq!(read(encoding, &body, || 13), Ok(rows(50).repeat(2)), "{encoding:?}");
    }
    let foreign = [&0x184D_2A53_u32.to_le_bytes()[..], &5_u32.to_le_bytes(), b"hello"].concat();
    let body = [&foreign[..], &compress(AnswerEncoding::Lz4, &rows(9)), &foreign].concat();
    assert_eq!(read(Encoding::Lz4, &body, || 3), Ok(rows(9)));
}

#[test]
fn a_cut_body_is_truncated_and_gives_what_came() {
    for (answer, encoding) in ENCODINGS {
        let body = compress(answer, &rows(40));
        for end in 1..body.len() {
            assert_eq!(read(encoding, &body[..end], || 64), Err(DecompressError::Truncated), "{encoding:?} at {end}");
        }
    }
}

#[test]
fn damage_is_an_error_or_other_content_but_never_more() {
    let mut random = fastrand::Rng::with_seed(0x5EED_0013);
    for (answer, encoding) in ENCODINGS {
        let body = compress(answer, &rows(300));
        for _ in 0..2_000 {
            let mut damaged = body.clone();
            for _ in 0..random.usize(1..4) {
                let at = random.usize(..damaged.len());
                damaged[at] = random.u8(..);
            }
            let mut portions = 0;
            let result = read(encoding, &damaged, || {
                portions += 1;
                assert!(portions < 100_000, "{encoding:?}: it does not end");
                random.usize(1..5_000)
            });
            if let (Ok(streamed), Ok(whole)) = (&result, decompress(encoding, &damaged, 1 << 20)) {
                assert_eq!(streamed, &whole, "{encoding:?}");
            }
        }
    }
}

#[test]
fn a_bomb_gives_what_is_asked_for() {
    let content = vec![0; 64 << 20];
    for (answer, encoding) in ENCODINGS.into_iter().filter(|(answer, _)| *answer != AnswerEncoding::Brotli) {
        let body = compress(answer, &content);
        let mut decoder = StreamDecompressor::new(encoding).expect("a known encoding");
        let mut output = Vec::new();
        let step = decoder.step(&body, &mut output, 1000).expect("a sound body");
        assert_eq!((output.len(), step.full), (1000, true), "{encoding:?}");
        assert!(output.capacity() < 1 << 20, "{encoding:?}: {}", output.capacity());
    }
}

#[test]
fn an_endless_block_size_is_refused_before_it_is_waited_for() {
    let mut body = compress(AnswerEncoding::Lz4, &rows(10));
    body[7..11].copy_from_slice(&0x7FFF_FFFF_u32.to_le_bytes());
    assert!(matches!(read(Encoding::Lz4, &body, || 100), Err(DecompressError::Corrupt(_))));
}

#[test]
fn what_is_compressed_in_pieces_is_one_body() {
    let content = rows(30_000);
    for (_, encoding) in ENCODINGS.into_iter().filter(|(answer, _)| *answer != AnswerEncoding::Brotli) {
        let mut encoder = StreamCompressor::new(encoding).expect("memory").expect("a known encoding");
        let mut body = Vec::new();
        for piece in content.chunks(7_777) {
            body.extend(encoder.step(piece).expect("writing into memory"));
        }
        body.extend(encoder.finish().expect("writing into memory"));
        assert!(decompress(encoding, &body, content.len()).as_deref() == Ok(&content[..]), "{encoding:?}");
    }
}
