//! Parsing of an answer's head, line by line.
//!
//! ClickHouse sends its progress as header fields while the query runs, for hours if necessary. Progress is
//! passed on as soon as its line is complete, and not kept, so that a head of any length takes bounded
//! memory.

use std::fmt;

use bytes::Bytes;

use crate::head::{HeadError, ResponseHead};

/// The most bytes of all lines that are kept. ClickHouse sends no head that is so large.
pub(crate) const MAX_KEPT_BYTES: usize = 1 << 20;
const MAX_FIELDS: usize = 10_000;
/// The most interim answers (`100 Continue`) before the final answer.
const MAX_INTERIM_HEADS: usize = 32;
/// The most bytes that an error shows of an input that is no answer.
const MAX_TOLD_BYTES: usize = 80;
const PROGRESS: &[u8] = b"x-clickhouse-progress";

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnswerHeadError {
    /// The answer is not HTTP. The value holds the first bytes of the input.
    NotHttp(Vec<u8>),
    Head(HeadError),
    EndlessInterim,
    /// The server sent `101 Switching Protocols`, which no request asks for.
    OtherProtocol,
}

impl fmt::Display for AnswerHeadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AnswerHeadError::NotHttp(start) => {
                write!(f, "this is no HTTP answer: it begins with {:?}", String::from_utf8_lossy(start))
            }
            AnswerHeadError::Head(error) => error.tell(f, "answer"),
            AnswerHeadError::EndlessInterim => f.write_str("there is no end of interim answers"),
            AnswerHeadError::OtherProtocol => f.write_str("the server switched to another protocol"),
        }
    }
}

impl std::error::Error for AnswerHeadError {}

/// The result of reading some bytes of a head.
#[derive(Debug)]
pub struct HeadStep {
    pub consumed: usize,
    /// True if the bytes belong to an interim answer, which no caller needs.
    pub is_interim: bool,
    pub whole: Option<ResponseHead>,
}

/// Parser of one answer's head, with the interim heads before it.
#[derive(Debug)]
pub struct AnswerHeadParser {
    to_head_request: bool,
    /// The beginning of a line whose end has not come yet.
    partial: Vec<u8>,
    /// Complete lines, the status line first.
    kept: Vec<u8>,
    status: u16,
    interim_heads: usize,
}

impl AnswerHeadParser {
    /// Creates a parser. With `to_head_request`, the answer has no body, whatever it declares.
    pub fn new(to_head_request: bool) -> Self {
        AnswerHeadParser { to_head_request, partial: Vec::new(), kept: Vec::new(), status: 0, interim_heads: 0 }
    }

    /// Reads up to the end of a head, or all of the bytes. Progress is given to `on_progress`.
    ///
    /// # Errors
    /// Fails where the bytes are no HTTP answer, the head is malformed or too large, the server switches to
    /// another protocol, or too many interim answers come.
    pub fn read(&mut self, bytes: &[u8], on_progress: &mut dyn FnMut(&[u8])) -> Result<HeadStep, AnswerHeadError> {
        let mut consumed = 0;
        while let Some(length) = bytes[consumed..].iter().position(|byte| *byte == b'\n') {
            let line = &bytes[consumed..consumed + length + 1];
            consumed += line.len();
            let ends_head = if self.partial.is_empty() {
                self.line(line, on_progress)?
            } else {
                let mut whole = std::mem::take(&mut self.partial);
                whole.extend_from_slice(line);
                self.line(&whole, on_progress)?
            };
            if ends_head {
                let is_interim = self.is_interim();
                return Ok(HeadStep { consumed, is_interim, whole: self.end()? });
            }
        }
        self.check_room(self.partial.len() + bytes.len() - consumed)?;
        self.partial.extend_from_slice(&bytes[consumed..]);
        Ok(HeadStep { consumed: bytes.len(), is_interim: self.is_interim(), whole: None })
    }

    fn line(&mut self, line: &[u8], on_progress: &mut dyn FnMut(&[u8])) -> Result<bool, AnswerHeadError> {
        if self.kept.is_empty() {
            self.status = status_of(line)?;
        } else if let Some(progress) = progress_of(line) {
            on_progress(progress);
            return Ok(false);
        }
        self.check_room(line.len())?;
        self.kept.extend_from_slice(line);
        Ok(matches!(line, b"\r\n" | b"\n"))
    }

    fn check_room(&self, more: usize) -> Result<(), AnswerHeadError> {
        match self.kept.len() + more {
            ..=MAX_KEPT_BYTES => Ok(()),
            _ => Err(AnswerHeadError::Head(HeadError::TooLarge)),
        }
    }

    fn is_interim(&self) -> bool {
        (100..200).contains(&self.status)
    }

    fn end(&mut self) -> Result<Option<ResponseHead>, AnswerHeadError> {
        let raw = Bytes::from(std::mem::take(&mut self.kept));
        match std::mem::take(&mut self.status) {
            101 => Err(AnswerHeadError::OtherProtocol),
            100..200 if self.interim_heads == MAX_INTERIM_HEADS => Err(AnswerHeadError::EndlessInterim),
            100..200 => {
                self.interim_heads += 1;
                Ok(None)
            }
            _ => ResponseHead::parse(raw, MAX_FIELDS, self.to_head_request).map(Some).map_err(AnswerHeadError::Head),
        }
    }
}

/// Returns the status of a status line. It is checked at once, because a peer that speaks another protocol
/// may wait for the next bytes of this side.
pub(crate) fn status_of(line: &[u8]) -> Result<u16, AnswerHeadError> {
    let mut response = httparse::Response::new(&mut []);
    let status = response.parse(line).ok().and(response.code).filter(|status| *status >= 100);
    status.ok_or_else(|| AnswerHeadError::NotHttp(line.trim_ascii_end().iter().take(MAX_TOLD_BYTES).copied().collect()))
}

/// Returns the value of a field that reports progress.
fn progress_of(line: &[u8]) -> Option<&[u8]> {
    let (name, value) = line.split_at_checked(PROGRESS.len())?;
    let value = value.strip_prefix(b":").filter(|_| name.eq_ignore_ascii_case(PROGRESS))?.trim_ascii();
    (!value.iter().any(u8::is_ascii_control)).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &[u8] = b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nX-ClickHouse-Progress: {}\r\n\
        A: b\nx-clickhouse-progress:{\"a\":1}\r\nContent-Length: 4\r\n\r\nbody";

    /// Fields, progress, and the number of bytes behind the head.
    type Read = (Vec<(String, Vec<u8>)>, Vec<String>, usize);

    fn read(bytes: &[u8], piece: usize) -> Result<Option<Read>, AnswerHeadError> {
        let (mut parser, mut progress, mut at) = (AnswerHeadParser::new(false), Vec::new(), 0);
        while at < bytes.len() {
            let rest = &bytes[at..bytes.len().min(at + piece)];
            let step = parser.read(rest, &mut |text| progress.push(String::from_utf8_lossy(text).into_owned()))?;
            assert!(step.consumed > 0 && step.consumed <= rest.len());
            at += step.consumed;
            if let Some(head) = step.whole {
                let fields = head.fields().map(|(name, value)| (name.to_string(), value.to_vec())).collect();
                return Ok(Some((fields, progress, bytes.len() - at)));
            }
        }
        Ok(None)
    }

    #[test]
    fn a_head_is_the_same_however_it_is_cut_and_its_progress_is_not_kept() {
        for piece in 1..=HEAD.len() {
            let (fields, progress, left) = read(HEAD, piece).expect("a head").expect("all of it");
            assert_eq!(fields, [("A".into(), b"b".to_vec()), ("Content-Length".into(), b"4".to_vec())]);
            assert_eq!((progress, left), (vec!["{}".to_string(), "{\"a\":1}".to_string()], 4), "{piece}");
        }
    }

    #[test]
    fn every_truncation_is_seen_as_incomplete() {
        for length in 0..HEAD.len() - 4 {
            assert_eq!(read(&HEAD[..length], 7), Ok(None), "cut after {length} bytes");
        }
    }

    #[test]
    fn mutated_heads_never_panic() {
        let mut random = fastrand::Rng::with_seed(11);
        for _ in 0..20_000 {
            let mut bytes = HEAD.to_vec();
            for _ in 0..random.usize(1..4) {
                let at = random.usize(..bytes.len());
                bytes[at] = random.u8(..);
            }
            let whole = read(&bytes, usize::MAX >> 1);
            assert_eq!(read(&bytes, random.usize(1..40)).is_ok(), whole.is_ok());
        }
    }

    #[test]
    fn what_is_no_answer_is_told_at_its_first_line() {
        let error = read(b"SSH-2.0-x\r\n", 3).unwrap_err();
        assert_eq!(error.to_string(), "this is no HTTP answer: it begins with \"SSH-2.0-x\"");
        assert_eq!(read(b"HTTP/1.1 101 Switching\r\n\r\n", 5), Err(AnswerHeadError::OtherProtocol));
        let lengths = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n";
        let error = read(lengths, 5).unwrap_err().to_string();
        assert_eq!(error, "the answer gives its length in a way that could be understood in two ways");
    }

    #[test]
    fn what_has_no_end_is_given_up() {
        let too_large = Err(AnswerHeadError::Head(HeadError::TooLarge));
        assert_eq!(read(&vec![b'x'; MAX_KEPT_BYTES + 1], 1000), too_large);
        assert_eq!(read(&[b"HTTP/1.1 200 OK\r\n".as_slice(), &b"A: b\r\n".repeat(200_000)].concat(), 999), too_large);
        let interim = b"HTTP/1.1 100 Continue\r\n\r\n".repeat(MAX_INTERIM_HEADS + 1);
        assert_eq!(read(&interim, 999), Err(AnswerHeadError::EndlessInterim));
        let progress = [b"HTTP/1.1 200 OK\r\n".as_slice(), &b"X-ClickHouse-Progress: {}\r\n".repeat(200_000)].concat();
        assert_eq!(read(&progress, 999), Ok(None));
    }
}
