//! JSON's strings, and values that are skipped.

use memchr::memchr2;

use super::cursor::Cursor;
use super::number::read_number_text;
use super::outcome::NotParsedReason;

/// Deepest nesting of a value that no column reads; far below ClickHouse's own limit of 1000.
const MAX_SKIPPED_DEPTH: usize = 64;

/// A string's bytes: a part of the payload, or the scratch buffer where escapes were resolved.
pub(super) enum Text<'a> {
    Plain(&'a [u8]),
    Unescaped,
}

impl<'a> Text<'a> {
    #[inline]
    pub(super) fn bytes<'s>(&self, scratch: &'s [u8]) -> &'s [u8]
    where
        'a: 's,
    {
        match self {
            Text::Plain(text) => text,
            Text::Unescaped => scratch,
        }
    }
}

/// The escapes that are read.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Escapes {
    /// JSON's own.
    Proper,
    /// The escapes of a value: JSON's own, and the second half of a surrogate pair without its first, which
    /// ClickHouse writes as it stands.
    OfValue,
    /// The escapes of a value that ClickHouse takes with `input_format_json_throw_on_bad_escape_sequence=0`:
    /// any.
    AnyOfValue,
}

/// Reads a string from behind its opening quote; the cursor is left behind the closing one.
#[inline]
pub(super) fn read_string<'a>(cursor: &mut Cursor<'a>, scratch: &mut Vec<u8>) -> Result<Text<'a>, NotParsedReason> {
    read_string_with(cursor, scratch, Escapes::Proper)
}

#[inline]
pub(super) fn read_string_with<'a>(
    cursor: &mut Cursor<'a>,
    scratch: &mut Vec<u8>,
    escapes: Escapes,
) -> Result<Text<'a>, NotParsedReason> {
    let rest = cursor.rest();
    let end = find_quote_or_escape(rest).ok_or(NotParsedReason::Syntax)?;
    if rest[end] == b'"' {
        cursor.at += end + 1;
        return Ok(Text::Plain(&rest[..end]));
    }
    unescape(cursor, scratch, escapes)?;
    Ok(Text::Unescaped)
}

/// Returns the place of the first quote or backslash. Most strings are short: the search takes eight bytes at
/// a time until it pays to call a vectorised search.
#[inline]
fn find_quote_or_escape(bytes: &[u8]) -> Option<usize> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const TOPS: u64 = 0x8080_8080_8080_8080;
    let zero_bytes = |word: u64| word.wrapping_sub(ONES) & !word & TOPS;
    let mut at = 0;
    while at < 32 {
        let Some(chunk) = bytes.get(at..at + 8) else { break };
        let word = u64::from_le_bytes(chunk.try_into().expect("eight bytes were taken"));
        let found = zero_bytes(word ^ (ONES * b'"' as u64)) | zero_bytes(word ^ (ONES * b'\\' as u64));
        if found != 0 {
            return Some(at + found.trailing_zeros() as usize / 8);
        }
        at += 8;
    }
    memchr2(b'"', b'\\', &bytes[at..]).map(|found| at + found)
}

#[cold]
fn unescape(cursor: &mut Cursor<'_>, scratch: &mut Vec<u8>, escapes: Escapes) -> Result<(), NotParsedReason> {
    scratch.clear();
    loop {
        let rest = cursor.rest();
        let end = find_quote_or_escape(rest).ok_or(NotParsedReason::Syntax)?;
        scratch.extend_from_slice(&rest[..end]);
        cursor.at += end + 1;
        if rest[end] == b'"' {
            return Ok(());
        }
        let escaped = cursor.peek().ok_or(NotParsedReason::Syntax)?;
        cursor.at += 1;
        match escaped {
            b'"' | b'\\' | b'/' => scratch.push(escaped),
            b'n' => scratch.push(b'\n'),
            b't' => scratch.push(b'\t'),
            b'r' => scratch.push(b'\r'),
            b'b' => scratch.push(8),
            b'f' => scratch.push(12),
            b'u' => push_character(cursor, scratch, escapes)?,
            other if escapes == Escapes::AnyOfValue => scratch.push(other),
            _ => return Err(NotParsedReason::Value),
        }
    }
}

const ESCAPED_UNIT_BYTES: usize = "\\uXXXX".len();

/// Reads the character behind `\u`: one code unit, or the two of a surrogate pair.
fn push_character(cursor: &mut Cursor<'_>, scratch: &mut Vec<u8>, escapes: Escapes) -> Result<(), NotParsedReason> {
    let start = cursor.at - 2;
    let first = read_code_unit(cursor)?;
    let character = match first {
        0xD800..0xDC00 if cursor.eat_exactly(b"\\u") => {
            let second = read_code_unit(cursor)?;
            if !(0xDC00..0xE000).contains(&second) {
                return keep_bad_escape(cursor, start, 2 * ESCAPED_UNIT_BYTES, scratch, escapes);
            }
            char::from_u32(0x1_0000 + ((first - 0xD800) << 10) + (second - 0xDC00))
        }
        0xD800..0xDC00 => {
            // The backslash behind it stays as well, and what it would have escaped is read as it stands.
            let kept = ESCAPED_UNIT_BYTES + usize::from(cursor.eat(b'\\'));
            return keep_bad_escape(cursor, start, kept, scratch, escapes);
        }
        0xDC00..0xE000 if escapes != Escapes::Proper => {
            scratch.extend_from_slice(&[0xED, 0x80 | (first >> 6 & 0x3F) as u8, 0x80 | (first & 0x3F) as u8]);
            return Ok(());
        }
        unit => char::from_u32(unit),
    };
    let character = character.ok_or(NotParsedReason::Value)?;
    scratch.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
    Ok(())
}

/// Keeps the text of a bad escape, as ClickHouse stores it.
fn keep_bad_escape(
    cursor: &Cursor<'_>,
    start: usize,
    length: usize,
    scratch: &mut Vec<u8>,
    escapes: Escapes,
) -> Result<(), NotParsedReason> {
    if escapes != Escapes::AnyOfValue {
        return Err(NotParsedReason::Value);
    }
    scratch.extend_from_slice(&cursor.bytes[start..start + length]);
    Ok(())
}

fn read_code_unit(cursor: &mut Cursor<'_>) -> Result<u32, NotParsedReason> {
    let digits = cursor.rest().get(..4).ok_or(NotParsedReason::Syntax)?;
    let mut value = 0;
    for digit in digits {
        value = value << 4 | char::from(*digit).to_digit(16).ok_or(NotParsedReason::Value)?;
    }
    cursor.at += 4;
    Ok(value)
}

/// Skips a value of strict JSON and returns its text.
pub(super) fn skip_value<'a>(cursor: &mut Cursor<'a>, scratch: &mut Vec<u8>) -> Result<&'a [u8], NotParsedReason> {
    let start = cursor.at;
    skip_nested(cursor, scratch, 0)?;
    Ok(&cursor.bytes[start..cursor.at])
}

fn skip_nested(cursor: &mut Cursor<'_>, scratch: &mut Vec<u8>, depth: usize) -> Result<(), NotParsedReason> {
    if depth > MAX_SKIPPED_DEPTH {
        return Err(NotParsedReason::TooDeep);
    }
    match cursor.peek() {
        Some(b'"') => {
            cursor.at += 1;
            read_string(cursor, scratch).map(drop)
        }
        Some(b'{') => skip_members(cursor, scratch, depth, Brackets::Object),
        Some(b'[') => skip_members(cursor, scratch, depth, Brackets::Array),
        Some(b't') if cursor.eat_exactly(b"true") => Ok(()),
        Some(b'f') if cursor.eat_exactly(b"false") => Ok(()),
        Some(b'n') if cursor.eat_exactly(b"null") => Ok(()),
        Some(b'-' | b'0'..=b'9') => read_number_text(cursor).map(drop),
        _ => Err(NotParsedReason::Syntax),
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Brackets {
    Object,
    Array,
}

fn skip_members(
    cursor: &mut Cursor<'_>,
    scratch: &mut Vec<u8>,
    depth: usize,
    brackets: Brackets,
) -> Result<(), NotParsedReason> {
    let closing = if brackets == Brackets::Object { b'}' } else { b']' };
    cursor.at += 1;
    cursor.skip_space();
    if cursor.eat(closing) {
        return Ok(());
    }
    loop {
        if brackets == Brackets::Object {
            cursor.expect(b'"')?;
            read_string(cursor, scratch)?;
            cursor.skip_space();
            cursor.expect(b':')?;
            cursor.skip_space();
        }
        skip_nested(cursor, scratch, depth + 1)?;
        cursor.skip_space();
        if cursor.eat(closing) {
            return Ok(());
        }
        cursor.expect(b',')?;
        cursor.skip_space();
    }
}
