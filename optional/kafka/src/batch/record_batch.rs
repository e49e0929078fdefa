//! The iteration over the batches that a broker sends one after another.

use bytes::{Buf, Bytes};

use crate::batch::compression::Compression;
use crate::batch::error::BatchError;
use crate::batch::head::{Head, CHECKED_FROM, HEAD_BYTES, MAGIC_AT, PREFIX_BYTES};
use crate::batch::records::Records;

/// A batch whose checksum was right. Cloning is cheap: clones share the memory of the answer that the batch came in.
#[derive(Debug, Clone)]
pub struct RecordBatch {
    /// Offset of the first record, also if that record was removed by compaction.
    pub base_offset: i64,
    /// Offset of the last record, also if that record was removed by compaction. The next batch begins behind it.
    pub last_offset: i64,
    pub leader_epoch: i32,
    pub base_timestamp_ms: i64,
    /// Newest timestamp of the records, or -1 if they have none.
    pub max_timestamp_ms: i64,
    /// True if the timestamp of every record is the broker's time of arrival.
    pub is_log_append_time: bool,
    pub producer_id: i64,
    pub is_transactional: bool,
    /// True if the batch holds the end of a transaction instead of records.
    pub is_control: bool,
    pub compression: Compression,
    /// Number of records.
    pub count: u32,
    /// The records as they were sent, perhaps compressed.
    pub(crate) body: Bytes,
}

impl RecordBatch {
    /// Returns the records of a batch that is not compressed.
    pub(crate) fn uncompressed_records(&self) -> Records<'_> {
        Records::new(self, &self.body)
    }

    fn read(whole: Bytes) -> Result<RecordBatch, BatchError> {
        let offset = base_offset(&whole);
        let magic = whole.get(MAGIC_AT).map_or(-1, |magic| *magic as i8);
        if magic != 2 {
            return Err(match magic {
                0 | 1 => BatchError::Magic { offset, magic },
                _ => BatchError::corrupt(offset, format!("its magic is {magic}")),
            });
        }
        let Some(head) = whole.first_chunk().map(Head) else {
            return Err(BatchError::corrupt(offset, "it is shorter than its head"));
        };
        // A fuzzer would get no further.
        if !cfg!(feature = "fuzzing") && crc32c::crc32c(&whole[CHECKED_FROM..]) != head.crc() {
            return Err(BatchError::Checksum { offset });
        }
        let last_offset =
            u32::try_from(head.last_offset_delta()).ok().and_then(|delta| offset.checked_add(delta.into()));
        let last_offset = last_offset.filter(|_| offset >= 0);
        let last_offset = last_offset.ok_or_else(|| BatchError::corrupt(offset, "its offsets are out of range"))?;
        let count = u32::try_from(head.count())
            .map_err(|_| BatchError::corrupt(offset, "its number of records is negative"))?;
        let id = head.compression_id();
        let compression = Compression::from_id(id).ok_or(BatchError::Compression { offset, id })?;
        Ok(RecordBatch {
            base_offset: offset,
            last_offset,
            leader_epoch: head.leader_epoch(),
            base_timestamp_ms: head.base_timestamp_ms(),
            max_timestamp_ms: head.max_timestamp_ms(),
            is_log_append_time: head.is_log_append_time(),
            producer_id: head.producer_id(),
            is_transactional: head.is_transactional(),
            is_control: head.is_control(),
            compression,
            count,
            body: whole.slice(HEAD_BYTES..),
        })
    }
}

fn base_offset(whole: &[u8]) -> i64 {
    whole.first_chunk().map_or(-1, |bytes| i64::from_be_bytes(*bytes))
}

/// The place of a whole batch in the log, as its head says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub first_offset: i64,
    pub next_offset: i64,
    /// Epoch of the leader that wrote the batch, or -1 if it is unknown.
    pub leader_epoch: i32,
}

/// Returns the offset behind the last whole batch of a partition's answer, as the heads say, or `None` if
/// there is no whole batch. `each` is called with every batch that is passed.
pub(crate) fn end_offset(records: &[u8], mut each: impl FnMut(Span)) -> Option<i64> {
    let (mut rest, mut end) = (records, None);
    while let Some(size) = rest.get(8..PREFIX_BYTES).and_then(|field| field.first_chunk()) {
        let size = usize::try_from(i32::from_be_bytes(*size)).ok();
        let Some((whole, behind)) = size.and_then(|size| rest.split_at_checked(PREFIX_BYTES + size)) else { break };
        let behind_it = match whole.first_chunk().map(Head) {
            Some(head) if whole[MAGIC_AT] == 2 => {
                let first_offset = base_offset(whole);
                let delta = i64::from(head.last_offset_delta().max(0));
                let next_offset = first_offset.saturating_add(delta).saturating_add(1);
                each(Span { first_offset, next_offset, leader_epoch: head.leader_epoch() });
                next_offset
            }
            // Whoever reads it will say what is wrong with it.
            _ => return Some(end.unwrap_or(i64::MIN)),
        };
        end = end.max(Some(behind_it));
        rest = behind;
    }
    end
}

/// An iterator over the batches of a partition's answer. A batch that is cut off at the end, as brokers do,
/// is left out. An error ends the iteration, since the beginning of the next batch can't be trusted.
#[derive(Debug, Clone)]
pub struct Batches {
    rest: Bytes,
}

impl Batches {
    pub fn new(records: Bytes) -> Self {
        Self { rest: records }
    }
}

impl Iterator for Batches {
    type Item = Result<RecordBatch, BatchError>;

    fn next(&mut self) -> Option<Self::Item> {
        let size_field: [u8; 4] = *self.rest.get(8..PREFIX_BYTES)?.first_chunk()?;
        let size = i32::from_be_bytes(size_field);
        let batch = match usize::try_from(size) {
            Ok(size) if PREFIX_BYTES + size > self.rest.len() => return None,
            Ok(size) => {
                let whole = self.rest.slice(..PREFIX_BYTES + size);
                self.rest.advance(PREFIX_BYTES + size);
                RecordBatch::read(whole)
            }
            Err(_) => Err(BatchError::corrupt(base_offset(&self.rest), "its size is negative")),
        };
        if batch.is_err() {
            self.rest.clear();
        }
        Some(batch)
    }
}
