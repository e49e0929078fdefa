//! The places of rows in a payload of JSON.

use super::plan::NotJoinable;
use crate::read::end_of_json;

/// Whole rows, without the brackets and commas around them.
pub(super) struct JsonRows<'a> {
    /// The header rows, which name the columns of the others.
    pub(super) header: Vec<&'a [u8]>,
    /// The text from the first row's first byte to the last one's last; empty if there are no rows.
    pub(super) text: &'a [u8],
    pub(super) count: usize,
}

/// Finds rows of objects: one after the other, with or without commas between them, or an array of them.
pub(super) fn objects(payload: &[u8]) -> Result<JsonRows<'_>, NotJoinable> {
    let mut walk = Walk::new(payload);
    if walk.eat(b'[') {
        walk.array_of_objects()?;
    } else {
        while !walk.at_end() {
            walk.row(b'{')?;
            walk.eat(b',');
        }
    }
    Ok(walk.rows(0))
}

/// Finds rows of arrays, one after the other, with or without commas between them.
pub(super) fn arrays(payload: &[u8], header_rows: usize) -> Result<JsonRows<'_>, NotJoinable> {
    let mut walk = Walk::new(payload);
    while !walk.at_end() {
        walk.row(b'[')?;
        walk.eat(b',');
    }
    if walk.ends.len() < header_rows {
        return Err(NotJoinable);
    }
    Ok(walk.rows(header_rows))
}

struct Walk<'a> {
    payload: &'a [u8],
    at: usize,
    /// The places of the first rows; `count` is the number of all rows.
    ends: Vec<Span>,
    count: usize,
    last_end: usize,
    scratch: Vec<u8>,
}

#[derive(Clone, Copy)]
struct Span {
    start: usize,
    end: usize,
}

/// The number of rows whose place is kept: those of a header, and the first one behind it.
const KEPT: usize = 3;

impl<'a> Walk<'a> {
    /// Starts at the first byte that is no space.
    fn new(payload: &'a [u8]) -> Self {
        let mut walk =
            Walk { payload, at: 0, ends: Vec::with_capacity(KEPT), count: 0, last_end: 0, scratch: Vec::new() };
        walk.skip_space();
        walk
    }

    fn skip_space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r' | 0x0B | 0x0C) = self.payload.get(self.at) {
            self.at += 1;
        }
    }

    fn at_end(&self) -> bool {
        self.at == self.payload.len()
    }

    /// Takes a byte, and the space behind it.
    fn eat(&mut self, wanted: u8) -> bool {
        let found = self.payload.get(self.at) == Some(&wanted);
        if found {
            self.at += 1;
            self.skip_space();
        }
        found
    }

    /// Takes a row that begins with the byte `opening`, and the space behind it.
    fn row(&mut self, opening: u8) -> Result<(), NotJoinable> {
        if self.payload.get(self.at) != Some(&opening) {
            return Err(NotJoinable);
        }
        let start = self.at;
        self.at = end_of_json(self.payload, start, &mut self.scratch).map_err(|_| NotJoinable)?;
        if self.ends.len() < KEPT {
            self.ends.push(Span { start, end: self.at });
        }
        self.count += 1;
        self.last_end = self.at;
        self.skip_space();
        Ok(())
    }

    fn array_of_objects(&mut self) -> Result<(), NotJoinable> {
        if !self.eat(b']') {
            loop {
                self.row(b'{')?;
                if self.eat(b']') {
                    break;
                }
                if !self.eat(b',') {
                    return Err(NotJoinable);
                }
            }
        }
        if self.at_end() {
            Ok(())
        } else {
            Err(NotJoinable)
        }
    }

    fn rows(self, header_rows: usize) -> JsonRows<'a> {
        let header = self.ends.iter().take(header_rows).map(|span| &self.payload[span.start..span.end]).collect();
        let text = match self.ends.get(header_rows) {
            Some(first) => &self.payload[first.start..self.last_end],
            None => &[],
        };
        JsonRows { header, text, count: self.count - header_rows }
    }
}
