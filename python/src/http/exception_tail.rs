//! The exception of ClickHouse in the tail of a body whose head had already said 200.
//!
//! Since 25.11 the exception stands there as `__exception__`, the tag of `X-ClickHouse-Exception-Tag`, the
//! message, its length with the tag once more, and `__exception__`, each on a line of its own. Older servers
//! write the bare message.

/// The bytes of a body's end that are kept. ClickHouse cuts messages at 16 KiB.
const TAIL_BYTES: usize = 32 << 10;
const MARK: &str = "__exception__";

pub struct Tail {
    tag: Option<String>,
    bytes: Vec<u8>,
}

impl Tail {
    pub fn new(tag: Option<&str>) -> Self {
        Self { tag: tag.map(str::to_owned), bytes: Vec::new() }
    }

    /// Keeps the end of the bytes that were given out.
    pub fn keep(&mut self, bytes: &[u8]) {
        let new = &bytes[bytes.len().saturating_sub(TAIL_BYTES)..];
        let old = TAIL_BYTES - new.len();
        if self.bytes.len() > old {
            self.bytes.drain(..self.bytes.len() - old);
        }
        self.bytes.extend_from_slice(new);
    }

    pub fn exception_text(&self) -> Option<String> {
        let text = match &self.tag {
            Some(tag) => self.tagged(tag)?,
            None => self.bare()?,
        };
        let text = String::from_utf8_lossy(text).trim().to_owned();
        (!text.is_empty()).then_some(text)
    }

    fn tagged(&self, tag: &str) -> Option<&[u8]> {
        let begin = format!("{MARK}\r\n{tag}\r\n");
        let start = find_last(&self.bytes, begin.as_bytes())? + begin.len();
        let message = &self.bytes[start..];
        let end = format!(" {tag}\r\n{MARK}");
        let Some(end) = find_last(message, end.as_bytes()) else { return Some(message) };
        let line = message[..end].iter().rposition(|byte| *byte == b'\n').unwrap_or(end);
        Some(&message[..line])
    }

    fn bare(&self) -> Option<&[u8]> {
        let mut end = self.bytes.len();
        loop {
            let start = find_last(&self.bytes[..end], b"Code: ")?;
            let rest = &self.bytes[start + 6..];
            let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
            if digits > 0 && rest[digits..].starts_with(b". DB::") {
                return Some(&self.bytes[start..]);
            }
            end = start;
        }
    }
}

fn find_last(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).rposition(|window| window == needle)
}
