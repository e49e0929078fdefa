//! Finds ClickHouse's exception at the end of an answer that had begun with 200.
//!
//! The exception is written as `__exception__`, the tag that the answer's head gave, the text, its length
//! with the tag once more, and `__exception__`, each on a line of its own.

use windrow_clickhouse::Exception;

/// Bytes of an answer's end that are kept. ClickHouse cuts texts at 16 KiB.
const TAIL_BYTES: usize = 32 << 10;
const MARK: &str = "__exception__";

pub(super) struct Tail {
    tag: Option<String>,
    bytes: Vec<u8>,
}

impl Tail {
    pub(super) fn new(tag: Option<&str>) -> Tail {
        Tail { tag: tag.map(str::to_owned), bytes: Vec::new() }
    }

    pub(super) fn keep(&mut self, bytes: &[u8]) {
        let new = &bytes[bytes.len().saturating_sub(TAIL_BYTES)..];
        let surplus = (self.bytes.len() + new.len()).saturating_sub(TAIL_BYTES);
        self.bytes.drain(..surplus.min(self.bytes.len()));
        self.bytes.extend_from_slice(new);
    }

    pub(super) fn exception(&self) -> Option<Exception> {
        let tag = self.tag.as_deref()?;
        let begin = format!("{MARK}\r\n{tag}\r\n");
        let text = &self.bytes[find_last(&self.bytes, begin.as_bytes())? + begin.len()..];
        let end = find_last(text, format!(" {tag}\r\n{MARK}").as_bytes()).unwrap_or(text.len());
        // The length stands on the last line.
        let end = text[..end].iter().rposition(|&byte| byte == b'\n').unwrap_or(end);
        Exception::parse(String::from_utf8_lossy(&text[..end]).trim().as_bytes())
    }
}

fn find_last(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).rposition(|window| window == needle)
}

#[cfg(test)]
mod tests {
    use windrow_clickhouse::ErrorCode;

    use super::*;

    const BODY: &str =
        "rows\r\n__exception__\r\nabcd\r\nCode: 395. DB::Exception: no more. (X) (version 26.7.2.1)\n57 abcd\r\n\
                        __exception__\r\n";

    #[test]
    fn an_exception_is_found_however_the_body_came() {
        for size in 1..BODY.len() {
            let mut tail = Tail::new(Some("abcd"));
            tail.keep(&vec![b'x'; TAIL_BYTES]);
            BODY.as_bytes().chunks(size).for_each(|part| tail.keep(part));
            let found = tail.exception().unwrap();
            assert_eq!(
                (found.code, found.line.ends_with("(version 26.7.2.1)")),
                (ErrorCode::FUNCTION_THROW_IF_VALUE_IS_NON_ZERO, true),
                "{}",
                found.line
            );
            assert!(tail.bytes.len() <= TAIL_BYTES);
        }
    }

    #[test]
    fn rows_that_look_like_one_are_none() {
        let exception = |tag: Option<&str>| {
            let mut tail = Tail::new(tag);
            tail.keep(BODY.as_bytes());
            tail.exception()
        };
        assert_eq!(exception(None), None);
        assert_eq!(exception(Some("efgh")), None);
    }
}
