//! The gzip format: members of a head, a deflated stream and a trailer.
//!
//! The inflating state is the same for all batches, since making it costs more than a small batch does. The
//! format's checksums are not verified: the batch has a checksum of its own, over everything.

use flate2::{Decompress as Inflater, FlushDecompress, Status};

use crate::batch::output::{Failure, Output};

const MAGIC: [u8; 2] = [0x1F, 0x8B];
const DEFLATE: u8 = 8;
/// Bytes of magic number, method, flags, time (4), extra flags and system.
const HEAD_BYTES: usize = 10;
/// Bytes of CRC-32 and size.
const TRAILER_BYTES: usize = 8;

const HEAD_CHECKSUM: u8 = 0b0000_0010;
const EXTRA: u8 = 0b0000_0100;
const NAME: u8 = 0b0000_1000;
const COMMENT: u8 = 0b0001_0000;
const RESERVED: u8 = 0b1110_0000;

/// Decompresses all members of the input, which may follow each other.
pub(crate) fn decompress(input: &[u8], inflater: &mut Inflater, output: &mut Output) -> Result<(), Failure> {
    let mut rest = input;
    loop {
        rest = behind_head(rest)?;
        let without_zlib_head = false;
        inflater.reset(without_zlib_head);
        rest = inflate(rest, inflater, output)?;
        rest = rest.get(TRAILER_BYTES..).ok_or(Failure::CUT)?;
        if rest.is_empty() {
            return Ok(());
        }
    }
}

fn behind_head(input: &[u8]) -> Result<&[u8], Failure> {
    let (head, mut rest) = input.split_first_chunk::<HEAD_BYTES>().ok_or(Failure::CUT)?;
    let [magic_1, magic_2, method, flags, ..] = *head;
    if [magic_1, magic_2] != MAGIC || method != DEFLATE || flags & RESERVED != 0 {
        return Err(Failure::damaged("this is no gzip"));
    }
    if flags & EXTRA != 0 {
        let (size, behind) = rest.split_first_chunk().ok_or(Failure::CUT)?;
        rest = behind.get(u16::from_le_bytes(*size).into()..).ok_or(Failure::CUT)?;
    }
    for text in [NAME, COMMENT] {
        if flags & text != 0 {
            let end = rest.iter().position(|byte| *byte == 0).ok_or(Failure::CUT)?;
            rest = &rest[end + 1..];
        }
    }
    let checksum_bytes = if flags & HEAD_CHECKSUM != 0 { 2 } else { 0 };
    rest.get(checksum_bytes..).ok_or(Failure::CUT)
}

/// Inflates one stream and returns the bytes behind it.
fn inflate<'i>(input: &'i [u8], inflater: &mut Inflater, output: &mut Output) -> Result<&'i [u8], Failure> {
    let mut rest = input;
    loop {
        let (read_before, written_before) = (inflater.total_in(), inflater.total_out());
        // Where the output is full, the stream may be at its end all the same.
        let (mut one_more, is_full) = ([0], output.is_full());
        let room = if is_full { &mut one_more[..] } else { output.some_room()? };
        let status = inflater.decompress(rest, room, FlushDecompress::None).map_err(Failure::damaged)?;
        let (read, written) = (inflater.total_in() - read_before, inflater.total_out() - written_before);
        rest = &rest[read as usize..];
        if is_full && written > 0 {
            return Err(Failure::TooLarge);
        }
        output.advance(written as usize);
        match status {
            Status::StreamEnd => return Ok(rest),
            _ if read == 0 && written == 0 => return Err(Failure::CUT),
            _ => {}
        }
    }
}
