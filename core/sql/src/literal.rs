//! The values of quoted tokens, with ClickHouse's escapes undone.

use crate::lexer::{Token, TokenKind};

/// Returns the value of a string token; `None` for one whose meaning is not certain (`x'2A'`, a broken
/// escape, not UTF-8).
pub(crate) fn string(token: &Token, text: &[u8]) -> Option<String> {
    let bytes = token.bytes(text);
    let value = match token.kind {
        TokenKind::String => unquote(bytes)?,
        TokenKind::HereDoc => {
            let tag_len = bytes.iter().skip(1).position(|&b| b == b'$')? + 2;
            bytes.get(tag_len..bytes.len().checked_sub(tag_len)?)?.to_vec()
        }
        _ => return None,
    };
    String::from_utf8(value).ok()
}

/// Returns the value of a text in single quotes, as settings and parameters are written beside a statement.
pub fn unquote_string(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let is_quoted = bytes.len() > 1 && bytes.starts_with(b"'") && bytes.ends_with(b"'");
    String::from_utf8(unquote(bytes).filter(|_| is_quoted)?).ok()
}

pub(crate) fn unquote(bytes: &[u8]) -> Option<Vec<u8>> {
    match bytes {
        [b'\'' | b'"' | b'`', .., _] => unescape(&bytes[1..bytes.len() - 1], bytes[0]),
        // ‘x’ and “x” know no escapes.
        [0xE2, _, _, inner @ .., _, _, _] => Some(inner.to_vec()),
        _ => None,
    }
}

fn unescape(inner: &[u8], quote: u8) -> Option<Vec<u8>> {
    let mut value = Vec::with_capacity(inner.len());
    let mut rest = inner;
    while let Some((&byte, tail)) = rest.split_first() {
        rest = match byte {
            b'\\' => unescape_one(tail, &mut value)?,
            // The lexer lets a quote through only when it is doubled.
            _ if byte == quote => {
                value.push(quote);
                tail.get(1..)?
            }
            _ => {
                value.push(byte);
                tail
            }
        };
    }
    Some(value)
}

/// Undoes one escape. A backslash before a character that needs none stays, so that `'100\%'` keeps its
/// backslash, as in ClickHouse.
fn unescape_one<'t>(after_backslash: &'t [u8], value: &mut Vec<u8>) -> Option<&'t [u8]> {
    let (&code, tail) = after_backslash.split_first()?;
    let decoded = match code {
        b'x' => {
            let digits = std::str::from_utf8(tail.get(..2)?).ok()?;
            value.push(u8::from_str_radix(digits, 16).ok().filter(|_| !digits.starts_with('+'))?);
            return Some(&tail[2..]);
        }
        b'N' => return Some(tail),
        b'a' => 0x07,
        b'b' => 0x08,
        b'e' => 0x1B,
        b'f' => 0x0C,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'v' => 0x0B,
        b'0' => 0,
        _ => code,
    };
    if !matches!(decoded, b'\\' | b'\'' | b'"' | b'`' | b'/' | b'=' | 0..=31) {
        value.push(b'\\');
    }
    value.push(decoded);
    Some(tail)
}
