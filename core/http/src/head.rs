use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use crate::framing::BodyFraming;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Method {
    Get,
    Head,
    Post,
    Put,
    Delete,
    Options,
    Other(String),
}

impl Method {
    fn parse(name: &str) -> Method {
        match name {
            "GET" => Method::Get,
            "HEAD" => Method::Head,
            "POST" => Method::Post,
            "PUT" => Method::Put,
            "DELETE" => Method::Delete,
            "OPTIONS" => Method::Options,
            other => Method::Other(other.to_owned()),
        }
    }

    pub fn as_str(&self) -> &str {
        match self {
            Method::Get => "GET",
            Method::Head => "HEAD",
            Method::Post => "POST",
            Method::Put => "PUT",
            Method::Delete => "DELETE",
            Method::Options => "OPTIONS",
            Method::Other(name) => name,
        }
    }
}

/// The reason why a head can't be used. Each reason has a status for the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeadError {
    Malformed,
    TooLarge,
    /// The head is long, and other long heads take all the memory that there is for them.
    NoRoom,
    TooManyFields,
    TooManyParameters,
    /// `Content-Length` contradicts itself or `Transfer-Encoding`, or a client of HTTP/1.0 sends
    /// `Transfer-Encoding`: two readers could see two different messages.
    AmbiguousLength,
    UnsupportedTransferEncoding,
}

impl HeadError {
    pub fn status(self) -> u16 {
        match self {
            HeadError::Malformed | HeadError::AmbiguousLength => 400,
            HeadError::TooLarge | HeadError::TooManyFields | HeadError::TooManyParameters => 431,
            HeadError::NoRoom => 503,
            HeadError::UnsupportedTransferEncoding => 501,
        }
    }
}

impl HeadError {
    /// Writes the error's text about a message: a request, or an answer.
    pub(crate) fn tell(self, f: &mut fmt::Formatter<'_>, message: &str) -> fmt::Result {
        match self {
            HeadError::Malformed => write!(f, "the {message} is not valid HTTP/1.1"),
            HeadError::TooLarge => write!(f, "the {message}'s head is too large"),
            HeadError::NoRoom => f.write_str(
                "too many long requests' heads come at once: put the statement into the body, or try again later",
            ),
            HeadError::TooManyFields => write!(f, "the {message} has too many header fields"),
            HeadError::TooManyParameters => write!(f, "the {message}'s URL has too many parameters"),
            HeadError::AmbiguousLength => {
                write!(f, "the {message} gives its length in a way that could be understood in two ways")
            }
            HeadError::UnsupportedTransferEncoding => f.write_str("the only Transfer-Encoding understood is chunked"),
        }
    }
}

impl fmt::Display for HeadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.tell(f, "request")
    }
}

impl std::error::Error for HeadError {}

#[derive(Debug, Clone)]
struct FieldSpan {
    name: Range<u32>,
    value: Range<u32>,
}

/// The fields of a head, as spans of its bytes.
#[derive(Debug, Clone)]
struct Fields {
    raw: Bytes,
    /// Spans of the fields. They are shared, so that a head that comes again is cheap to clone.
    spans: Arc<[FieldSpan]>,
}

impl Fields {
    fn new(raw: Bytes, parsed: &[httparse::Header<'_>]) -> Fields {
        let base = raw.as_ptr() as usize;
        let span = |bytes: &[u8]| {
            let start = (bytes.as_ptr() as usize - base) as u32;
            start..start + bytes.len() as u32
        };
        let spans = parsed
            .iter()
            .map(|field| FieldSpan { name: span(field.name.as_bytes()), value: span(trimmed(field.value)) })
            .collect();
        Fields { raw, spans }
    }

    fn bytes(&self, span: &Range<u32>) -> &[u8] {
        &self.raw[span.start as usize..span.end as usize]
    }

    fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.spans
            .iter()
            .map(|span| (std::str::from_utf8(self.bytes(&span.name)).unwrap_or(""), self.bytes(&span.value)))
    }

    fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        self.spans
            .iter()
            .filter(move |span| self.bytes(&span.name).eq_ignore_ascii_case(name.as_bytes()))
            .map(|span| self.bytes(&span.value))
    }

    fn get(&self, name: &str) -> Option<&[u8]> {
        self.spans
            .iter()
            .find(|span| self.bytes(&span.name).eq_ignore_ascii_case(name.as_bytes()))
            .map(|span| self.bytes(&span.value))
    }

    /// Says whether a comma-separated field such as `Connection` lists `token`.
    fn lists(&self, name: &str, token: &str) -> bool {
        self.all(name)
            .any(|value| value.split(|&b| b == b',').any(|t| trimmed(t).eq_ignore_ascii_case(token.as_bytes())))
    }

    fn declared_framing(&self) -> Result<Option<BodyFraming>, HeadError> {
        let mut lengths = self.all("content-length");
        let length = lengths.next().map(parse_length).transpose()?;
        for other in lengths {
            if Some(parse_length(other)?) != length {
                return Err(HeadError::AmbiguousLength);
            }
        }
        let mut encodings = self.all("transfer-encoding");
        let Some(encoding) = encodings.next() else { return Ok(length.map(BodyFraming::Length)) };
        if encodings.next().is_some() || !encoding.eq_ignore_ascii_case(b"chunked") {
            return Err(HeadError::UnsupportedTransferEncoding);
        }
        match length {
            Some(_) => Err(HeadError::AmbiguousLength),
            None => Ok(Some(BodyFraming::Chunked)),
        }
    }

    fn keep_alive(&self, version_minor: u8) -> bool {
        match version_minor {
            0 => self.lists("connection", "keep-alive"),
            _ => !self.lists("connection", "close"),
        }
    }
}

fn trimmed(bytes: &[u8]) -> &[u8] {
    bytes.trim_ascii()
}

fn parse_length(value: &[u8]) -> Result<u64, HeadError> {
    // `str::parse` would take a leading plus sign, which other readers of the same message may not.
    if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
        return Err(HeadError::AmbiguousLength);
    }
    std::str::from_utf8(value).ok().and_then(|digits| digits.parse().ok()).ok_or(HeadError::AmbiguousLength)
}

/// The number of fields that have room on the stack, enough for ordinary messages. Messages with more use the
/// heap.
const FIELDS_ON_STACK: usize = 48;

#[derive(Debug, Clone)]
pub struct RequestHead {
    method: Method,
    target: Range<u32>,
    version_minor: u8,
    framing: BodyFraming,
    fields: Fields,
}

impl RequestHead {
    /// Parses a complete head, with its blank line. It may have `max_fields` fields, and as many parameters
    /// in its URL.
    ///
    /// # Errors
    /// Fails where the head is malformed or incomplete, has too many fields or parameters, or its length is
    /// ambiguous.
    pub fn parse(raw: Bytes, max_fields: usize) -> Result<RequestHead, HeadError> {
        let mut on_stack = [httparse::EMPTY_HEADER; FIELDS_ON_STACK];
        let head = match Self::parse_into(&raw, &mut on_stack) {
            Err(HeadError::TooManyFields) if max_fields > FIELDS_ON_STACK => {
                Self::parse_into(&raw, &mut vec![httparse::EMPTY_HEADER; max_fields])
            }
            result => result,
        }?;
        match head.target().bytes().filter(|&byte| byte == b'&').count() < max_fields {
            true => Ok(head),
            false => Err(HeadError::TooManyParameters),
        }
    }

    fn parse_into<'a>(raw: &'a Bytes, room: &mut [httparse::Header<'a>]) -> Result<RequestHead, HeadError> {
        let mut request = httparse::Request::new(room);
        if request.parse(raw).map_err(parse_error)?.is_partial() {
            return Err(HeadError::Malformed);
        }
        let (Some(method), Some(path), Some(version)) = (request.method, request.path, request.version) else {
            return Err(HeadError::Malformed);
        };
        let start = (path.as_ptr() as usize - raw.as_ptr() as usize) as u32;
        let fields = Fields::new(raw.clone(), request.headers);
        let framing = fields.declared_framing()?.unwrap_or(BodyFraming::None);
        // RFC 9112, section 6.1: whoever passed it on may not know the field, and have seen no body.
        if version == 0 && framing == BodyFraming::Chunked {
            return Err(HeadError::AmbiguousLength);
        }
        Ok(RequestHead {
            method: Method::parse(method),
            target: start..start + path.len() as u32,
            version_minor: version,
            framing,
            fields,
        })
    }

    pub fn method(&self) -> &Method {
        &self.method
    }

    /// Returns the path and the query as they came.
    pub fn target(&self) -> &str {
        std::str::from_utf8(self.fields.bytes(&self.target)).unwrap_or("")
    }

    pub fn version_minor(&self) -> u8 {
        self.version_minor
    }

    pub fn framing(&self) -> BodyFraming {
        self.framing
    }

    pub fn field(&self, name: &str) -> Option<&[u8]> {
        self.fields.get(name)
    }

    /// Returns a field that has to be text; `None` also where its value is not UTF-8.
    pub fn field_str(&self, name: &str) -> Option<&str> {
        self.field(name).and_then(|value| std::str::from_utf8(value).ok())
    }

    pub fn fields(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.fields.iter()
    }

    pub fn expects_continue(&self) -> bool {
        self.version_minor > 0 && self.fields.lists("expect", "100-continue")
    }

    pub fn keep_alive(&self) -> bool {
        self.fields.keep_alive(self.version_minor)
    }

    /// Returns the bytes of the whole head: requests with the same bytes differ in their bodies only.
    pub fn raw(&self) -> &Bytes {
        &self.fields.raw
    }

    /// Says whether both are one head that came again on the same connection. That is cheaper than comparing
    /// the bytes; two heads of equal bytes from different connections are not the same.
    pub fn is_same(&self, other: &RequestHead) -> bool {
        Arc::ptr_eq(&self.fields.spans, &other.fields.spans)
    }
}

#[derive(Debug, Clone)]
pub struct ResponseHead {
    status: u16,
    framing: BodyFraming,
    keep_alive: bool,
    fields: Fields,
}

impl ResponseHead {
    /// Parses a complete head, with its blank line. With `to_head_request`, the answer has no body, whatever
    /// it declares.
    ///
    /// # Errors
    /// Fails where the head is malformed or incomplete, has too many fields, or its length is ambiguous.
    pub fn parse(raw: Bytes, max_fields: usize, to_head_request: bool) -> Result<ResponseHead, HeadError> {
        let mut room = vec![httparse::EMPTY_HEADER; raw.iter().filter(|&&b| b == b'\n').count().min(max_fields)];
        let mut response = httparse::Response::new(&mut room);
        if response.parse(&raw).map_err(parse_error)?.is_partial() {
            return Err(HeadError::Malformed);
        }
        let (Some(status), Some(version)) = (response.code, response.version) else { return Err(HeadError::Malformed) };
        // It would pass for one that announces the answer, which never comes.
        if status < 100 {
            return Err(HeadError::Malformed);
        }
        let fields = Fields::new(raw.clone(), response.headers);
        let bodiless = to_head_request || status < 200 || status == 204 || status == 304;
        let framing = match fields.declared_framing()? {
            _ if bodiless => BodyFraming::None,
            Some(framing) => framing,
            None => BodyFraming::UntilClose,
        };
        let keep_alive = framing != BodyFraming::UntilClose && fields.keep_alive(version);
        Ok(ResponseHead { status, framing, keep_alive, fields })
    }

    pub fn status(&self) -> u16 {
        self.status
    }

    pub fn framing(&self) -> BodyFraming {
        self.framing
    }

    pub fn keep_alive(&self) -> bool {
        self.keep_alive
    }

    pub fn field(&self, name: &str) -> Option<&[u8]> {
        self.fields.get(name)
    }

    pub fn field_str(&self, name: &str) -> Option<&str> {
        self.field(name).and_then(|value| std::str::from_utf8(value).ok())
    }

    pub fn fields(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.fields.iter()
    }
}

fn parse_error(error: httparse::Error) -> HeadError {
    match error {
        httparse::Error::TooManyHeaders => HeadError::TooManyFields,
        _ => HeadError::Malformed,
    }
}

/// Searches for the blank line that ends a head. `from` is the place where the last search stopped, so that a
/// slow sender does not cause the same bytes to be read again and again.
pub(crate) fn head_length(bytes: &[u8], from: usize) -> Option<usize> {
    let mut at = from.saturating_sub(3);
    while let Some(found) = bytes[at..].iter().position(|&b| b == b'\n') {
        let line_end = at + found;
        match &bytes[line_end + 1..] {
            [b'\n', ..] => return Some(line_end + 2),
            [b'\r', b'\n', ..] => return Some(line_end + 3),
            _ => at = line_end + 1,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<RequestHead, HeadError> {
        RequestHead::parse(Bytes::copy_from_slice(text.as_bytes()), 1000)
    }

    #[test]
    fn fields_are_found_whatever_their_case() {
        let head = parse("POST /?query=x HTTP/1.1\r\nHost: a\r\nX-ClickHouse-User:  joe \r\nContent-Length: 5\r\n\r\n")
            .unwrap();
        assert_eq!(head.method(), &Method::Post);
        assert_eq!(head.target(), "/?query=x");
        assert_eq!(head.field_str("x-clickhouse-USER"), Some("joe"));
        assert_eq!(head.framing(), BodyFraming::Length(5));
        assert!(head.keep_alive());
    }

    #[test]
    fn lengths_that_two_readers_could_see_differently_are_refused() {
        for (fields, error) in [
            ("Content-Length: 5\r\nContent-Length: 6", HeadError::AmbiguousLength),
            ("Content-Length: +5", HeadError::AmbiguousLength),
            ("Content-Length: 5, 5", HeadError::AmbiguousLength),
            ("Content-Length: ", HeadError::AmbiguousLength),
            ("Content-Length: 99999999999999999999", HeadError::AmbiguousLength),
            ("Content-Length: 5\r\nTransfer-Encoding: chunked", HeadError::AmbiguousLength),
            ("Transfer-Encoding: gzip, chunked", HeadError::UnsupportedTransferEncoding),
            ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", HeadError::UnsupportedTransferEncoding),
        ] {
            assert_eq!(parse(&format!("POST / HTTP/1.1\r\n{fields}\r\n\r\n")).unwrap_err(), error, "{fields}");
        }
    }

    #[test]
    fn many_fields_are_read_and_too_many_refused() {
        let fields: String = (0..500).map(|i| format!("X-{i}: {i}\r\n")).collect();
        let text = format!("GET / HTTP/1.1\r\n{fields}\r\n");
        assert_eq!(parse(&text).unwrap().field_str("x-499"), Some("499"));
        let refused = RequestHead::parse(Bytes::from(text), 400);
        assert_eq!(refused.unwrap_err(), HeadError::TooManyFields);
    }

    #[test]
    fn a_url_has_as_many_parameters_as_a_head_has_fields() {
        let parse = |parameters: usize| {
            let text = format!("GET /?a=b{} HTTP/1.1\r\n\r\n", "&a".repeat(parameters - 1));
            RequestHead::parse(Bytes::from(text), 100)
        };
        assert!(parse(100).is_ok());
        assert_eq!(parse(101).unwrap_err(), HeadError::TooManyParameters);
    }

    #[test]
    fn chunks_are_not_of_http_1_0() {
        let head = "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n";
        assert_eq!(parse(head).unwrap_err(), HeadError::AmbiguousLength);
    }

    #[test]
    fn every_truncation_is_seen_as_incomplete() {
        let text = b"GET / HTTP/1.1\r\nHost: a\r\nAccept: */*\r\n\r\n";
        for length in 0..text.len() {
            assert_eq!(head_length(&text[..length], 0), None);
            assert!(RequestHead::parse(Bytes::copy_from_slice(&text[..length]), 10).is_err());
        }
        for from in 0..text.len() {
            assert_eq!(head_length(text, from), Some(text.len()), "looked before at {from}");
        }
    }

    #[test]
    fn mutated_heads_never_panic() {
        let text = b"POST /?a=b HTTP/1.1\r\nHost: a\r\nContent-Length: 12\r\nTransfer-Encoding: chunked\r\n\r\n";
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..20_000 {
            let mut bytes = text.to_vec();
            for _ in 0..random.usize(1..4) {
                let at = random.usize(..bytes.len());
                bytes[at] = random.u8(..);
            }
            let _ = RequestHead::parse(Bytes::from(bytes.clone()), 100);
            let _ = ResponseHead::parse(Bytes::from(bytes), 100, false);
        }
    }

    #[test]
    fn connections_persist_as_the_version_says() {
        let keep = |text: &str| parse(text).unwrap().keep_alive();
        assert!(keep("GET / HTTP/1.1\r\n\r\n"));
        assert!(!keep("GET / HTTP/1.1\r\nConnection: close\r\n\r\n"));
        assert!(!keep("GET / HTTP/1.0\r\n\r\n"));
        assert!(keep("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n"));
    }

    #[test]
    fn a_status_below_100_is_none() {
        for (status, is_one) in [("099", false), ("000", false), ("100", true), ("999", true)] {
            let raw = Bytes::from(format!("HTTP/1.1 {status} what\r\n\r\n"));
            assert_eq!(ResponseHead::parse(raw, 10, false).is_ok(), is_one, "{status}");
        }
    }

    #[test]
    fn answers_to_head_requests_have_no_body() {
        let raw = Bytes::from_static(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n");
        assert_eq!(ResponseHead::parse(raw.clone(), 10, true).unwrap().framing(), BodyFraming::None);
        assert_eq!(ResponseHead::parse(raw, 10, false).unwrap().framing(), BodyFraming::Length(4));
        let raw = Bytes::from_static(b"HTTP/1.1 200 OK\r\n\r\n");
        let head = ResponseHead::parse(raw, 10, false).unwrap();
        assert_eq!((head.framing(), head.keep_alive()), (BodyFraming::UntilClose, false));
    }
}
