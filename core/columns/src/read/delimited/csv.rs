//! CSV's fields: quotes, spaces around values, line ends of two kinds.

use memchr::memchr;

use super::dialect::Dialect;
use super::scan::Stops;
use crate::read::cursor::Cursor;
use crate::read::json_text::Text;
use crate::read::outcome::NotParsedReason;
use crate::settings::{DelimitedSettings, ReadSettings};

pub(super) struct Csv<'p> {
    settings: &'p DelimitedSettings,
    delimiter: u8,
    null: &'p [u8],
    /// Bytes that end a text without quotes. A `\r` that is no part of a line's end can't be read here.
    stops: Stops,
}

impl<'p> Csv<'p> {
    pub(super) fn new(settings: &'p ReadSettings) -> Self {
        let settings = &settings.delimited;
        Csv {
            settings,
            delimiter: settings.csv_delimiter,
            null: settings.csv_null.as_bytes(),
            stops: Stops::new([settings.csv_delimiter, b'\n', b'\r']),
        }
    }

    /// Reads the text behind an opening quote.
    fn quoted<'a>(
        &self,
        quote: u8,
        cursor: &mut Cursor<'a>,
        scratch: &mut Vec<u8>,
    ) -> Result<Text<'a>, NotParsedReason> {
        let rest = cursor.rest();
        let length = memchr(quote, rest).ok_or(NotParsedReason::Syntax)?;
        // Two quotes in a row stand for one.
        if rest.get(length + 1) != Some(&quote) {
            cursor.at += length + 1;
            return Ok(Text::Plain(&rest[..length]));
        }
        scratch.clear();
        loop {
            let rest = cursor.rest();
            let length = memchr(quote, rest).ok_or(NotParsedReason::Syntax)?;
            scratch.extend_from_slice(&rest[..length]);
            cursor.at += length + 1;
            if !cursor.eat(quote) {
                return Ok(Text::Unescaped);
            }
            scratch.push(quote);
        }
    }
}

impl Dialect for Csv<'_> {
    fn empty_is_default(&self) -> bool {
        self.settings.csv_empty_as_default
    }

    fn detects_header(&self) -> bool {
        self.settings.csv_detect_header
    }

    fn skipped_lines(&self) -> u64 {
        self.settings.csv_skip_first_lines
    }

    fn skips_empty_end(&self) -> bool {
        self.settings.csv_skip_trailing_empty_lines
    }

    fn has_variable_columns(&self) -> bool {
        self.settings.csv_variable_columns
    }

    fn integers_are_lenient(&self) -> bool {
        true
    }

    fn spreads_tuples(&self) -> bool {
        self.settings.csv_spread_tuples
    }

    fn nests_in_place(&self) -> bool {
        false
    }

    #[inline]
    fn eat_quote(&self, cursor: &mut Cursor<'_>) -> bool {
        cursor.eat(b'"')
    }

    #[inline]
    fn skip_blanks(&self, cursor: &mut Cursor<'_>) {
        while let Some(b' ' | b'\t') = cursor.peek() {
            cursor.at += 1;
        }
    }

    #[inline]
    fn at_field_end(&self, cursor: &Cursor<'_>) -> bool {
        match cursor.peek() {
            None | Some(b'\n') => true,
            Some(b'\r') => cursor.bytes.get(cursor.at + 1) == Some(&b'\n'),
            Some(byte) => byte == self.delimiter,
        }
    }

    #[inline]
    fn null(&self) -> &[u8] {
        self.null
    }

    #[inline]
    fn text<'a>(&self, cursor: &mut Cursor<'a>, scratch: &mut Vec<u8>) -> Result<Text<'a>, NotParsedReason> {
        if let Some(quote @ (b'"' | b'\'')) = cursor.peek() {
            if quote == b'"' || self.settings.csv_single_quotes {
                cursor.at += 1;
                let text = self.quoted(quote, cursor, scratch)?;
                self.finish_field(cursor)?;
                return Ok(text);
            }
        }
        let rest = cursor.rest();
        let length = self.stops.find(rest);
        cursor.at += length;
        if !self.at_field_end(cursor) {
            return Err(NotParsedReason::Value);
        }
        let blanks = rest[..length].iter().rev().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        Ok(Text::Plain(&rest[..length - blanks]))
    }

    #[inline]
    fn at_delimiter(&self, cursor: &Cursor<'_>) -> bool {
        cursor.peek() == Some(self.delimiter)
    }

    #[inline]
    fn end_row(&self, cursor: &mut Cursor<'_>) -> Result<(), NotParsedReason> {
        // One more delimiter may stand at the end of a line.
        if cursor.eat(self.delimiter) {
            self.skip_blanks(cursor);
        }
        if cursor.at_end() || cursor.eat_exactly(b"\r\n") {
            return Ok(());
        }
        cursor.expect(b'\n')?;
        // Taken for a part of the line's end.
        match cursor.peek() {
            Some(b'\r') => Err(NotParsedReason::Syntax),
            _ => Ok(()),
        }
    }
}
