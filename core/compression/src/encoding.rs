//! The names that HTTP headers give to encodings.

/// The compression of a request's body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Encoding {
    Gzip,
    /// zlib's format, as HTTP means by this word.
    Deflate,
    Brotli,
    Zstd,
    /// LZ4's frame format.
    Lz4,
    Xz,
    /// Snappy's framing format.
    Snappy,
    /// ClickHouse's own blocks (`decompress=1`).
    ClickHouse,
}

impl Encoding {
    /// Returns the encoding with this name, in upper or lower case, as ClickHouse does. Returns `None` for
    /// names that are not decoded here: `bz2` (ClickHouse does not decode it over HTTP either), `none`, and
    /// unknown ones.
    pub fn from_content_encoding(name: &str) -> Option<Self> {
        match name.trim().to_ascii_lowercase().as_str() {
            "gzip" => Some(Self::Gzip),
            "deflate" => Some(Self::Deflate),
            "br" => Some(Self::Brotli),
            "zstd" => Some(Self::Zstd),
            "lz4" => Some(Self::Lz4),
            "xz" | "lzma" => Some(Self::Xz),
            "snappy" => Some(Self::Snappy),
            _ => None,
        }
    }
}

/// The compression of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AnswerEncoding {
    Zstd,
    Brotli,
    Lz4,
    Snappy,
    Gzip,
    Deflate,
    Xz,
}

impl AnswerEncoding {
    /// All encodings in order of preference, which is ClickHouse's.
    const ALL: [Self; 7] = [Self::Zstd, Self::Brotli, Self::Lz4, Self::Snappy, Self::Gzip, Self::Deflate, Self::Xz];

    /// Returns the best encoding among those that a client accepts; `*` is zstd. Weights only count as yes or
    /// no, as in ClickHouse.
    pub fn from_accept_encoding(header: &str) -> Option<Self> {
        let accepted = |name: &str| header.split(',').any(|item| accepts(item, name));
        if accepted("*") {
            return Some(Self::Zstd);
        }
        Self::ALL.into_iter().find(|encoding| accepted(encoding.name()))
    }

    /// Returns the name that stands in the header Content-Encoding.
    pub fn name(self) -> &'static str {
        match self {
            Self::Zstd => "zstd",
            Self::Brotli => "br",
            Self::Lz4 => "lz4",
            Self::Snappy => "snappy",
            Self::Xz => "xz",
            Self::Gzip => "gzip",
            Self::Deflate => "deflate",
        }
    }
}

fn accepts(item: &str, name: &str) -> bool {
    let mut parts = item.split(';').map(str::trim);
    let named = parts.next().is_some_and(|named| named.eq_ignore_ascii_case(name));
    let refused = parts.filter_map(|part| part.strip_prefix("q=")).any(|weight| weight.parse() == Ok(0.0));
    named && !refused
}
