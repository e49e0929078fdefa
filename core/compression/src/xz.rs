//! Compression and decompression of xz bodies.

use liblzma::stream::{Action, Check, Error, Status, Stream, CONCATENATED};

use crate::DecompressError;

/// The most memory that the decoder may use: it allocates the dictionary that a stream asks for. This covers
/// presets up to 7; the backend decides about larger ones.
const MAX_MEMORY_BYTES: u64 = 20 << 20;
const STEP_BYTES: usize = 64 << 10;
/// The preset of answers. Only errors are ever compressed as xz: a small dictionary is quickly made.
const PRESET: u32 = 0;

pub(crate) fn decompress_xz(input: &[u8], max_bytes: usize) -> Result<Vec<u8>, DecompressError> {
    let mut stream = Stream::new_stream_decoder(MAX_MEMORY_BYTES, CONCATENATED).map_err(classify)?;
    let mut output = Vec::new();
    loop {
        // One byte more than allowed, to know that there are more.
        output.reserve(STEP_BYTES.min(max_bytes - output.len() + 1));
        let rest = usize::try_from(stream.total_in()).ok().and_then(|read| input.get(read..)).unwrap_or_default();
        let status = stream.process_vec(rest, &mut output, Action::Finish).map_err(classify)?;
        if output.len() > max_bytes {
            return Err(DecompressError::TooLarge { max_bytes });
        }
        match status {
            Status::StreamEnd => return Ok(output),
            // There is room, and still nothing comes: more input would be needed.
            Status::MemNeeded if output.len() < output.capacity() => return Err(DecompressError::Truncated),
            _ => {}
        }
    }
}

fn classify(error: Error) -> DecompressError {
    match error {
        Error::MemLimit => {
            DecompressError::Unsupported("an xz stream with a dictionary of more than 16 MiB".to_owned())
        }
        Error::UnsupportedCheck | Error::Options => DecompressError::Unsupported(format!("an xz stream: {error}")),
        error => DecompressError::Corrupt(format!("xz: {error}")),
    }
}

pub(crate) fn compress_xz(input: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut stream = Stream::new_easy_encoder(PRESET, Check::Crc64)?;
    let mut output = Vec::new();
    loop {
        output.reserve(STEP_BYTES);
        let rest = usize::try_from(stream.total_in()).ok().and_then(|read| input.get(read..)).unwrap_or_default();
        if stream.process_vec(rest, &mut output, Action::Finish)? == Status::StreamEnd {
            return Ok(output);
        }
    }
}
