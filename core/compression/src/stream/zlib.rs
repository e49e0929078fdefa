//! Decompression of gzip and zlib: members one after the other.

use flate2::{Decompress, FlushDecompress, Status};

use super::reserve_piece;
use crate::DecompressError;

const WINDOW_BITS: u8 = 15;

pub(super) struct Zlib {
    /// The decoder of the current member; `None` between members.
    member: Option<Decompress>,
    gzip: bool,
}

impl Zlib {
    pub(super) fn gzip() -> Self {
        Self { member: None, gzip: true }
    }

    pub(super) fn deflate() -> Self {
        Self { member: None, gzip: false }
    }

    pub(super) fn step(&mut self, input: &[u8], output: &mut Vec<u8>, limit: usize) -> Result<usize, DecompressError> {
        let mut consumed = 0;
        while output.len() < limit && (self.member.is_some() || consumed < input.len()) {
            let gzip = self.gzip;
            let member = self.member.get_or_insert_with(|| match gzip {
                true => Decompress::new_gzip(WINDOW_BITS),
                false => Decompress::new_with_window_bits(true, WINDOW_BITS),
            });
            let (start, room) = (output.len(), reserve_piece(output, limit));
            let (read, written) = (member.total_in(), member.total_out());
            output.resize(start + room, 0);
            let outcome = member.decompress(&input[consumed..], &mut output[start..], FlushDecompress::None);
            let (read, written) = ((member.total_in() - read) as usize, (member.total_out() - written) as usize);
            output.truncate(start + written);
            consumed += read;
            match outcome {
                Ok(Status::StreamEnd) => self.member = None,
                Ok(Status::Ok | Status::BufError) if read == 0 && written == 0 => break,
                Ok(_) => {}
                Err(error) => return Err(DecompressError::Corrupt(format!("zlib: {error}"))),
            }
        }
        Ok(consumed)
    }

    pub(super) fn is_whole(&self) -> bool {
        self.member.is_none()
    }
}
