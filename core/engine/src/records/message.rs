//! The record of a message that its pipeline could not store, as the dead letters keep it; and the part that
//! messages of one topic share.

use windrow_clickhouse::ErrorCode;

use super::bytes::{error, Bytes, RecordError, Writer};

const VERSION: u8 = 1;

/// The origin of messages, and the table that they were to go to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamRecord<'a> {
    pub pipeline: &'a str,
    pub topic: &'a str,
    /// The topic's id: zeros where the brokers give topics no ids.
    pub topic_id: [u8; 16],
    pub database: &'a str,
    pub table: &'a str,
    /// The format in which the pipeline read the messages.
    pub format: &'a str,
}

/// A message, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageRecord<'a> {
    /// Time of the failure by the wall clock, in microseconds since 1970.
    pub failed_micros: u64,
    /// ClickHouse's code of the error; 0 if the error is none of ClickHouse's.
    pub code: ErrorCode,
    pub error: &'a str,
    /// The message could be read: then its rows were sent, and the backend refused them.
    pub was_read: bool,
    /// Number of attempts to store the message.
    pub attempts: u32,
    pub partition: i32,
    pub offset: i64,
    /// The message's own timestamp, in milliseconds.
    pub timestamp_ms: i64,
    /// Bytes of the value as it came: `value` may be its beginning only.
    pub value_bytes: u64,
    pub key: Option<&'a [u8]>,
    pub headers: Vec<(&'a str, Option<&'a [u8]>)>,
    pub value: Option<&'a [u8]>,
}

pub fn encode_stream(stream: &StreamRecord<'_>) -> Vec<u8> {
    let mut out = Writer::default();
    out.u8(VERSION);
    out.bytes(stream.pipeline.as_bytes());
    out.bytes(stream.topic.as_bytes());
    out.0.extend_from_slice(&stream.topic_id);
    for text in [stream.database, stream.table, stream.format] {
        out.bytes(text.as_bytes());
    }
    out.0
}

/// Reads the record of a stream back.
///
/// # Errors
/// Fails where the bytes end too early or too late, the version is not known, or a text is not UTF-8.
pub fn decode_stream(bytes: &[u8]) -> Result<StreamRecord<'_>, RecordError> {
    let mut bytes = Bytes(bytes);
    bytes.version(VERSION, "a pipeline")?;
    let stream = StreamRecord {
        pipeline: bytes.text()?,
        topic: bytes.text()?,
        topic_id: bytes.u128()?.to_le_bytes(),
        database: bytes.text()?,
        table: bytes.text()?,
        format: bytes.text()?,
    };
    bytes.end()?;
    Ok(stream)
}

pub fn encode_message(message: &MessageRecord<'_>) -> Vec<u8> {
    let headers: usize = message.headers.iter().map(|(name, value)| 9 + name.len() + length(*value)).sum();
    let bytes = 80 + message.error.len() + length(message.key) + headers + length(message.value);
    let mut out = Writer(Vec::with_capacity(bytes));
    out.u8(VERSION);
    out.u64(message.failed_micros);
    out.u32(message.code.number().cast_unsigned());
    out.bytes(message.error.as_bytes());
    out.u8(u8::from(message.was_read));
    out.u32(message.attempts);
    out.u32(message.partition.cast_unsigned());
    out.u64(message.offset.cast_unsigned());
    out.u64(message.timestamp_ms.cast_unsigned());
    out.u64(message.value_bytes);
    encode_optional(message.key, &mut out);
    out.u32(message.headers.len() as u32);
    for (name, value) in &message.headers {
        out.bytes(name.as_bytes());
        encode_optional(*value, &mut out);
    }
    encode_optional(message.value, &mut out);
    out.0
}

fn length(bytes: Option<&[u8]>) -> usize {
    bytes.map_or(0, <[u8]>::len)
}

fn encode_optional(bytes: Option<&[u8]>, out: &mut Writer) {
    out.u8(u8::from(bytes.is_some()));
    if let Some(bytes) = bytes {
        out.bytes(bytes);
    }
}

/// Reads the record of a message back.
///
/// # Errors
/// Fails where the bytes are no such record of a known version, or have more of the value than it had.
pub fn decode_message(payload: &[u8]) -> Result<MessageRecord<'_>, RecordError> {
    let mut bytes = Bytes(payload);
    bytes.version(VERSION, "a message")?;
    let message = MessageRecord {
        failed_micros: bytes.u64()?,
        code: ErrorCode::from_number(bytes.u32()?.cast_signed()),
        error: bytes.text()?,
        was_read: bytes.bool()?,
        attempts: bytes.u32()?,
        partition: bytes.u32()?.cast_signed(),
        offset: bytes.u64()?.cast_signed(),
        timestamp_ms: bytes.u64()?.cast_signed(),
        value_bytes: bytes.u64()?,
        key: decode_optional(&mut bytes)?,
        headers: bytes.list(5, |bytes| Ok((bytes.text()?, decode_optional(bytes)?)))?,
        value: decode_optional(&mut bytes)?,
    };
    bytes.end()?;
    match message.value_bytes < length(message.value) as u64 {
        true => error("more of the value is kept than it had"),
        false => Ok(message),
    }
}

fn decode_optional<'a>(bytes: &mut Bytes<'a>) -> Result<Option<&'a [u8]>, RecordError> {
    match bytes.bool()? {
        true => bytes.bytes().map(Some),
        false => Ok(None),
    }
}
