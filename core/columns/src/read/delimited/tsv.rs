//! TabSeparated's fields, with escapes and raw.

use super::dialect::Dialect;
use super::scan::Stops;
use crate::read::cursor::Cursor;
use crate::read::json_text::Text;
use crate::read::outcome::NotParsedReason;
use crate::settings::{DelimitedSettings, ReadSettings};

/// The dialect of TSV. With escapes a tab, a line break and a backslash inside of a value are written `\t`,
/// `\n`, `\\`; raw, everything up to the next tab or line break is the value.
pub(super) struct Tsv<'p, const RAW: bool> {
    settings: &'p DelimitedSettings,
    null: &'p [u8],
    stops: Stops,
}

pub(super) type Escaped<'p> = Tsv<'p, false>;
pub(super) type Raw<'p> = Tsv<'p, true>;

impl<'p, const RAW: bool> Tsv<'p, RAW> {
    pub(super) fn new(settings: &'p ReadSettings) -> Self {
        let settings = &settings.delimited;
        Tsv {
            settings,
            null: settings.tsv_null.as_bytes(),
            stops: Stops::new(if RAW { *b"\t\n\n" } else { *b"\t\n\\" }),
        }
    }

    /// Says whether lines may end as on Windows; raw, the `\r` would belong to a text.
    #[inline]
    fn ends_in_crlf(&self) -> bool {
        !RAW && self.settings.tsv_crlf
    }

    /// Returns the number of bytes of a text of `length` that belong to the line's end.
    #[inline]
    fn carriage_return_before(&self, rest: &[u8], length: usize) -> usize {
        let is_end = self.ends_in_crlf() && rest[..length].ends_with(b"\r") && rest.get(length) == Some(&b'\n');
        usize::from(is_end)
    }

    #[cold]
    fn unescape(&self, cursor: &mut Cursor<'_>, scratch: &mut Vec<u8>) -> Result<(), NotParsedReason> {
        scratch.clear();
        loop {
            let rest = cursor.rest();
            let length = self.stops.find(rest);
            scratch.extend_from_slice(&rest[..length]);
            cursor.at += length;
            if !cursor.eat(b'\\') {
                let end_bytes = self.carriage_return_before(rest, length);
                cursor.at -= end_bytes;
                scratch.truncate(scratch.len() - end_bytes);
                return Ok(());
            }
            read_escape(cursor, scratch)?;
        }
    }
}

/// Reads the escape behind a backslash.
fn read_escape(cursor: &mut Cursor<'_>, scratch: &mut Vec<u8>) -> Result<(), NotParsedReason> {
    let escaped = cursor.peek().ok_or(NotParsedReason::Syntax)?;
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
        _ => return Err(NotParsedReason::Value),
    }
    Ok(())
}

fn read_hex_byte(cursor: &mut Cursor<'_>) -> Result<u8, NotParsedReason> {
    let digits = cursor.rest().get(..2).ok_or(NotParsedReason::Syntax)?;
    let mut value = 0;
    for digit in digits {
        value = value << 4 | char::from(*digit).to_digit(16).ok_or(NotParsedReason::Value)?;
    }
    cursor.at += 2;
    Ok(value as u8)
}

impl<const RAW: bool> Dialect for Tsv<'_, RAW> {
    fn empty_is_default(&self) -> bool {
        self.settings.tsv_empty_as_default
    }

    fn detects_header(&self) -> bool {
        self.settings.tsv_detect_header
    }

    fn skipped_lines(&self) -> u64 {
        self.settings.tsv_skip_first_lines
    }

    fn skips_empty_end(&self) -> bool {
        self.settings.tsv_skip_trailing_empty_lines
    }

    fn has_variable_columns(&self) -> bool {
        self.settings.tsv_variable_columns
    }

    fn empty_integer_is_zero(&self) -> bool {
        !RAW
    }

    fn nests_in_place(&self) -> bool {
        !RAW
    }

    #[inline]
    fn at_field_end(&self, cursor: &Cursor<'_>) -> bool {
        match cursor.peek() {
            None | Some(b'\t' | b'\n') => true,
            Some(b'\r') => self.ends_in_crlf() && cursor.bytes.get(cursor.at + 1) == Some(&b'\n'),
            Some(_) => false,
        }
    }

    #[inline]
    fn null(&self) -> &[u8] {
        self.null
    }

    #[inline]
    fn text<'a>(&self, cursor: &mut Cursor<'a>, scratch: &mut Vec<u8>) -> Result<Text<'a>, NotParsedReason> {
        let rest = cursor.rest();
        let length = self.stops.find(rest);
        if !RAW && rest.get(length) == Some(&b'\\') {
            self.unescape(cursor, scratch)?;
            return Ok(Text::Unescaped);
        }
        let end_bytes = self.carriage_return_before(rest, length);
        cursor.at += length - end_bytes;
        Ok(Text::Plain(&rest[..length - end_bytes]))
    }

    #[inline]
    fn at_delimiter(&self, cursor: &Cursor<'_>) -> bool {
        cursor.peek() == Some(b'\t')
    }

    #[inline]
    fn end_row(&self, cursor: &mut Cursor<'_>) -> Result<(), NotParsedReason> {
        if self.ends_in_crlf() && cursor.eat_exactly(b"\r\n") {
            return Ok(());
        }
        // A line that ends as on Windows is refused where it is the first, and elsewhere the `\r` belongs to the value.
        if cursor.at > 0 && cursor.bytes[cursor.at - 1] == b'\r' {
            return Err(NotParsedReason::Syntax);
        }
        if cursor.at_end() {
            return Ok(());
        }
        cursor.expect(b'\n')
    }
}
