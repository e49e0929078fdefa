//! Redis's protocol (RESP 2) as far as the buffer speaks it: commands out, replies in, read from bytes that come in
//! pieces.

/// Redis's own limit on one string.
const MAX_BULK_BYTES: i64 = 512 * 1024 * 1024;
const MAX_ARRAY_ITEMS: i64 = 16 * 1024 * 1024;
const MAX_LINE_BYTES: usize = 64 * 1024;
const MAX_DEPTH: usize = 8;

/// What Redis answers. Errors inside an array stay where they are: a pipeline's other replies are still good.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Reply {
    Status(Vec<u8>),
    Error(String),
    Integer(i64),
    Bulk(Vec<u8>),
    Nil,
    Array(Vec<Reply>),
}

/// Bytes that no Redis sends: the connection is of no more use.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Garbled(pub(super) &'static str);

#[derive(Debug)]
pub(super) enum Progress {
    Whole(Parsed),
    Needs(usize),
}

/// A reply, and where the next one begins.
#[derive(Debug)]
pub(super) struct Parsed {
    pub(super) reply: Reply,
    pub(super) end: usize,
}

pub(super) fn write_head(out: &mut Vec<u8>, parts: usize) {
    write_number(out, b'*', parts);
}

pub(super) fn write_part(out: &mut Vec<u8>, part: &[u8]) {
    write_number(out, b'$', part.len());
    out.extend_from_slice(part);
    out.extend_from_slice(b"\r\n");
}

pub(super) fn write_command(out: &mut Vec<u8>, parts: &[&[u8]]) {
    write_head(out, parts.len());
    for part in parts {
        write_part(out, part);
    }
}

fn write_number(out: &mut Vec<u8>, sign: u8, number: usize) {
    out.push(sign);
    out.extend_from_slice(number.to_string().as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// The reply at the start of `bytes`, or how many bytes there have to be before asking again makes sense.
pub(super) fn parse(bytes: &[u8]) -> Result<Progress, Garbled> {
    let mut cursor = Cursor { bytes, at: 0, needed: 0 };
    Ok(match cursor.reply(0)? {
        Some(reply) => Progress::Whole(Parsed { reply, end: cursor.at }),
        None => Progress::Needs(cursor.needed.max(bytes.len() + 1)),
    })
}

struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
    /// The length of `bytes` without which the reply can't be whole.
    needed: usize,
}

impl<'a> Cursor<'a> {
    fn reply(&mut self, depth: usize) -> Result<Option<Reply>, Garbled> {
        if depth > MAX_DEPTH {
            return Err(Garbled("arrays nested too deep"));
        }
        let Some(line) = self.line()? else { return Ok(None) };
        let Some((sign, rest)) = line.split_first() else { return Err(Garbled("an empty line")) };
        match sign {
            b'+' => Ok(Some(Reply::Status(rest.to_vec()))),
            b'-' => Ok(Some(Reply::Error(String::from_utf8_lossy(rest).into_owned()))),
            b':' => Ok(Some(Reply::Integer(number(rest)?))),
            b'$' => self.bulk(number(rest)?),
            b'*' => self.array(number(rest)?, depth),
            _ => Err(Garbled("a reply of no known kind")),
        }
    }

    fn bulk(&mut self, length: i64) -> Result<Option<Reply>, Garbled> {
        if length == -1 {
            return Ok(Some(Reply::Nil));
        }
        if !(0..=MAX_BULK_BYTES).contains(&length) {
            return Err(Garbled("a string's length is out of range"));
        }
        let end = self.at + length as usize;
        let Some(tail) = self.bytes.get(end..end + 2) else {
            self.needed = end + 2;
            return Ok(None);
        };
        if tail != b"\r\n" {
            return Err(Garbled("a string longer than it says"));
        }
        let bulk = self.bytes[self.at..end].to_vec();
        self.at = end + 2;
        Ok(Some(Reply::Bulk(bulk)))
    }

    fn array(&mut self, length: i64, depth: usize) -> Result<Option<Reply>, Garbled> {
        if length == -1 {
            return Ok(Some(Reply::Nil));
        }
        if !(0..=MAX_ARRAY_ITEMS).contains(&length) {
            return Err(Garbled("an array's length is out of range"));
        }
        // Every item has at least four bytes: what is not there yet is not allocated for.
        let mut items = Vec::with_capacity((length as usize).min((self.bytes.len() - self.at) / 4));
        for _ in 0..length {
            match self.reply(depth + 1)? {
                Some(item) => items.push(item),
                None => return Ok(None),
            }
        }
        Ok(Some(Reply::Array(items)))
    }

    fn line(&mut self) -> Result<Option<&'a [u8]>, Garbled> {
        let rest = &self.bytes[self.at..];
        let window = &rest[..rest.len().min(MAX_LINE_BYTES)];
        let Some(length) = memchr::memchr(b'\n', window) else {
            return if window.len() == MAX_LINE_BYTES { Err(Garbled("a line without end")) } else { Ok(None) };
        };
        if length == 0 || rest[length - 1] != b'\r' {
            return Err(Garbled("a line that ends otherwise than in CR LF"));
        }
        self.at += length + 1;
        Ok(Some(&rest[..length - 1]))
    }
}

fn number(digits: &[u8]) -> Result<i64, Garbled> {
    let text = std::str::from_utf8(digits).map_err(|_| Garbled("a number that is none"))?;
    text.parse().map_err(|_| Garbled("a number that is none"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &[u8] = b"*6\r\n+OK\r\n-ERR no\r\n:-12\r\n$5\r\na\r\nbc\r\n$-1\r\n*1\r\n:7\r\n";

    fn whole() -> Reply {
        Reply::Array(vec![
            Reply::Status(b"OK".to_vec()),
            Reply::Error("ERR no".into()),
            Reply::Integer(-12),
            Reply::Bulk(b"a\r\nbc".to_vec()),
            Reply::Nil,
            Reply::Array(vec![Reply::Integer(7)]),
        ])
    }

    #[test]
    fn a_reply_is_read_with_its_end() {
        let mut bytes = SAMPLE.to_vec();
        bytes.extend_from_slice(b":1\r\n");
        let Ok(Progress::Whole(parsed)) = parse(&bytes) else { panic!("it is whole") };
        assert_eq!(parsed.reply, whole());
        assert_eq!(parsed.end, SAMPLE.len());
    }

    #[test]
    fn every_truncation_needs_more() {
        for length in 0..SAMPLE.len() {
            let Ok(Progress::Needs(needed)) = parse(&SAMPLE[..length]) else { panic!("{length}") };
            assert!(needed > length && needed <= SAMPLE.len(), "{length}: {needed}");
        }
    }

    #[test]
    fn mutations_neither_panic_nor_allocate_without_bounds() {
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..20_000 {
            let mut bytes = SAMPLE.to_vec();
            for _ in 0..random.usize(1..4) {
                let at = random.usize(..bytes.len());
                bytes[at] = random.u8(..);
            }
            let _ = parse(&bytes);
        }
    }

    #[test]
    fn what_no_redis_sends_is_refused() {
        let deep = b"*1\r\n".repeat(40);
        for bytes in
            [&b"?1\r\n"[..], b"\r\n", b":x\r\n", b"$-2\r\n", b"$1\r\nabc\r\n", b"*99999999999\r\n", b"a\n", &deep]
        {
            assert!(parse(bytes).is_err(), "{:?}", String::from_utf8_lossy(bytes));
        }
        assert!(parse(&vec![b'+'; MAX_LINE_BYTES + 1]).is_err());
    }

    #[test]
    fn commands_are_arrays_of_strings() {
        let mut out = Vec::new();
        write_command(&mut out, &[b"SET", b"k", b"\r\n"]);
        assert_eq!(out, b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$2\r\n\r\n\r\n");
    }
}
