use memchr::memchr2;

use super::cursor::Cursor;
use super::json_text::Text;
use super::outcome::NotParsedReason;
use crate::settings::ReadSettings;

/// Reads a string literal from behind its opening quote; the cursor is left behind the closing one.
pub(super) fn read_literal<'a>(
    cursor: &mut Cursor<'a>,
    scratch: &mut Vec<u8>,
    settings: &ReadSettings,
) -> Result<Text<'a>, NotParsedReason> {
    let rest = cursor.rest();
    let end = memchr2(b'\'', b'\\', rest).ok_or(NotParsedReason::Syntax)?;
    // Two quotes in a row stand for one.
    if rest[end] == b'\'' && rest.get(end + 1) != Some(&b'\'') {
        cursor.at += end + 1;
        return Ok(Text::Plain(&rest[..end]));
    }
    unescape(cursor, scratch, settings)?;
    Ok(Text::Unescaped)
}

#[cold]
fn unescape(cursor: &mut Cursor<'_>, scratch: &mut Vec<u8>, settings: &ReadSettings) -> Result<(), NotParsedReason> {
    scratch.clear();
    loop {
        let rest = cursor.rest();
        let end = memchr2(b'\'', b'\\', rest).ok_or(NotParsedReason::Syntax)?;
        scratch.extend_from_slice(&rest[..end]);
        cursor.at += end + 1;
        if rest[end] == b'\\' {
            // Databases differ in what a backslash means.
            if settings.literals_are_sql() {
                return Err(NotParsedReason::Expression);
            }
            scratch.push(read_escape(cursor)?);
        } else if cursor.eat(b'\'') {
            scratch.push(b'\'');
        } else {
            return Ok(());
        }
    }
}

fn read_escape(cursor: &mut Cursor<'_>) -> Result<u8, NotParsedReason> {
    let escaped = cursor.peek().ok_or(NotParsedReason::Syntax)?;
    cursor.at += 1;
    Ok(match escaped {
        b'\'' | b'\\' | b'"' | b'/' | b'`' => escaped,
        b'n' => b'\n',
        b't' => b'\t',
        b'r' => b'\r',
        b'0' => 0,
        b'a' => 7,
        b'b' => 8,
        b'v' => 11,
        b'f' => 12,
        b'e' => 27,
        b'x' => read_hex_byte(cursor)?,
        // Others keep their backslash, or lose it, or vanish.
        _ => return Err(NotParsedReason::Value),
    })
}

fn read_hex_byte(cursor: &mut Cursor<'_>) -> Result<u8, NotParsedReason> {
    let digits = cursor.rest().get(..2).ok_or(NotParsedReason::Syntax)?;
    let digit = |index: usize| char::from(digits[index]).to_digit(16).ok_or(NotParsedReason::Value);
    let value = digit(0)? << 4 | digit(1)?;
    cursor.at += 2;
    Ok(value as u8)
}
