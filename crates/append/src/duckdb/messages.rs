//! What the messages of an Arrow IPC stream announce, looked at before they are decoded.
//!
//! The decoder believes what is announced: it makes room for what a compressed buffer says it holds, and takes slices
//! where it is told that buffers lie. So all of that is checked first, against what there is and what a batch may have.

use arrow_ipc::{root_as_message, Buffer, DictionaryBatch, Message, MessageHeader, RecordBatch, Schema};

use crate::error::AppendError;

const CONTINUATION: [u8; 4] = [0xFF; 4];
/// Rows of one message: columns without values cost nothing on the wire.
const MAX_ROWS: i64 = 16 << 20;
/// A buffer that says so is not compressed.
const NOT_COMPRESSED: i64 = -1;
const INCORRECT_DATA: i32 = 117;
/// Lists in lists: deeper ones are nobody's data.
const MAX_DEPTH: usize = 32;
const MAX_FIELDS: usize = 10_000;

/// What the buffers of a stream may have, unpacked, all together.
pub(super) struct Allowance {
    left_bytes: i64,
}

/// Checks all messages of a stream.
pub(super) fn check(mut stream: &[u8], max_bytes: u64) -> Result<(), AppendError> {
    let mut allowance = Allowance { left_bytes: i64::try_from(max_bytes).unwrap_or(i64::MAX) };
    while !stream.is_empty() {
        stream = stream.strip_prefix(&CONTINUATION).unwrap_or(stream);
        let Some((length, rest)) = stream.split_first_chunk::<4>() else { return Err(cut_short()) };
        let length = u32::from_le_bytes(*length) as usize;
        if length == 0 {
            return match rest.is_empty() {
                true => Ok(()),
                false => Err(bad("there are bytes behind its end")),
            };
        }
        let message = rest.get(..length).ok_or_else(cut_short)?;
        let message = root_as_message(message).map_err(|error| bad(&error.to_string()))?;
        let body_bytes = usize::try_from(message.bodyLength()).map_err(|_| cut_short())?;
        let body = rest[length..].get(..body_bytes).ok_or_else(cut_short)?;
        allowance.check(&message, body)?;
        stream = &rest[length + body_bytes..];
    }
    Ok(())
}

impl Allowance {
    fn check(&mut self, message: &Message, body: &[u8]) -> Result<(), AppendError> {
        match message.header_type() {
            MessageHeader::Schema => message.header_as_schema().map_or(Ok(()), check_schema),
            MessageHeader::RecordBatch => {
                message.header_as_record_batch().map_or(Ok(()), |batch| self.batch(&batch, body))
            }
            MessageHeader::DictionaryBatch => {
                let data = message.header_as_dictionary_batch().and_then(|batch: DictionaryBatch| batch.data());
                data.map_or(Ok(()), |batch| self.batch(&batch, body))
            }
            _ => Ok(()),
        }
    }

    fn batch(&mut self, batch: &RecordBatch, body: &[u8]) -> Result<(), AppendError> {
        if !(0..=MAX_ROWS).contains(&batch.length()) {
            return Err(bad(&format!("it has {} rows in one message; {MAX_ROWS} are the most", batch.length())));
        }
        let counts = batch.nodes().into_iter().flatten();
        for node in counts {
            // A list's values are bounded by what holds them; values that take no bytes by this.
            if !(0..=i64::from(i32::MAX)).contains(&node.length()) || !(0..=node.length()).contains(&node.null_count())
            {
                return Err(bad("a column has an impossible number of values"));
            }
        }
        let is_compressed = batch.compression().is_some();
        for buffer in batch.buffers().into_iter().flatten() {
            self.buffer(buffer, body, is_compressed)?;
        }
        Ok(())
    }

    fn buffer(&mut self, buffer: &Buffer, body: &[u8], is_compressed: bool) -> Result<(), AppendError> {
        let place = usize::try_from(buffer.offset()).ok().zip(usize::try_from(buffer.length()).ok());
        let bytes = place.and_then(|(at, length)| body.get(at..at.checked_add(length)?));
        let bytes = bytes.ok_or_else(|| bad("a buffer lies outside its message"))?;
        let announced = match bytes.split_first_chunk::<8>() {
            Some((length, _)) if is_compressed => i64::from_le_bytes(*length),
            _ if is_compressed && !bytes.is_empty() => return Err(cut_short()),
            _ => bytes.len() as i64,
        };
        let unpacked = if announced == NOT_COMPRESSED { bytes.len() as i64 } else { announced };
        if unpacked < 0 {
            return Err(bad("a buffer has an impossible length"));
        }
        self.left_bytes = self.left_bytes.saturating_sub(unpacked);
        match self.left_bytes < 0 {
            true => Err(crate::errors::unpacks_to_too_much()),
            false => Ok(()),
        }
    }
}

fn check_schema(schema: Schema) -> Result<(), AppendError> {
    let mut waiting: Vec<_> = schema.fields().into_iter().flatten().map(|field| (field, 1)).collect();
    let mut fields = 0;
    while let Some((field, depth)) = waiting.pop() {
        fields += 1;
        if fields > MAX_FIELDS || depth > MAX_DEPTH {
            return Err(bad("its schema is too large or too deep"));
        }
        waiting.extend(field.children().into_iter().flatten().map(|child| (child, depth + 1)));
    }
    Ok(())
}

pub(super) fn bad(why: &str) -> AppendError {
    AppendError::new(INCORRECT_DATA, &format!("The batch is no Arrow IPC stream that can be read: {why}"))
}

fn cut_short() -> AppendError {
    bad("it is cut short")
}
