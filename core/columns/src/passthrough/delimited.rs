//! The places of rows in a payload of lines: CSV and TSV.

use std::ops::Range;

use memchr::{memchr, memchr2, memchr3};

use super::field::{is_balanced, FieldKind};
use super::format::Dialect;
use super::header::{columns_of, looks_like_names, FirstField};
use super::plan::{NotJoinable, PassthroughColumn};

/// Whole rows, and their number. The last line may lack its end.
pub(super) struct LineRows<'a> {
    pub(super) header: &'a [u8],
    pub(super) text: &'a [u8],
    pub(super) count: usize,
}

/// The form of lines with fields.
pub(super) struct Table<'p> {
    pub(super) dialect: Dialect,
    pub(super) delimiter: u8,
    pub(super) header_rows: usize,
    pub(super) columns: &'p [PassthroughColumn],
}

impl Table<'_> {
    pub(super) fn rows<'a>(&self, payload: &'a [u8]) -> Result<LineRows<'a>, NotJoinable> {
        // Only CSV may end its lines so, and there it is looked at closer.
        if self.dialect != Dialect::Csv && memchr(b'\r', payload).is_some() {
            return Err(NotJoinable);
        }
        let mut fields = Vec::with_capacity(self.columns.len());
        let mut at = 0;
        let mut order: Vec<usize> = (0..self.columns.len()).collect();
        for row in 0..self.header_rows {
            at = self.row(payload, at, &mut fields)?;
            if row == 0 {
                let names = fields.iter().map(|field| self.plain_text(&payload[field.clone()]));
                let names = names.collect::<Result<Vec<_>, _>>()?;
                order = columns_of(names.into_iter(), self.columns)?;
            } else if fields.len() != order.len() {
                return Err(NotJoinable);
            }
        }
        let kinds: Vec<FieldKind> = order.iter().map(|&column| self.columns[column].kind).collect();
        let start = at;
        let mut count = 0;
        while at < payload.len() {
            at = self.row(payload, at, &mut fields)?;
            self.check(payload, &fields, &kinds)?;
            if count == 0 && self.header_rows == 0 && self.could_be_names(payload, &fields) {
                return Err(NotJoinable);
            }
            count += 1;
        }
        Ok(LineRows { header: &payload[..start], text: &payload[start..], count })
    }

    fn check(&self, payload: &[u8], fields: &[Range<usize>], kinds: &[FieldKind]) -> Result<(), NotJoinable> {
        // An empty line may be a row, or nothing.
        let is_blank = fields.len() == 1 && fields[0].is_empty();
        if fields.len() != kinds.len() || is_blank {
            return Err(NotJoinable);
        }
        match fields.iter().zip(kinds).all(|(field, kind)| self.ends_itself(&payload[field.clone()], *kind)) {
            true => Ok(()),
            false => Err(NotJoinable),
        }
    }

    /// Says whether ClickHouse reads a value of the field that ends where the field does.
    fn ends_itself(&self, field: &[u8], kind: FieldKind) -> bool {
        match (self.dialect, kind) {
            (Dialect::TsvRaw, _) | (_, FieldKind::Token) => true,
            (Dialect::Csv, FieldKind::Counted(kind)) => {
                // Without a value there is nothing to read: the default is stored.
                let field = field.trim_ascii_end();
                field.is_empty() || field == b"\\N" || kind.is_whole(unquoted(field))
            }
            (Dialect::Tsv, FieldKind::Counted(kind)) => field == b"\\N" || kind.is_whole(field),
            (Dialect::Csv, _) => true,
            (Dialect::Tsv, _) => is_balanced(field),
        }
    }

    /// Reads the row that begins at `at`; returns the beginning of the next one.
    fn row(&self, payload: &[u8], mut at: usize, fields: &mut Vec<Range<usize>>) -> Result<usize, NotJoinable> {
        fields.clear();
        loop {
            let field = match self.dialect {
                Dialect::Csv => self.csv_field(payload, at)?,
                Dialect::Tsv => tsv_field(payload, at)?,
                Dialect::TsvRaw => raw_field(payload, at),
            };
            fields.push(field.text);
            match payload.get(field.end) {
                None => return Ok(field.end),
                Some(b'\n') => return Ok(field.end + 1),
                Some(b'\r') => return Ok(field.end + 2),
                Some(_) => at = field.end + 1,
            }
            // More than there are columns: the payload isn't taken, however it goes on.
            if fields.len() > self.columns.len() {
                return Err(NotJoinable);
            }
        }
    }

    fn csv_field(&self, payload: &[u8], start: usize) -> Result<Field, NotJoinable> {
        let start = start + count_blanks(&payload[start..]);
        let field = match payload.get(start) {
            Some(b'"') => {
                let end = end_of_csv_quoted(payload, start + 1)?;
                Field { text: start..end, end: end + count_blanks(&payload[end..]) }
            }
            // Some types take these for quotes.
            Some(b'\'') => return Err(NotJoinable),
            _ => {
                let rest = &payload[start..];
                let length = memchr3(self.delimiter, b'\n', b'\r', rest).unwrap_or(rest.len());
                if memchr(b'"', &rest[..length]).is_some() {
                    return Err(NotJoinable);
                }
                Field { text: start..start + length, end: start + length }
            }
        };
        match payload.get(field.end) {
            None | Some(b'\n') => Ok(field),
            Some(&byte) if byte == self.delimiter => Ok(field),
            Some(b'\r') if payload.get(field.end + 1) == Some(&b'\n') => Ok(field),
            Some(_) => Err(NotJoinable),
        }
    }

    fn could_be_names(&self, payload: &[u8], fields: &[Range<usize>]) -> bool {
        let fields: Vec<FirstField<'_>> =
            fields.iter().map(|field| self.first_field(&payload[field.clone()])).collect();
        looks_like_names(&fields, self.columns)
    }

    fn first_field<'a>(&self, text: &'a [u8]) -> FirstField<'a> {
        let text = match self.dialect {
            Dialect::Csv => unquoted(text.trim_ascii_end()),
            Dialect::Tsv | Dialect::TsvRaw => text,
        };
        let escape = match self.dialect {
            Dialect::Csv => memchr(b'"', text),
            Dialect::Tsv => memchr(b'\\', text),
            Dialect::TsvRaw => None,
        };
        FirstField { plain: &text[..escape.unwrap_or(text.len())], goes_on: escape.is_some() }
    }

    /// Returns the text of a field, if it has no escapes.
    fn plain_text<'a>(&self, text: &'a [u8]) -> Result<&'a [u8], NotJoinable> {
        let plain = match self.dialect {
            Dialect::Csv => unquoted(text.trim_ascii_end()),
            Dialect::Tsv | Dialect::TsvRaw => text,
        };
        match memchr2(b'"', b'\\', plain) {
            None => Ok(plain),
            Some(_) => Err(NotJoinable),
        }
    }
}

/// A field's text with its quotes, and the place of its delimiter or of its line's end.
struct Field {
    text: Range<usize>,
    end: usize,
}

fn tsv_field(payload: &[u8], start: usize) -> Result<Field, NotJoinable> {
    let mut end = start;
    loop {
        end += memchr3(b'\t', b'\n', b'\\', &payload[end..]).unwrap_or(payload.len() - end);
        if payload.get(end) != Some(&b'\\') {
            return Ok(Field { text: start..end, end });
        }
        // An escaped line break is one of the value; an escape at the very end would escape the next payload.
        if matches!(payload.get(end + 1), None | Some(b'\n')) {
            return Err(NotJoinable);
        }
        end += 2;
    }
}

fn raw_field(payload: &[u8], start: usize) -> Field {
    let rest = &payload[start..];
    let end = start + memchr2(b'\t', b'\n', rest).unwrap_or(rest.len());
    Field { text: start..end, end }
}

fn count_blanks(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count()
}

/// Returns the place behind the closing quote of the text that begins at `at`.
fn end_of_csv_quoted(payload: &[u8], mut at: usize) -> Result<usize, NotJoinable> {
    loop {
        at += memchr(b'"', &payload[at..]).ok_or(NotJoinable)? + 1;
        if payload.get(at) != Some(&b'"') {
            return Ok(at);
        }
        at += 1;
    }
}

fn unquoted(text: &[u8]) -> &[u8] {
    text.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\"")).unwrap_or(text)
}
