//! The frames of an IPC stream.

use super::flatbuffer::Table;
use super::verify;
use crate::input::Input;

/// Kinds of messages that are read.
pub(super) const SCHEMA: u8 = 1;
pub(super) const DICTIONARY: u8 = 2;
pub(super) const BATCH: u8 = 3;

const CONTINUATION: u32 = 0xFFFF_FFFF;
/// Versions 4 and 5 differ in unions only, which are not read.
const VERSIONS: std::ops::RangeInclusive<i16> = 3..=4;

pub(super) struct Message<'a> {
    pub(super) header_kind: u8,
    pub(super) table: Table<'a>,
    pub(super) body: &'a [u8],
    /// With the frame.
    metadata_bytes: usize,
}

/// Where a message of a file lies.
#[derive(PartialEq)]
pub(super) struct Block {
    offset: usize,
    metadata_bytes: usize,
    body_bytes: usize,
}

impl Block {
    pub(super) fn of(message: &Message<'_>, offset: usize) -> Self {
        Block { offset, metadata_bytes: message.metadata_bytes, body_bytes: message.body.len() }
    }
}

/// The next message, or `Some(None)` at the end of the stream.
pub(super) fn next_message<'a>(input: &mut Input<'a>) -> Option<Option<Message<'a>>> {
    if input.u32()? != CONTINUATION {
        return None;
    }
    let metadata_bytes = input.u32()? as usize;
    if metadata_bytes == 0 {
        return Some(None);
    }
    let root = Table::root(input.take(metadata_bytes)?).filter(verify::is_sound_message)?;
    let body_bytes = usize::try_from(root.i64(3, 0)?).ok()?;
    VERSIONS.contains(&root.i16(0, 0)?).then_some(())?;
    let message = Message {
        header_kind: root.u8(1, 0)?,
        table: root.table(2)??,
        body: input.take(body_bytes)?,
        metadata_bytes: metadata_bytes + 8,
    };
    Some(Some(message))
}

/// A list of places in a file's footer.
pub(super) fn blocks(footer: &Table<'_>, field: usize) -> Option<Vec<Block>> {
    let Some(vector) = footer.vector(field, 24)? else { return Some(Vec::new()) };
    let block = |index: usize| {
        Some(Block {
            offset: usize::try_from(vector.i64(3 * index)?).ok()?,
            // The upper half is padding.
            metadata_bytes: usize::try_from(vector.i64(3 * index + 1)? & 0xFFFF_FFFF).ok()?,
            body_bytes: usize::try_from(vector.i64(3 * index + 2)?).ok()?,
        })
    };
    (0..vector.len()).map(block).collect()
}
