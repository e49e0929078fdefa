//! Kafka's record batches as producers write them: compressed with lz4, without keys and headers. All records
//! of a batch have one time, which can be changed afterwards.

use std::io::Write;

use lz4_flex::frame::FrameEncoder;

/// The bits for lz4 in a batch's attributes.
const LZ4: i16 = 3;
const CHECKED_FROM: usize = 21;
const TIMES_AT: usize = 27;
const RECORDS_AT: usize = 61;

/// The records of one batch, one after the other.
#[derive(Default)]
pub struct Batch {
    records: Vec<u8>,
    count: i32,
}

impl Batch {
    pub fn bytes(&self) -> usize {
        self.records.len()
    }

    pub fn push(&mut self, value: &[u8]) {
        let (offset_delta, value_bytes) = (i64::from(self.count), value.len() as i64);
        // Attributes, time, no key, no headers: a byte each.
        let bytes = 4 + varint_bytes(offset_delta) + varint_bytes(value_bytes) + value.len();
        push_varint(&mut self.records, bytes as i64);
        self.records.push(0);
        for number in [0, offset_delta, -1, value_bytes] {
            push_varint(&mut self.records, number);
        }
        self.records.extend_from_slice(value);
        push_varint(&mut self.records, 0);
        self.count += 1;
    }

    /// Returns the batch as it goes over the wire, and empties this one.
    pub fn finish(&mut self, timestamp_ms: i64) -> Vec<u8> {
        let records = compressed(&self.records);
        let mut bytes = Vec::with_capacity(RECORDS_AT + records.len());
        // The broker gives it its offset.
        bytes.extend_from_slice(&0i64.to_be_bytes());
        bytes.extend_from_slice(&(49 + records.len() as i32).to_be_bytes());
        let leader_epoch = -1i32;
        bytes.extend_from_slice(&leader_epoch.to_be_bytes());
        bytes.push(2);
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(&LZ4.to_be_bytes());
        bytes.extend_from_slice(&(self.count - 1).to_be_bytes());
        bytes.extend_from_slice(&timestamp_ms.to_be_bytes());
        bytes.extend_from_slice(&timestamp_ms.to_be_bytes());
        // Neither idempotent nor in a transaction.
        bytes.extend_from_slice(&[0xff; 14]);
        bytes.extend_from_slice(&self.count.to_be_bytes());
        bytes.extend_from_slice(&records);
        self.records.clear();
        self.count = 0;
        seal(&mut bytes);
        bytes
    }
}

/// Gives all records of a finished batch another time.
pub fn stamp(batch: &mut [u8], timestamp_ms: i64) {
    for first_or_last in batch[TIMES_AT..TIMES_AT + 16].chunks_exact_mut(8) {
        first_or_last.copy_from_slice(&timestamp_ms.to_be_bytes());
    }
    seal(batch);
}

fn compressed(records: &[u8]) -> Vec<u8> {
    let mut encoder = FrameEncoder::new(Vec::with_capacity(records.len() / 4));
    // Writing into memory does not fail.
    encoder.write_all(records).and_then(|()| encoder.finish().map_err(Into::into)).unwrap_or_default()
}

fn seal(batch: &mut [u8]) {
    let checksum = crc32c::crc32c(&batch[CHECKED_FROM..]);
    batch[CHECKED_FROM - 4..CHECKED_FROM].copy_from_slice(&checksum.to_be_bytes());
}

fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63) as u64
}

fn varint_bytes(value: i64) -> usize {
    (64 - zigzag(value).leading_zeros() as usize).div_ceil(7).max(1)
}

fn push_varint(out: &mut Vec<u8>, value: i64) {
    let mut rest = zigzag(value);
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

#[cfg(test)]
mod tests {
    use windrow_kafka::{Batches, Decompressor};

    use super::*;

    #[test]
    fn the_products_own_reader_reads_them() {
        let mut batch = Batch::default();
        let values: Vec<Vec<u8>> = (0..300).map(|length| vec![b'x'; length]).collect();
        values.iter().for_each(|value| batch.push(value));
        let mut bytes = batch.finish(0);
        stamp(&mut bytes, 1_700_000_000_123);
        assert_eq!(batch.bytes(), 0);
        let read: Vec<_> = Batches::new(bytes.into()).map(Result::unwrap).collect();
        assert_eq!(read.len(), 1);
        let mut decompressor = Decompressor::new(1 << 20);
        let records: Vec<_> = decompressor.records(&read[0]).unwrap().map(Result::unwrap).collect();
        assert_eq!(records.iter().map(|record| record.value.unwrap().to_vec()).collect::<Vec<_>>(), values);
        assert!(records.iter().zip(0..).all(|(record, offset)| record.offset == offset));
        assert!(records.iter().all(|record| record.timestamp_ms == 1_700_000_000_123));
    }
}
