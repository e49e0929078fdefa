//! Where a body ends: by its length, by chunks, by the end of the connection, or because there is none.

use super::head::Head;

/// A chunk's size line with its extensions, and all trailer lines together.
const MAX_LINE_BYTES: usize = 4 << 10;
const MAX_TRAILER_BYTES: usize = 64 << 10;

pub enum Framing {
    Length { left: u64 },
    Chunked(Chunks),
    UntilClose,
}

/// Bytes of the body at the start of an input, if there are any, and how far the input was read.
pub struct FramingStep {
    pub body: std::ops::Range<usize>,
    pub consumed: usize,
    pub ended: bool,
}

impl Framing {
    /// How the body of this answer is framed.
    pub fn of(head: &Head, is_answer_to_head: bool) -> Result<Self, String> {
        if is_answer_to_head || matches!(head.status, 204 | 304) {
            return Ok(Self::Length { left: 0 });
        }
        match head.field("transfer-encoding").map(str::to_ascii_lowercase).as_deref() {
            None | Some("identity") => {}
            Some("chunked") => return Ok(Self::Chunked(Chunks::default())),
            Some(other) => return Err(format!("the answer's transfer encoding is unknown: {other:?}")),
        }
        let Some(length) = head.field("content-length") else { return Ok(Self::UntilClose) };
        let wrong = || format!("the answer's length is no number: {length:?}");
        // A field that came twice is joined by a comma; it may say the same twice.
        let mut lengths = length.split(',').map(str::trim);
        let first = lengths.next().unwrap_or_default();
        if lengths.any(|other| other != first) || first.is_empty() || !first.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(wrong());
        }
        Ok(Self::Length { left: first.parse().map_err(|_| wrong())? })
    }

    pub fn is_empty(&self) -> bool {
        matches!(self, Self::Length { left: 0 })
    }

    /// Goes up to the next run of body bytes, which is in `body`.
    pub fn read(&mut self, input: &[u8]) -> Result<FramingStep, String> {
        match self {
            Self::UntilClose => Ok(FramingStep { body: 0..input.len(), consumed: input.len(), ended: false }),
            Self::Length { left } => {
                let count = usize::try_from(*left).unwrap_or(usize::MAX).min(input.len());
                *left -= count as u64;
                Ok(FramingStep { body: 0..count, consumed: count, ended: *left == 0 })
            }
            Self::Chunked(chunks) => chunks.read(input),
        }
    }
}

#[derive(Default)]
pub struct Chunks {
    at: ChunkAt,
    line: Vec<u8>,
    trailer_bytes: usize,
}

#[derive(Default, Clone, Copy)]
enum ChunkAt {
    #[default]
    Size,
    Data {
        left: u64,
    },
    DataEnd,
    Trailer,
}

impl Chunks {
    fn read(&mut self, input: &[u8]) -> Result<FramingStep, String> {
        let mut consumed = 0;
        loop {
            if let ChunkAt::Data { left } = self.at {
                let count = usize::try_from(left).unwrap_or(usize::MAX).min(input.len() - consumed);
                let left = left - count as u64;
                self.at = if left == 0 { ChunkAt::DataEnd } else { ChunkAt::Data { left } };
                let body = consumed..consumed + count;
                return Ok(FramingStep { consumed: body.end, body, ended: false });
            }
            let rest = &input[consumed..];
            let Some(length) = rest.iter().take(MAX_LINE_BYTES).position(|byte| *byte == b'\n') else {
                self.keep(rest)?;
                return Ok(FramingStep { body: 0..0, consumed: input.len(), ended: false });
            };
            self.keep(&rest[..length])?;
            consumed += length + 1;
            let line = std::mem::take(&mut self.line);
            if self.line_ends_body(line.strip_suffix(b"\r").unwrap_or(&line))? {
                return Ok(FramingStep { body: 0..0, consumed, ended: true });
            }
        }
    }

    fn keep(&mut self, piece: &[u8]) -> Result<(), String> {
        if self.line.len() + piece.len() > MAX_LINE_BYTES {
            return Err("the size of a chunk is not a line".to_owned());
        }
        self.line.extend_from_slice(piece);
        Ok(())
    }

    fn line_ends_body(&mut self, line: &[u8]) -> Result<bool, String> {
        match self.at {
            ChunkAt::Size => {
                self.at = match chunk_size(line)? {
                    0 => ChunkAt::Trailer,
                    left => ChunkAt::Data { left },
                }
            }
            ChunkAt::DataEnd if line.is_empty() => self.at = ChunkAt::Size,
            ChunkAt::DataEnd => return Err("a chunk is longer than its size says".to_owned()),
            ChunkAt::Trailer if line.is_empty() => return Ok(true),
            ChunkAt::Trailer => {
                self.trailer_bytes += line.len();
                if self.trailer_bytes > MAX_TRAILER_BYTES {
                    return Err("there is no end of trailers".to_owned());
                }
            }
            ChunkAt::Data { .. } => {}
        }
        Ok(false)
    }
}

fn chunk_size(line: &[u8]) -> Result<u64, String> {
    let digits = line.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    let wrong =
        || format!("the size of a chunk is no number: {:?}", String::from_utf8_lossy(&digits[..digits.len().min(40)]));
    // 15 digits can't overflow, and are more than any server has.
    if digits.is_empty() || digits.len() > 15 || !digits.iter().all(u8::is_ascii_hexdigit) {
        return Err(wrong());
    }
    let text = std::str::from_utf8(digits).map_err(|_| wrong())?;
    u64::from_str_radix(text, 16).map_err(|_| wrong())
}
