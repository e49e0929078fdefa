//! Finds the end of an answer's body, whichever way it is framed, without copying it.

use super::WireError;

/// More hexadecimal digits than a chunk of 2^60 bytes needs can only be an attempt to overflow.
const MAX_CHUNK_SIZE_DIGITS: u8 = 15;
/// Chunk extensions and trailers are skipped, but not for ever.
const MAX_SKIPPED_BYTES: usize = 16 << 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    Length(u64),
    Chunked,
    UntilClose,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Fixed { remaining: u64 },
    ChunkSize { size: u64, digits: u8 },
    ChunkExtension { size: u64 },
    ChunkData { remaining: u64 },
    ChunkEnd,
    Trailer { line_bytes: usize },
    UntilClose,
    Done,
}

#[derive(Debug)]
pub struct BodyDecoder {
    state: State,
    skipped_bytes: usize,
}

impl BodyDecoder {
    pub fn new(framing: Framing) -> Self {
        let state = match framing {
            Framing::Length(0) => State::Done,
            Framing::Length(remaining) => State::Fixed { remaining },
            Framing::Chunked => State::ChunkSize { size: 0, digits: 0 },
            Framing::UntilClose => State::UntilClose,
        };
        BodyDecoder { state, skipped_bytes: 0 }
    }

    pub fn is_complete(&self) -> bool {
        self.state == State::Done
    }

    /// Whether a connection that closes now has delivered everything.
    pub fn may_end_here(&self) -> bool {
        matches!(self.state, State::Done | State::UntilClose)
    }

    /// Takes bytes as they come and hands the body's own ones on. Returns how many it took: all, unless the body ended.
    pub fn feed(&mut self, bytes: &[u8], mut data: impl FnMut(&[u8])) -> Result<usize, WireError> {
        let mut taken = 0;
        while taken < bytes.len() && self.state != State::Done {
            let rest = &bytes[taken..];
            taken += match self.state {
                State::Fixed { remaining } => {
                    let (piece, left) = split(rest, remaining);
                    data(piece);
                    self.state = if left == 0 { State::Done } else { State::Fixed { remaining: left } };
                    piece.len()
                }
                State::ChunkData { remaining } => {
                    let (piece, left) = split(rest, remaining);
                    data(piece);
                    self.state = if left == 0 { State::ChunkEnd } else { State::ChunkData { remaining: left } };
                    piece.len()
                }
                State::UntilClose => {
                    data(rest);
                    rest.len()
                }
                _ => {
                    self.state = self.step(rest[0])?;
                    1
                }
            };
        }
        Ok(taken)
    }

    /// One byte of what stands between the chunks.
    fn step(&mut self, byte: u8) -> Result<State, WireError> {
        match self.state {
            State::ChunkSize { size, digits } => match (byte as char).to_digit(16) {
                Some(_) if digits == MAX_CHUNK_SIZE_DIGITS => Err(WireError::BadChunk),
                Some(digit) => Ok(State::ChunkSize { size: size * 16 + u64::from(digit), digits: digits + 1 }),
                None if digits == 0 => Err(WireError::BadChunk),
                None if byte == b'\n' => Ok(after_size(size)),
                None => self.skip(State::ChunkExtension { size }),
            },
            State::ChunkExtension { size } if byte == b'\n' => Ok(after_size(size)),
            State::ChunkEnd => match byte {
                b'\r' => Ok(State::ChunkEnd),
                b'\n' => Ok(State::ChunkSize { size: 0, digits: 0 }),
                _ => Err(WireError::BadChunk),
            },
            State::Trailer { line_bytes: 0 } if byte == b'\n' => Ok(State::Done),
            State::Trailer { .. } if byte == b'\n' => Ok(State::Trailer { line_bytes: 0 }),
            State::Trailer { line_bytes } if byte == b'\r' => Ok(State::Trailer { line_bytes }),
            State::Trailer { line_bytes } => self.skip(State::Trailer { line_bytes: line_bytes + 1 }),
            other => self.skip(other),
        }
    }

    fn skip(&mut self, next: State) -> Result<State, WireError> {
        self.skipped_bytes += 1;
        if self.skipped_bytes > MAX_SKIPPED_BYTES {
            return Err(WireError::BadChunk);
        }
        Ok(next)
    }
}

fn after_size(size: u64) -> State {
    if size == 0 {
        State::Trailer { line_bytes: 0 }
    } else {
        State::ChunkData { remaining: size }
    }
}

fn split(bytes: &[u8], remaining: u64) -> (&[u8], u64) {
    let piece_bytes = usize::try_from(remaining).unwrap_or(usize::MAX).min(bytes.len());
    (&bytes[..piece_bytes], remaining - piece_bytes as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHUNKED: &[u8] = b"4\r\nWind\r\n3;note=x\r\nrow\r\n0\r\nTrailer: y\r\n\r\n";

    fn decode(framing: Framing, pieces: &[&[u8]]) -> Result<(Vec<u8>, bool), WireError> {
        let mut decoder = BodyDecoder::new(framing);
        let mut body = Vec::new();
        for piece in pieces {
            decoder.feed(piece, |data| body.extend_from_slice(data))?;
        }
        Ok((body, decoder.is_complete()))
    }

    #[test]
    fn decodes_each_framing() {
        assert_eq!(decode(Framing::Length(5), &[b"hel", b"lo"]), Ok((b"hello".to_vec(), true)));
        assert_eq!(decode(Framing::Length(0), &[]), Ok((vec![], true)));
        assert_eq!(decode(Framing::Chunked, &[CHUNKED]), Ok((b"Windrow".to_vec(), true)));
        assert_eq!(decode(Framing::UntilClose, &[b"abc"]), Ok((b"abc".to_vec(), false)));
    }

    #[test]
    fn leaves_what_follows_the_body() {
        let mut decoder = BodyDecoder::new(Framing::Chunked);
        let taken = decoder.feed(b"1\r\na\r\n0\r\n\r\nHTTP/1.1", |_| {}).unwrap();
        assert_eq!((taken, decoder.is_complete()), (11, true));
    }

    #[test]
    fn every_split_and_truncation_is_handled() {
        for cut in 0..CHUNKED.len() {
            assert!(!decode(Framing::Chunked, &[&CHUNKED[..cut]]).unwrap().1, "{cut} bytes");
            assert_eq!(
                decode(Framing::Chunked, &[&CHUNKED[..cut], &CHUNKED[cut..]]),
                Ok((b"Windrow".to_vec(), true)),
                "cut at {cut}"
            );
        }
    }

    #[test]
    fn hostile_chunks_are_refused() {
        for bytes in [&b"\r\n"[..], b"ffffffffffffffff\r\n", b"1\r\nab\r\n", b"g\r\n"] {
            assert_eq!(decode(Framing::Chunked, &[bytes]), Err(WireError::BadChunk), "{bytes:?}");
        }
        let endless = [b"1;".to_vec(), vec![b'x'; MAX_SKIPPED_BYTES + 1]].concat();
        assert_eq!(decode(Framing::Chunked, &[&endless]), Err(WireError::BadChunk));
    }

    #[test]
    fn no_mutation_panics_or_yields_more_than_it_was_given() {
        let mut random = fastrand::Rng::with_seed(11);
        for _ in 0..20_000 {
            let mut bytes = CHUNKED.to_vec();
            for _ in 0..random.usize(1..4) {
                let at = random.usize(..bytes.len());
                bytes[at] = random.u8(..);
            }
            if let Ok((body, _)) = decode(Framing::Chunked, &[&bytes]) {
                assert!(body.len() < bytes.len(), "seed 11: {bytes:?}");
            }
        }
    }
}
