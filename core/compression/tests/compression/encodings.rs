//! Tests of the names in HTTP headers.

use windrow_compression::{AnswerEncoding, Encoding};

#[test]
fn content_encodings_are_known_by_clickhouse_names() {
    assert_eq!(Encoding::from_content_encoding("br"), Some(Encoding::Brotli));
    assert_eq!(Encoding::from_content_encoding("gzip"), Some(Encoding::Gzip));
    assert_eq!(Encoding::from_content_encoding(" LZ4"), Some(Encoding::Lz4));
    assert_eq!(Encoding::from_content_encoding("xz"), Some(Encoding::Xz));
    assert_eq!(Encoding::from_content_encoding("Snappy"), Some(Encoding::Snappy));
    for unknown in ["", "identity", "bz2", "none", "x-gzip", "gzip, br"] {
        assert_eq!(Encoding::from_content_encoding(unknown), None, "{unknown:?}");
    }
}

#[test]
fn the_best_accepted_encoding_is_chosen() {
    let cases = [
        ("gzip, deflate, br, zstd", Some(AnswerEncoding::Zstd)),
        ("gzip;q=1.0, lz4;q=0.1", Some(AnswerEncoding::Lz4)),
        ("deflate,gzip", Some(AnswerEncoding::Gzip)),
        ("deflate", Some(AnswerEncoding::Deflate)),
        ("zstd;q=0, gzip", Some(AnswerEncoding::Gzip)),
        ("*", Some(AnswerEncoding::Zstd)),
        ("gzip, deflate, br", Some(AnswerEncoding::Brotli)),
        ("lz4, snappy, gzip, xz", Some(AnswerEncoding::Lz4)),
        ("xz, gzip, snappy", Some(AnswerEncoding::Snappy)),
        ("GZIP", Some(AnswerEncoding::Gzip)),
        ("deflate ; q=0", None),
        ("xz", Some(AnswerEncoding::Xz)),
        ("bz2", None),
        ("identity", None),
        ("", None),
    ];
    for (header, expected) in cases {
        assert_eq!(AnswerEncoding::from_accept_encoding(header), expected, "{header:?}");
    }
}
