//! Header rows, and first rows that could be taken for a header.

use super::plan::{NotJoinable, PassthroughColumn};

/// Returns the columns of a header, as positions among the table's columns. Every name must be exactly that
/// of a column, and occur once: ClickHouse has rules for others.
pub(super) fn columns_of<'n>(
    names: impl Iterator<Item = &'n [u8]>,
    columns: &[PassthroughColumn],
) -> Result<Vec<usize>, NotJoinable> {
    let mut found: Vec<usize> = Vec::new();
    for name in names {
        let at = columns.iter().position(|column| column.name.as_bytes() == name).ok_or(NotJoinable)?;
        if found.contains(&at) {
            return Err(NotJoinable);
        }
        found.push(at);
    }
    Ok(found)
}

/// Returns the texts of an array of plain strings, as JSON has it; the array is known to be JSON.
pub(super) fn plain_strings(array: &[u8]) -> Result<Vec<&[u8]>, NotJoinable> {
    let inner = array.strip_prefix(b"[").and_then(|rest| rest.strip_suffix(b"]")).ok_or(NotJoinable)?;
    let mut strings = Vec::new();
    let mut rest = inner.trim_ascii();
    while !rest.is_empty() {
        rest = rest.strip_prefix(b"\"").ok_or(NotJoinable)?;
        let end = memchr::memchr2(b'"', b'\\', rest).filter(|&end| rest[end] == b'"').ok_or(NotJoinable)?;
        strings.push(&rest[..end]);
        rest = rest[end + 1..].trim_ascii_start();
        rest = rest.strip_prefix(b",").unwrap_or(rest).trim_ascii_start();
    }
    Ok(strings)
}

/// Says whether ClickHouse could take a row for names of columns: if all its fields are names, or if all
/// names are fields. In a row of as many fields as there are columns the one follows from the other.
pub(super) fn looks_like_names(fields: &[FirstField<'_>], columns: &[PassthroughColumn]) -> bool {
    fields.iter().all(|field| columns.iter().any(|column| field.could_be(&column.name)))
}

/// A field of the first row.
pub(super) struct FirstField<'a> {
    /// The field's text, as far as it is plain.
    pub(super) plain: &'a [u8],
    /// Says whether more text follows, behind an escape.
    pub(super) goes_on: bool,
}

impl FirstField<'_> {
    fn could_be(&self, name: &str) -> bool {
        let start = name.as_bytes().get(..self.plain.len());
        let begins_alike = start.is_some_and(|start| start.eq_ignore_ascii_case(self.plain));
        // Beyond ASCII, ClickHouse's idea of case isn't ours to guess.
        let is_foreign = !name.is_ascii() && !self.plain.is_ascii();
        begins_alike && (self.goes_on || self.plain.len() == name.len()) || is_foreign
    }
}
