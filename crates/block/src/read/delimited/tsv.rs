//! TabSeparated's fields, with escapes and raw.

use super::dialect::Dialect;
use super::scan::Stops;
use crate::read::cursor::Cursor;
use crate::read::json_text::Text;
use crate::read::outcome::NotTypedReason;
use crate::settings::ReadSettings;

/// With escapes a tab, a line break and a backslash inside of a value are written `\t`, `\n`, `\\`; raw, everything up to
/// the next tab or line break is the value.
pub(super) struct Tsv<'p, const RAW: bool> {
    null: &'p [u8],
    empty_is_default: bool,
    detects_header: bool,
    stops: Stops,
}

pub(super) type Escaped<'p> = Tsv<'p, false>;
pub(super) type Raw<'p> = Tsv<'p, true>;

impl<'p, const RAW: bool> Tsv<'p, RAW> {
    pub(super) fn new(settings: &'p ReadSettings) -> Self {
        let settings = &settings.delimited;
        Tsv {
            null: settings.tsv_null.as_bytes(),
            empty_is_default: settings.tsv_empty_as_default,
            detects_header: settings.tsv_detect_header,
            stops: Stops::new(if RAW { *b"\t\n\n" } else { *b"\t\n\\" }),
        }
    }

    #[cold]
    fn unescape(&self, cursor: &mut Cursor<'_>, scratch: &mut Vec<u8>) -> Result<(), NotTypedReason> {
        scratch.clear();
        loop {
            let rest = cursor.rest();
            let length = self.stops.find(rest);
            scratch.extend_from_slice(&rest[..length]);
            cursor.at += length;
            if !cursor.eat(b'\\') {
                return Ok(());
            }
            read_escape(cursor, scratch)?;
        }
    }
}

/// What follows a backslash.
fn read_escape(cursor: &mut Cursor<'_>, scratch: &mut Vec<u8>) -> Result<(), NotTypedReason> {
    let escaped = cursor.peek().ok_or(NotTypedReason::Syntax)?;
    cursor.at += 1;
    match escaped {
        b'n' => scratch.push(b'\n'),
        b't' => scratch.push(b'\t'),
        b'r' => scratch.push(b'\r'),
        b'0' => scratch.push(0),
        b'a' => scratch.push(7),
        b'b' => scratch.push(8),
        b'v' => scratch.push(11),
        b'f' => scratch.push(12),
        b'e' => scratch.push(27),
        b'\\' | b'\'' | b'"' | b'`' | b'/' | b'=' => scratch.push(escaped),
        // Inside of a text it stands for nothing.
        b'N' => {}
        b'x' => scratch.push(read_hex_byte(cursor)?),
        b' '..=b'~' => scratch.extend_from_slice(&[b'\\', escaped]),
        _ => return Err(NotTypedReason::Value),
    }
    Ok(())
}

fn read_hex_byte(cursor: &mut Cursor<'_>) -> Result<u8, NotTypedReason> {
    let digits = cursor.rest().get(..2).ok_or(NotTypedReason::Syntax)?;
    let mut value = 0;
    for digit in digits {
        value = value << 4 | char::from(*digit).to_digit(16).ok_or(NotTypedReason::Value)?;
    }
    cursor.at += 2;
    Ok(value as u8)
}

impl<const RAW: bool> Dialect for Tsv<'_, RAW> {
    fn empty_is_default(&self) -> bool {
        self.empty_is_default
    }

    fn detects_header(&self) -> bool {
        self.detects_header
    }

    fn nests_in_place(&self) -> bool {
        !RAW
    }

    #[inline]
    fn at_field_end(&self, cursor: &Cursor<'_>) -> bool {
        matches!(cursor.peek(), None | Some(b'\t' | b'\n'))
    }

    #[inline]
    fn finish_field(&self, cursor: &mut Cursor<'_>) -> Result<(), NotTypedReason> {
        if self.at_field_end(cursor) {
            Ok(())
        } else {
            Err(NotTypedReason::Value)
        }
    }

    #[inline]
    fn eat_null(&self, cursor: &mut Cursor<'_>) -> bool {
        if cursor.peek() != self.null.first().copied() {
            return false;
        }
        let start = cursor.at;
        let found = cursor.eat_exactly(self.null) && self.at_field_end(cursor);
        if !found {
            cursor.at = start;
        }
        found
    }

    #[inline]
    fn text<'a>(&self, cursor: &mut Cursor<'a>, scratch: &mut Vec<u8>) -> Result<Text<'a>, NotTypedReason> {
        let rest = cursor.rest();
        let length = self.stops.find(rest);
        if !RAW && rest.get(length) == Some(&b'\\') {
            self.unescape(cursor, scratch)?;
            return Ok(Text::Unescaped);
        }
        cursor.at += length;
        Ok(Text::Plain(&rest[..length]))
    }

    #[inline]
    fn at_delimiter(&self, cursor: &Cursor<'_>) -> bool {
        cursor.peek() == Some(b'\t')
    }

    #[inline]
    fn end_row(&self, cursor: &mut Cursor<'_>) -> Result<(), NotTypedReason> {
        // A line that ends as on Windows is refused where it is the first, and elsewhere the `\r` belongs to the value.
        if cursor.at > 0 && cursor.bytes[cursor.at - 1] == b'\r' {
            return Err(NotTypedReason::Syntax);
        }
        if cursor.at_end() {
            return Ok(());
        }
        cursor.expect(b'\n')
    }
}
