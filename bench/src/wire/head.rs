//! The head of an answer: the status, how long the body is, and whether the connection stays open.

use super::{Framing, WireError};

const MAX_HEAD_BYTES: usize = 64 << 10;
const MAX_HEADERS: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    pub status: u16,
    pub framing: Framing,
    pub keep_alive: bool,
    /// How many bytes of the input the head took; the body begins there.
    pub head_bytes: usize,
}

/// `None` when the head is not complete yet.
pub fn parse_head(bytes: &[u8]) -> Result<Option<Head>, WireError> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut response = httparse::Response::new(&mut headers);
    let head_bytes = match response.parse(bytes) {
        Ok(httparse::Status::Complete(head_bytes)) => head_bytes,
        Ok(httparse::Status::Partial) if bytes.len() > MAX_HEAD_BYTES => return Err(WireError::HeadTooLarge),
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(httparse::Error::TooManyHeaders) => return Err(WireError::HeadTooLarge),
        Err(_) => return Err(WireError::BadHead),
    };
    let status = response.code.ok_or(WireError::BadHead)?;
    let mut head = Head { status, framing: Framing::UntilClose, keep_alive: response.version == Some(1), head_bytes };
    for header in response.headers.iter() {
        read_header(&mut head, header)?;
    }
    if status == 204 || status == 304 {
        head.framing = Framing::Length(0);
    }
    if head.framing == Framing::UntilClose {
        head.keep_alive = false;
    }
    Ok(Some(head))
}

fn read_header(head: &mut Head, header: &httparse::Header<'_>) -> Result<(), WireError> {
    if header.name.eq_ignore_ascii_case("content-length") {
        if head.framing != Framing::Chunked {
            head.framing = Framing::Length(decimal(header.value).ok_or(WireError::BadContentLength)?);
        }
    } else if header.name.eq_ignore_ascii_case("transfer-encoding") {
        head.framing = Framing::Chunked;
    } else if header.name.eq_ignore_ascii_case("connection") {
        head.keep_alive = !header.value.eq_ignore_ascii_case(b"close");
    }
    Ok(())
}

fn decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_length_chunks_and_keep_alive() {
        let head = parse_head(b"HTTP/1.1 200 OK\r\ncontent-length: 12\r\n\r\nrest").unwrap().unwrap();
        assert_eq!(head, Head { status: 200, framing: Framing::Length(12), keep_alive: true, head_bytes: 39 });
        let head =
            parse_head(b"HTTP/1.1 503 x\r\nTransfer-Encoding: chunked\r\nConnection: Close\r\n\r\n").unwrap().unwrap();
        assert_eq!((head.status, head.framing, head.keep_alive), (503, Framing::Chunked, false));
    }

    #[test]
    fn an_answer_without_a_length_ends_with_the_connection() {
        let head = parse_head(b"HTTP/1.1 200 OK\r\nConnection: keep-alive\r\n\r\n").unwrap().unwrap();
        assert_eq!((head.framing, head.keep_alive), (Framing::UntilClose, false));
    }

    #[test]
    fn refuses_lengths_that_are_no_numbers() {
        for value in ["-1", "+1", "", "1 2", "99999999999999999999999"] {
            let text = format!("HTTP/1.1 200 OK\r\nContent-Length: {value}\r\n\r\n");
            assert_eq!(parse_head(text.as_bytes()), Err(WireError::BadContentLength), "{value:?}");
        }
    }

    #[test]
    fn a_head_has_a_ceiling() {
        let endless = format!("HTTP/1.1 200 OK\r\nx: {}", "y".repeat(MAX_HEAD_BYTES));
        assert_eq!(parse_head(endless.as_bytes()), Err(WireError::HeadTooLarge));
        let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "a: b\r\n".repeat(MAX_HEADERS + 1));
        assert_eq!(parse_head(many.as_bytes()), Err(WireError::HeadTooLarge));
    }

    #[test]
    fn every_truncation_asks_for_more_and_no_mutation_panics() {
        let whole = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: keep-alive\r\n\r\n";
        for end in 0..whole.len() {
            assert_eq!(parse_head(&whole[..end]), Ok(None), "{end} bytes");
        }
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..20_000 {
            let mut bytes = whole.to_vec();
            for _ in 0..random.usize(1..4) {
                let at = random.usize(..bytes.len());
                bytes[at] = random.u8(..);
            }
            if let Ok(Some(head)) = parse_head(&bytes) {
                assert!(head.head_bytes <= bytes.len(), "seed 7: {bytes:?}");
            }
        }
    }
}
