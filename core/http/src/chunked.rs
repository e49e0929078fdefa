//! The chunked transfer coding (RFC 9112, section 7.1), as a scanner: the scanner sees bytes and says which
//! of them are data and where the message ends. It holds no bytes itself, so it serves both decoding and
//! passing a message on unchanged.

use std::fmt;
use std::ops::Range;

/// The longest chunk-size line. Such a line is a few hex digits; extensions are legal but not in use. A
/// longer line is an attack.
const MAX_LINE_BYTES: usize = 4096;
const MAX_TRAILER_BYTES: usize = 16 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChunkedError {
    InvalidSize,
    LineTooLong,
    MissingLineEnd,
}

impl fmt::Display for ChunkedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ChunkedError::InvalidSize => "a chunk does not begin with its size in hexadecimal",
            ChunkedError::LineTooLong => "a chunk's size line or the trailer is too long",
            ChunkedError::MissingLineEnd => "a chunk, or a line of the trailer, does not end with CR LF",
        })
    }
}

impl std::error::Error for ChunkedError {}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Size {
        digits: u8,
        value: u64,
        line_bytes: usize,
    },
    Extension {
        value: u64,
        line_bytes: usize,
    },
    SizeLineFeed {
        value: u64,
    },
    Data {
        remaining: u64,
    },
    DataCarriageReturn,
    DataLineFeed,
    /// The start of a trailer line: an empty line ends the message.
    TrailerStart {
        seen: usize,
    },
    Trailer {
        seen: usize,
    },
    TrailerLineFeed {
        seen: usize,
    },
    TrailerEndLineFeed,
    Done,
}

/// The result of one step over some bytes.
#[derive(Debug, PartialEq, Eq)]
pub struct Scanned {
    /// The number of bytes that belong to the message and are dealt with.
    pub consumed: usize,
    /// The range of data in those bytes; empty when the step only crossed framing.
    pub data: Range<usize>,
}

#[derive(Debug)]
pub struct ChunkedScanner {
    state: State,
}

impl Default for ChunkedScanner {
    fn default() -> Self {
        ChunkedScanner { state: State::Size { digits: 0, value: 0, line_bytes: 0 } }
    }
}

impl ChunkedScanner {
    pub fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// Walks over `bytes` up to the end of the next run of data, the end of the message, or the end of `bytes`.
    ///
    /// # Errors
    /// Fails where a chunk's size is no hexadecimal number, a line is too long, or a line or chunk does not
    /// end with CR LF.
    pub fn step(&mut self, bytes: &[u8]) -> Result<Scanned, ChunkedError> {
        let mut at = 0;
        while at < bytes.len() && self.state != State::Done {
            if let State::Data { remaining } = self.state {
                let take = remaining.min((bytes.len() - at) as u64);
                let left = remaining - take;
                self.state = if left == 0 { State::DataCarriageReturn } else { State::Data { remaining: left } };
                let end = at + take as usize;
                return Ok(Scanned { consumed: end, data: at..end });
            }
            self.state = self.framing_byte(bytes[at])?;
            at += 1;
        }
        Ok(Scanned { consumed: at, data: at..at })
    }

    /// Walks over everything in `bytes` that belongs to the message, and returns the number of these bytes.
    ///
    /// # Errors
    /// Fails as [`step`](Self::step) does.
    pub fn skip(&mut self, bytes: &[u8]) -> Result<usize, ChunkedError> {
        let mut at = 0;
        while at < bytes.len() && !self.is_done() {
            at += self.step(&bytes[at..])?.consumed;
        }
        Ok(at)
    }

    fn framing_byte(&self, byte: u8) -> Result<State, ChunkedError> {
        Ok(match self.state {
            State::Size { digits, value, line_bytes } => size_byte(byte, digits, value, line_bytes)?,
            State::Extension { line_bytes, .. } if line_bytes > MAX_LINE_BYTES => {
                return Err(ChunkedError::LineTooLong)
            }
            State::Extension { value, line_bytes } => match byte {
                b'\r' => State::SizeLineFeed { value },
                b'\n' => return Err(ChunkedError::MissingLineEnd),
                _ => State::Extension { value, line_bytes: line_bytes + 1 },
            },
            State::SizeLineFeed { value: 0 } => expect(byte, b'\n', State::TrailerStart { seen: 0 })?,
            State::SizeLineFeed { value } => expect(byte, b'\n', State::Data { remaining: value })?,
            State::DataCarriageReturn => expect(byte, b'\r', State::DataLineFeed)?,
            State::DataLineFeed => expect(byte, b'\n', State::Size { digits: 0, value: 0, line_bytes: 0 })?,
            State::TrailerStart { .. } if byte == b'\r' => State::TrailerEndLineFeed,
            State::TrailerStart { seen } | State::Trailer { seen } => match byte {
                _ if seen > MAX_TRAILER_BYTES => return Err(ChunkedError::LineTooLong),
                b'\r' => State::TrailerLineFeed { seen: seen + 1 },
                // Others take it for a line's end, or for none, and would find the next request somewhere else.
                b'\n' => return Err(ChunkedError::MissingLineEnd),
                _ => State::Trailer { seen: seen + 1 },
            },
            State::TrailerLineFeed { seen } => expect(byte, b'\n', State::TrailerStart { seen: seen + 1 })?,
            State::TrailerEndLineFeed => expect(byte, b'\n', State::Done)?,
            State::Data { .. } | State::Done => unreachable!("step() deals with data and never reads past the end"),
        })
    }
}

fn size_byte(byte: u8, digits: u8, value: u64, line_bytes: usize) -> Result<State, ChunkedError> {
    match byte {
        _ if byte.is_ascii_hexdigit() => {
            // 15 digits are more bytes than exist, and can't overflow.
            if digits == 15 {
                return Err(ChunkedError::InvalidSize);
            }
            let digit = (byte as char).to_digit(16).unwrap_or(0);
            Ok(State::Size { digits: digits + 1, value: value << 4 | u64::from(digit), line_bytes })
        }
        _ if digits == 0 => Err(ChunkedError::InvalidSize),
        b'\r' => Ok(State::SizeLineFeed { value }),
        b';' | b' ' | b'\t' => Ok(State::Extension { value, line_bytes }),
        _ => Err(ChunkedError::InvalidSize),
    }
}

fn expect(byte: u8, wanted: u8, next: State) -> Result<State, ChunkedError> {
    if byte == wanted {
        Ok(next)
    } else {
        Err(ChunkedError::MissingLineEnd)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(bytes: &[u8], piece: usize) -> Result<(Vec<u8>, usize, bool), ChunkedError> {
        let (mut scanner, mut data, mut consumed) = (ChunkedScanner::default(), Vec::new(), 0);
        for part in bytes.chunks(piece) {
            let mut at = 0;
            while at < part.len() && !scanner.is_done() {
                let scanned = scanner.step(&part[at..])?;
                data.extend_from_slice(&part[at..][scanned.data.clone()]);
                at += scanned.consumed;
            }
            consumed += at;
        }
        Ok((data, consumed, scanner.is_done()))
    }

    const MESSAGE: &[u8] = b"4\r\nWiki\r\n6;name=value\r\npedia \r\nE\r\nin \r\n\r\nchunks.\r\n0\r\nTrailer: x\r\n\r\n";

    #[test]
    fn a_message_decodes_the_same_however_it_is_cut() {
        let mut bytes = MESSAGE.to_vec();
        bytes.extend_from_slice(b"GET / HTTP/1.1\r\n");
        for piece in 1..bytes.len() {
            let (data, consumed, done) = decode(&bytes, piece).unwrap();
            assert_eq!(data, b"Wikipedia in \r\n\r\nchunks.");
            assert_eq!(consumed, MESSAGE.len(), "what follows belongs to the next message");
            assert!(done);
        }
    }

    #[test]
    fn no_truncation_is_taken_for_the_end() {
        for length in 0..MESSAGE.len() {
            let (_, _, done) = decode(&MESSAGE[..length], 7).unwrap();
            assert!(!done, "cut after {length} bytes");
        }
    }

    #[test]
    fn sizes_that_are_not_plain_hexadecimal_are_refused() {
        for bad in ["\r\n", "g\r\n", "-1\r\n", "0x4\r\n", " 4\r\n", "+4\r\n", "1000000000000000\r\n", "4\nWiki"] {
            assert!(decode(bad.as_bytes(), 3).is_err(), "{bad:?}");
        }
        assert_eq!(decode(b"4\r\nWikiXX", 100), Err(ChunkedError::MissingLineEnd));
        let long = [b"1;".as_slice(), &[b'x'; 10_000]].concat();
        assert_eq!(decode(&long, 100), Err(ChunkedError::LineTooLong));
    }

    #[test]
    fn a_trailer_has_lines_that_end_with_both_characters() {
        let ends = |trailer: &str| decode(&[b"0\r\n", trailer.as_bytes()].concat(), 3);
        assert_eq!(ends("\r\n"), Ok((Vec::new(), 5, true)));
        assert_eq!(ends("a: b\r\nc: d\r\n\r\n"), Ok((Vec::new(), 17, true)));
        for bad in ["\n", "\n\n", "a: b\n\n", "a: b\n\r\n", "a: b\r\n\n", "a: b\r\r\n", "\rGET / HTTP/1.1\r\n"] {
            assert_eq!(ends(bad), Err(ChunkedError::MissingLineEnd), "{bad:?}");
        }
    }

    #[test]
    fn skip_stops_at_the_end_of_the_message() {
        let bytes = [MESSAGE, b"rest"].concat();
        let mut scanner = ChunkedScanner::default();
        assert_eq!(scanner.skip(&bytes), Ok(MESSAGE.len()));
        assert!(scanner.is_done());
    }
}
