//! The rows of a batch, read back from its segments.

use std::fs::File;
use std::sync::Arc;

use super::format::{rows_of, Checksums, Kind};
use super::scan::Scanner;
use crate::buffer::BufferError;
use crate::rows::Body;

/// The places to read a batch from; made under the log's lock, used without it. The files stay readable when
/// they are deleted meanwhile.
pub(super) struct Reading {
    pub(super) parts: Vec<Part>,
    pub(super) first: u64,
    pub(super) rows: u64,
    /// The number of the seal or split that made the batch.
    pub(super) recorded: u64,
    /// True if something in the batch's segments is lost, perhaps some of its rows.
    pub(super) is_suspect: bool,
    /// The folder's name, for complaints.
    pub(super) name: String,
}

pub(super) struct Part {
    pub(super) segment: u64,
    pub(super) file: Arc<File>,
    pub(super) checksums: Checksums,
    pub(super) start: u64,
    pub(super) limit: u64,
}

impl Reading {
    pub(super) fn read(&self) -> Result<Body, BufferError> {
        let end = self.first + self.rows;
        let (mut bytes, mut lengths) = (Vec::new(), Vec::new());
        let mut next = self.first;
        for part in &self.parts {
            let mut scanner = Scanner::new(&part.file, part.checksums, part.start, part.limit);
            while next < end {
                let Some(found) = scanner.next()? else { break };
                let (position, rows) = (found.header.position, u64::from(found.header.rows));
                if found.header.kind != Kind::Rows || position.saturating_add(rows) <= next {
                    continue;
                }
                if position > next {
                    return Err(self.damaged());
                }
                let chosen = (next - position) as usize..(end - position).min(rows) as usize;
                let payload = rows_of(found.header.rows, scanner.payload()?).ok_or_else(|| self.damaged())?;
                payload.push_to(chosen, &mut bytes, &mut lengths);
                next = (position + rows).min(end);
            }
        }
        match next == end {
            true => Ok(Body::new(bytes, lengths)),
            false => Err(self.damaged()),
        }
    }

    fn damaged(&self) -> BufferError {
        BufferError::Damaged(format!("{}: rows of a batch can't be read any more", self.name))
    }
}
