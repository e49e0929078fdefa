//! The record of a batch, written down before the first attempt in the metadata of the offsets of all its partitions.
//!
//! The record has what a later run, or another member of the group, needs to push the same batch again: its
//! id, and which messages are in it. A coordinator keeps 4096 bytes of text for each partition
//! ([`MAX_TEXT_BYTES`], `offset.metadata.max.bytes`). So the bytes are written as base64, behind a word that
//! distinguishes them from texts of other programs. A whole commit is one message of the coordinator's topic,
//! whose size is bounded too ([`MAX_TEXTS_BYTES`]).
//!
//! ```text
//! version 2 | id, 16 bytes | topics | for each: its id, 16 bytes | length and name | partitions |
//!     for each: partition, first, last - first, leader epoch of the last + 1
//! ```
//!
//! Version 1 had no epochs. Numbers are varints, least significant seven bits first. Topics are in the order
//! of their names, partitions in that of their numbers. Nothing follows the last one.

use std::fmt;
use std::sync::Arc;

use crate::{TopicId, TopicPartition};
use base64::engine::general_purpose::STANDARD_NO_PAD;
use base64::Engine;
use windrow_engine::sink::BatchId;

/// Bytes of text that a coordinator accepts beside an offset, unless it is configured otherwise.
pub const MAX_TEXT_BYTES: usize = 4096;

/// Bytes of the texts beside all offsets of a batch together: half of the size that a broker accepts as one
/// message (`message.max.bytes`). The rest is for names and offsets.
pub const MAX_TEXTS_BYTES: usize = 512 << 10;

const MARK: &str = "windrow:";
/// Mark of a topic's id. A reader that knows only [`MARK`] takes such a text for a foreign one.
const TOPIC_MARK: &str = "windrow-topic:";
const VERSION: u8 = 2;
const WITHOUT_EPOCHS: u8 = 1;
/// Largest name of a topic, which is Kafka's own limit.
const MAX_NAME_BYTES: usize = 249;

/// Messages of a partition, one after another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Range {
    pub topic: Arc<str>,
    pub partition: i32,
    /// Id that distinguishes the topic from an earlier one of the same name, or zeros if the brokers have no ids.
    pub topic_id: TopicId,
    pub first_offset: i64,
    /// Offset of the last message, which belongs to the range.
    pub last_offset: i64,
    /// Epoch of the leader that wrote the last message, or -1 if it isn't known. It shows whether the
    /// messages are still the same ones.
    pub leader_epoch: i32,
}

impl Range {
    pub fn partition(&self) -> TopicPartition {
        TopicPartition { topic: self.topic.clone(), partition: self.partition }
    }

    pub fn next_offset(&self) -> i64 {
        self.last_offset.saturating_add(1)
    }
}

/// The form of a range in logs.
impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}-{}", self.topic, self.partition, self.first_offset, self.last_offset)
    }
}

/// Returns the ranges of a batch as one word, which names the batch in logs and tables.
pub fn token(ranges: &[Range]) -> String {
    let ranges: Vec<String> = ranges.iter().map(Range::to_string).collect();
    ranges.join(",")
}

/// Returns the text beside an offset at which no batch begins: the id of its topic. A member that commits may
/// not know yet that the topic was deleted and made anew. The offset means nothing in the new topic.
pub fn encode_topic(id: TopicId) -> String {
    match id.is_known() {
        true => format!("{TOPIC_MARK}{}", STANDARD_NO_PAD.encode(id.0)),
        false => String::new(),
    }
}

/// Returns the id in such a text, or an unknown one if the text is another.
pub fn decode_topic(text: &str) -> TopicId {
    let bytes = text.strip_prefix(TOPIC_MARK).and_then(|text| STANDARD_NO_PAD.decode(text).ok());
    bytes.and_then(|bytes| bytes.try_into().ok()).map_or_else(TopicId::default, TopicId)
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchRecord {
    pub id: BatchId,
    /// Ranges in the order of topic and partition, one for each partition. There is at least one.
    pub ranges: Vec<Range>,
}

/// The ranges don't fit into a record: the batch has to be smaller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLong;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordError {
    /// The text was not written by a pipeline.
    Foreign,
    /// The record was written by a later version.
    Version(u8),
    Damaged,
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecordError::Foreign => f.write_str("it is not a pipeline's"),
            RecordError::Version(version) => write!(f, "it is of version {version}, which is not known here"),
            RecordError::Damaged => f.write_str("it is damaged"),
        }
    }
}

impl BatchRecord {
    /// Encodes the record as the text beside an offset.
    ///
    /// # Errors
    /// Fails where the text, or the texts of all the batch's partitions together, would be too long.
    pub fn encode(&self) -> Result<String, TooLong> {
        let mut bytes = vec![VERSION];
        bytes.extend_from_slice(&self.id.0.to_be_bytes());
        let topics: Vec<&[Range]> = self.ranges.chunk_by(|one, next| one.topic == next.topic).collect();
        write_varint(&mut bytes, topics.len() as u64);
        for ranges in topics {
            let Some(Range { topic, topic_id, .. }) = ranges.first() else { continue };
            bytes.extend_from_slice(&topic_id.0);
            write_varint(&mut bytes, topic.len() as u64);
            bytes.extend_from_slice(topic.as_bytes());
            write_varint(&mut bytes, ranges.len() as u64);
            for range in ranges {
                write_varint(&mut bytes, range.partition as u64);
                write_varint(&mut bytes, range.first_offset as u64);
                write_varint(&mut bytes, (range.last_offset - range.first_offset) as u64);
                write_varint(&mut bytes, (i64::from(range.leader_epoch.max(-1)) + 1) as u64);
            }
        }
        let text = format!("{MARK}{}", STANDARD_NO_PAD.encode(bytes));
        match text.len() <= MAX_TEXT_BYTES && text.len() * self.ranges.len() <= MAX_TEXTS_BYTES {
            true => Ok(text),
            false => Err(TooLong),
        }
    }

    /// Reads the record from the text beside an offset.
    ///
    /// # Errors
    /// Fails where the text was not written by a pipeline, or by a later version, or is damaged.
    pub fn decode(text: &str) -> Result<BatchRecord, RecordError> {
        let text = text.strip_prefix(MARK).ok_or(RecordError::Foreign)?;
        if text.len() > MAX_TEXT_BYTES {
            return Err(RecordError::Damaged);
        }
        let bytes = STANDARD_NO_PAD.decode(text).map_err(|_| RecordError::Damaged)?;
        match bytes.split_first() {
            Some((&version @ (VERSION | WITHOUT_EPOCHS), rest)) => read(rest, version).ok_or(RecordError::Damaged),
            Some((&version, _)) => Err(RecordError::Version(version)),
            None => Err(RecordError::Damaged),
        }
    }

    /// Returns the batch's range of this partition.
    pub fn range_of(&self, topic: &str, partition: i32) -> Option<&Range> {
        self.ranges.iter().find(|range| *range.topic == *topic && range.partition == partition)
    }
}

fn read(bytes: &[u8], version: u8) -> Option<BatchRecord> {
    let mut rest = bytes;
    let id = BatchId(read_u128(&mut rest)?);
    let mut ranges: Vec<Range> = Vec::new();
    for _ in 0..read_varint(&mut rest)? {
        let topic_id = TopicId(read_u128(&mut rest)?.to_be_bytes());
        let length = usize::try_from(read_varint(&mut rest)?).ok().filter(|length| *length <= MAX_NAME_BYTES)?;
        let (name, after) = rest.split_at_checked(length)?;
        let topic: Arc<str> = std::str::from_utf8(name).ok()?.into();
        rest = after;
        for _ in 0..read_varint(&mut rest)? {
            let partition = i32::try_from(read_varint(&mut rest)?).ok()?;
            let first_offset = i64::try_from(read_varint(&mut rest)?).ok()?;
            let last_offset = first_offset.checked_add(i64::try_from(read_varint(&mut rest)?).ok()?)?;
            let leader_epoch = match version {
                WITHOUT_EPOCHS => -1,
                _ => i32::try_from(read_varint(&mut rest)?).ok()? - 1,
            };
            ranges.push(Range { topic: topic.clone(), partition, topic_id, first_offset, last_offset, leader_epoch });
        }
    }
    let ascend = |one: &Range, next: &Range| (&one.topic, one.partition) < (&next.topic, next.partition);
    (rest.is_empty() && !ranges.is_empty() && ranges.is_sorted_by(ascend)).then_some(BatchRecord { id, ranges })
}

fn read_u128(rest: &mut &[u8]) -> Option<u128> {
    let (bytes, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(u128::from_be_bytes(*bytes))
}

fn write_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn read_varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let (&byte, after) = rest.split_first()?;
        *rest = after;
        let bits = u64::from(byte & 0x7f);
        // What would be lost at the top is no number.
        if bits << shift >> shift != bits {
            return None;
        }
        value |= bits << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(topic: &str, partition: i32, first_offset: i64, last_offset: i64) -> Range {
        Range {
            topic: topic.into(),
            partition,
            topic_id: TopicId(0x0102_0304_u128.to_be_bytes()),
            first_offset,
            last_offset,
            leader_epoch: -1,
        }
    }

    fn sample(leader_epochs: [i32; 3]) -> BatchRecord {
        let id = BatchId(0x0123_4567_89ab_4def_8123_4567_89ab_cdef);
        let mut ranges = vec![
            range("clicks", 0, 0, 0),
            range("events", 0, 127, 128),
            range("events", 3, 1 << 40, (1 << 40) + 70_000),
        ];
        ranges.iter_mut().zip(leader_epochs).for_each(|(range, leader_epoch)| range.leader_epoch = leader_epoch);
        BatchRecord { id, ranges }
    }

    #[test]
    fn a_topic_beside_an_offset() {
        let id = TopicId(*b"0123456789abcdef");
        let text = encode_topic(id);
        assert_eq!(text, "windrow-topic:MDEyMzQ1Njc4OWFiY2RlZg");
        assert_eq!(decode_topic(&text), id);
        assert_eq!(BatchRecord::decode(&text), Err(RecordError::Foreign));
        assert_eq!(encode_topic(TopicId::default()), "", "where brokers have no ids there is nothing to say");
        for end in 0..text.len() {
            assert!(!decode_topic(&text[..end]).is_known(), "cut at {end}");
        }
        assert!(!decode_topic(&sample([-1; 3]).encode().unwrap()).is_known());
    }

    /// A record that version 1 has written, which has to be readable for ever.
    const VERSION_1: &str = "windrow:AQEjRWeJq03vgSNFZ4mrze8CAAAAAAAAAAAAAAAAAQIDBAZjbGlja3MBAAAAAAAAAAAAAAAAAAAAAQIDBAZldmVudHMCAH8BA4CAgICAIPCiBA";

    /// The same record, written by version 2.
    const VERSION_2: &str = "windrow:AgEjRWeJq03vgSNFZ4mrze8CAAAAAAAAAAAAAAAAAQIDBAZjbGlja3MBAAAAAQAAAAAAAAAAAAAAAAECAwQGZXZlbnRzAgB/AQADgICAgIAg8KIErQI";
    const EPOCHS: [i32; 3] = [0, -1, 300];

    #[test]
    fn golden() {
        assert_eq!(sample(EPOCHS).encode().as_deref(), Ok(VERSION_2));
        assert_eq!(BatchRecord::decode(VERSION_2), Ok(sample(EPOCHS)));
        assert_eq!(BatchRecord::decode(VERSION_1), Ok(sample([-1; 3])));
    }

    #[test]
    fn tokens_are_readable() {
        assert_eq!(token(&sample(EPOCHS).ranges), "clicks:0:0-0,events:0:127-128,events:3:1099511627776-1099511697776");
    }

    #[test]
    fn every_truncation_is_noticed() {
        for version in [VERSION_1, VERSION_2] {
            for length in 0..version.len() {
                assert!(BatchRecord::decode(&version[..length]).is_err(), "{length}");
            }
            let bytes = STANDARD_NO_PAD.decode(&version[MARK.len()..]).expect("it is base64");
            for length in 0..bytes.len() {
                let text = format!("{MARK}{}", STANDARD_NO_PAD.encode(&bytes[..length]));
                assert_eq!(BatchRecord::decode(&text), Err(RecordError::Damaged), "{length}");
            }
            let longer = format!("{MARK}{}", STANDARD_NO_PAD.encode([bytes.as_slice(), &[0]].concat()));
            assert_eq!(BatchRecord::decode(&longer), Err(RecordError::Damaged));
        }
    }

    #[test]
    fn random_changes_never_panic_and_what_is_read_can_be_written() {
        let mut random = fastrand::Rng::with_seed(7);
        let bytes = STANDARD_NO_PAD.decode(&VERSION_2[MARK.len()..]).expect("it is base64");
        for _ in 0..20_000 {
            let mut bytes = bytes.clone();
            for _ in 0..random.usize(1..4) {
                let at = random.usize(1..bytes.len());
                bytes[at] = random.u8(..);
            }
            if let Ok(record) = BatchRecord::decode(&format!("{MARK}{}", STANDARD_NO_PAD.encode(bytes))) {
                let text = record.encode().expect("it is as short");
                assert_eq!(BatchRecord::decode(&text), Ok(record));
            }
        }
    }

    #[test]
    fn others_words_and_later_versions_are_told_apart() {
        for foreign in ["", "windrow", "AQEjRWeJ", "some text"] {
            assert_eq!(BatchRecord::decode(foreign), Err(RecordError::Foreign), "{foreign}");
        }
        assert_eq!(BatchRecord::decode("windrow:Aw"), Err(RecordError::Version(3)));
        assert_eq!(BatchRecord::decode("windrow:&"), Err(RecordError::Damaged));
    }

    #[test]
    fn hundreds_of_partitions_fit_and_thousands_are_refused() {
        let record = |partitions| {
            let ranges = (0..partitions).map(|p| range("events", p, 1 << 40, (1 << 40) + 100_000)).collect();
            BatchRecord { id: BatchId(1), ranges }
        };
        let text = record(150).encode().expect("it fits");
        assert!(text.len() <= MAX_TEXT_BYTES);
        assert_eq!(BatchRecord::decode(&text), Ok(record(150)));
        assert_eq!(record(250).encode(), Err(TooLong), "a commit of so many would be larger than a message may be");
        assert_eq!(record(2_000).encode(), Err(TooLong));
    }
}
