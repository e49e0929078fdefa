//! The rule that says where a message's body ends.

use crate::chunked::{ChunkedError, ChunkedScanner, Scanned};

/// The way in which a message shows the end of its body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyFraming {
    None,
    Length(u64),
    Chunked,
    /// The body ends with the connection. Only answers have this.
    UntilClose,
}

/// The rest of a message's body. The scanner sees bytes and says which of them are data.
#[derive(Debug)]
pub enum BodyScanner {
    Done,
    Length(u64),
    Chunked(ChunkedScanner),
    UntilClose,
}

impl BodyScanner {
    pub fn new(framing: BodyFraming) -> BodyScanner {
        match framing {
            BodyFraming::None | BodyFraming::Length(0) => BodyScanner::Done,
            BodyFraming::Length(length) => BodyScanner::Length(length),
            BodyFraming::Chunked => BodyScanner::Chunked(ChunkedScanner::default()),
            BodyFraming::UntilClose => BodyScanner::UntilClose,
        }
    }

    pub fn is_done(&self) -> bool {
        matches!(self, BodyScanner::Done)
    }

    /// Walks up to the end of the next run of data, the end of the message, or the end of `bytes`.
    ///
    /// # Errors
    /// Fails where the chunks are malformed.
    pub fn step(&mut self, bytes: &[u8]) -> Result<Scanned, ChunkedError> {
        let all_data = |length: usize| Scanned { consumed: length, data: 0..length };
        Ok(match self {
            BodyScanner::Done => all_data(0),
            BodyScanner::UntilClose => all_data(bytes.len()),
            BodyScanner::Length(remaining) => {
                let length = (bytes.len() as u64).min(*remaining) as usize;
                *remaining -= length as u64;
                if *remaining == 0 {
                    *self = BodyScanner::Done;
                }
                all_data(length)
            }
            BodyScanner::Chunked(scanner) => {
                let scanned = scanner.step(bytes)?;
                if scanner.is_done() {
                    *self = BodyScanner::Done;
                }
                scanned
            }
        })
    }
}
