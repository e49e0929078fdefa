//! Checks the messages of an Arrow IPC stream before they are decoded.
//!
//! The decoder trusts what a message announces: it allocates as much memory as a compressed buffer claims. So
//! all claims are checked first, against the bytes that are there and the memory that a payload may take.

use std::fmt;

use arrow_ipc::{root_as_message, Buffer, Message, MessageHeader, RecordBatch, Schema};

const CONTINUATION: [u8; 4] = [0xFF; 4];
/// The most rows of one message: columns without values cost nothing on the wire.
const MAX_ROWS: i64 = 16 << 20;
/// The length by which a buffer says that it is not compressed.
const NOT_COMPRESSED: i64 = -1;
/// The deepest nesting of lists: real data has no deeper ones.
const MAX_DEPTH: usize = 32;
const MAX_FIELDS: usize = 10_000;

/// The cause why a stream is not decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ArrowFault {
    Bad(String),
    /// The stream's buffers unpack to more than was allowed.
    TooLarge,
}

impl ArrowFault {
    pub(super) fn bad(why: impl fmt::Display) -> ArrowFault {
        ArrowFault::Bad(why.to_string())
    }
}

/// Checks all messages of a stream. Unpacked, its buffers may have `max_bytes` all together.
///
/// # Errors
/// Fails where the stream is cut off or malformed, bytes follow its end, or its buffers unpack to more.
pub fn check_arrow_stream(stream: &[u8], max_bytes: u64) -> Result<(), ArrowFault> {
    let mut messages = Messages::new(stream, max_bytes);
    while messages.next()?.is_some() {}
    match messages.rest().is_empty() {
        true => Ok(()),
        false => Err(ArrowFault::bad("there are bytes behind its end")),
    }
}

/// One message that was checked, and its place in the stream.
pub(super) struct Framed<'s> {
    pub(super) message: Message<'s>,
    pub(super) offset: usize,
    /// Bytes of the metadata, with the frame.
    pub(super) metadata_bytes: usize,
    pub(super) body_bytes: usize,
}

/// The messages of a stream, one by one.
pub(super) struct Messages<'s> {
    stream: &'s [u8],
    at: usize,
    /// Says whether the mark was read after which no message comes.
    pub(super) has_ended: bool,
    left_bytes: u64,
}

impl<'s> Messages<'s> {
    pub(super) fn new(stream: &'s [u8], max_bytes: u64) -> Messages<'s> {
        Messages { stream, at: 0, has_ended: false, left_bytes: max_bytes }
    }

    /// Returns the bytes after the messages that were read.
    pub(super) fn rest(&self) -> &'s [u8] {
        &self.stream[self.at..]
    }

    /// Returns the next message, or `None` at the end of the stream, with the mark or without it.
    pub(super) fn next(&mut self) -> Result<Option<Framed<'s>>, ArrowFault> {
        let offset = self.at;
        if self.has_ended || self.rest().is_empty() {
            return Ok(None);
        }
        let framed = self.rest().strip_prefix(&CONTINUATION).unwrap_or(self.rest());
        let (length, rest) = framed.split_first_chunk::<4>().ok_or_else(cut_short)?;
        let length = u32::from_le_bytes(*length) as usize;
        if length == 0 {
            self.at = self.stream.len() - rest.len();
            self.has_ended = true;
            return Ok(None);
        }
        let metadata = rest.get(..length).ok_or_else(cut_short)?;
        let message = root_as_message(metadata).map_err(ArrowFault::bad)?;
        let body_bytes = usize::try_from(message.bodyLength()).map_err(|_| cut_short())?;
        let body = rest[length..].get(..body_bytes).ok_or_else(cut_short)?;
        self.check(&message, body)?;
        self.at = self.stream.len() - rest.len() + length + body_bytes;
        Ok(Some(Framed { message, offset, metadata_bytes: self.at - offset - body_bytes, body_bytes }))
    }

    fn check(&mut self, message: &Message, body: &[u8]) -> Result<(), ArrowFault> {
        match message.header_type() {
            MessageHeader::Schema => message.header_as_schema().map_or(Ok(()), |schema| check_schema(&schema)),
            MessageHeader::RecordBatch => {
                message.header_as_record_batch().map_or(Ok(()), |batch| self.batch(&batch, body))
            }
            MessageHeader::DictionaryBatch => {
                let data = message.header_as_dictionary_batch().and_then(|batch| batch.data());
                data.map_or(Ok(()), |batch| self.batch(&batch, body))
            }
            _ => Ok(()),
        }
    }

    fn batch(&mut self, batch: &RecordBatch, body: &[u8]) -> Result<(), ArrowFault> {
        if !(0..=MAX_ROWS).contains(&batch.length()) {
            let why = format!("it has {} rows in one message; {MAX_ROWS} are the most", batch.length());
            return Err(ArrowFault::Bad(why));
        }
        let counts = batch.nodes().into_iter().flatten();
        for node in counts {
            // A list's values are bounded by what holds them; values that take no bytes by this.
            if !(0..=i64::from(i32::MAX)).contains(&node.length()) || !(0..=node.length()).contains(&node.null_count())
            {
                return Err(ArrowFault::bad("a column has an impossible number of values"));
            }
        }
        let is_compressed = batch.compression().is_some();
        batch.buffers().into_iter().flatten().try_for_each(|buffer| self.buffer(buffer, body, is_compressed))
    }

    fn buffer(&mut self, buffer: &Buffer, body: &[u8], is_compressed: bool) -> Result<(), ArrowFault> {
        let place = usize::try_from(buffer.offset()).ok().zip(usize::try_from(buffer.length()).ok());
        let bytes = place.and_then(|(at, length)| body.get(at..at.checked_add(length)?));
        let bytes = bytes.ok_or_else(|| ArrowFault::bad("a buffer lies outside its message"))?;
        let announced = match bytes.split_first_chunk::<8>() {
            Some((length, _)) if is_compressed => i64::from_le_bytes(*length),
            _ if is_compressed && !bytes.is_empty() => return Err(cut_short()),
            _ => bytes.len() as i64,
        };
        let unpacked = if announced == NOT_COMPRESSED { bytes.len() as i64 } else { announced };
        let unpacked = u64::try_from(unpacked).map_err(|_| ArrowFault::bad("a buffer has an impossible length"))?;
        self.left_bytes = self.left_bytes.checked_sub(unpacked).ok_or(ArrowFault::TooLarge)?;
        Ok(())
    }
}

fn check_schema(schema: &Schema) -> Result<(), ArrowFault> {
    let mut waiting: Vec<_> = schema.fields().into_iter().flatten().map(|field| (field, 1)).collect();
    let mut fields = 0;
    while let Some((field, depth)) = waiting.pop() {
        fields += 1;
        if fields > MAX_FIELDS || depth > MAX_DEPTH {
            return Err(ArrowFault::bad("its schema is too large or too deep"));
        }
        waiting.extend(field.children().into_iter().flatten().map(|child| (child, depth + 1)));
    }
    Ok(())
}

fn cut_short() -> ArrowFault {
    ArrowFault::bad("it is cut short")
}
