//! Tests on batches as Kafka 4.1 has sent them: written by its own producer and by librdkafka in every
//! compression, and the visible part of transactions. Then come the same bytes, cut off and changed.

use bytes::Bytes;

use super::*;
use crate::wire::golden::golden;
use crate::wire::{decode, FetchRequest, FetchedPartition, Isolation};

const MAX_BYTES: usize = 1 << 20;
const SEED: u64 = 20260102;

#[derive(Debug, PartialEq)]
struct Owned {
    offset: i64,
    timestamp_ms: i64,
    key: Option<Vec<u8>>,
    value: Option<Vec<u8>>,
    headers: Vec<(Vec<u8>, Option<Vec<u8>>)>,
}

impl From<Record<'_>> for Owned {
    fn from(record: Record<'_>) -> Self {
        let owned = |bytes: Option<&[u8]>| bytes.map(<[u8]>::to_vec);
        let headers = record.headers.iter().map(|header| (header.key.to_vec(), owned(header.value)));
        assert_eq!(record.headers.len(), record.headers.iter().count());
        Owned {
            offset: record.offset,
            timestamp_ms: record.timestamp_ms,
            key: owned(record.key),
            value: owned(record.value),
            headers: headers.collect(),
        }
    }
}

/// Returns the record that the producers were told to write at this index.
fn expected(index: i64) -> Owned {
    let text = format!("value {index} ").repeat(index as usize % 4 + 1).into_bytes();
    let value = match index {
        40 => Some(b"0123456789".repeat(10_000)),
        index => (index % 7 != 0).then_some(text),
    };
    let header = |key: &str, value: Option<String>| (key.as_bytes().to_vec(), value.map(String::into_bytes));
    let headers = match index % 3 {
        0 => vec![header("h", Some(format!("v{index}"))), header("h", None), header("empty", Some(String::new()))],
        _ => Vec::new(),
    };
    Owned {
        offset: index,
        timestamp_ms: 1_700_000_000_000 + 7 * index,
        key: (index % 5 != 0).then(|| format!("key-{index}").into_bytes()),
        value,
        headers,
    }
}

fn fetched(name: &str) -> FetchedPartition {
    decode::<FetchRequest>(&golden(name), 11).unwrap().response.topics.remove(0).partitions.remove(0)
}

fn all_records(records: &Bytes, decompressor: &mut Decompressor) -> Result<Vec<Owned>, BatchError> {
    let mut all = Vec::new();
    for batch in Batches::new(records.clone()) {
        let batch = batch?;
        for record in decompressor.records(&batch)? {
            all.push(record?.into());
        }
    }
    Ok(all)
}

#[test]
fn every_compression_of_every_producer_is_read() {
    let mut decompressor = Decompressor::new(MAX_BYTES);
    for producer in ["java", "librdkafka"] {
        for compression in ["none", "gzip", "snappy", "lz4", "zstd"] {
            let name = format!("fetch_v11_{producer}_{compression}");
            let records = fetched(&name).records;
            let count = if compression == "none" { 40 } else { 41 };
            let wanted: Vec<Owned> = (0..count).map(expected).collect();
            assert_eq!(all_records(&records, &mut decompressor).unwrap(), wanted, "{name}");
            let mut of_batches = Batches::new(records).map(|batch| batch.unwrap().compression.to_string());
            assert!(of_batches.any(|each| each == compression), "{name}");
        }
    }
}

#[test]
fn a_broker_s_time_of_arrival_counts_where_the_topic_says_so() {
    let records = fetched("fetch_v11_append").records;
    let read = all_records(&records, &mut Decompressor::new(MAX_BYTES)).unwrap();
    let batch = Batches::new(records).next().unwrap().unwrap();
    assert!(batch.is_log_append_time && batch.max_timestamp_ms > 1_700_000_000_000);
    assert!(read.iter().all(|record| record.timestamp_ms == batch.max_timestamp_ms));
    assert_eq!(read.len(), 3);
}

#[test]
fn only_committed_transactions_are_visible() {
    let visible = |name: &str, isolation| {
        let (partition, mut values) = (fetched(name), Vec::new());
        let mut batches = VisibleBatches::new(&partition, isolation, 0);
        let mut decompressor = Decompressor::new(MAX_BYTES);
        for batch in batches.by_ref() {
            for record in decompressor.records(&batch.unwrap()).unwrap() {
                values.push(String::from_utf8(record.unwrap().value.unwrap().to_vec()).unwrap());
            }
        }
        (values, batches.position() - partition.last_stable_offset)
    };
    // The last transaction is open, and the broker sends nothing behind its beginning.
    let (committed, behind) = visible("fetch_v11_committed", Isolation::ReadCommitted);
    assert_eq!((committed.join(" ").as_str(), behind), ("a b c g h i j", 0));
    let (all, behind) = visible("fetch_v11_uncommitted", Isolation::ReadUncommitted);
    assert_eq!(all.join(" "), "a b c d-aborted e-aborted f-aborted g h i j k-open l");
    assert_eq!(behind, 2);
}

/// Checks that a batch that is cut off is left out: brokers cut the last one.
#[test]
fn cut_answers_give_the_whole_batches_before() {
    let records = fetched("fetch_v11_uncommitted").records;
    let mut decompressor = Decompressor::new(MAX_BYTES);
    let all = all_records(&records, &mut decompressor).unwrap();
    let mut most = 0;
    for length in 0..records.len() {
        let some = all_records(&records.slice(..length), &mut decompressor).unwrap();
        assert!(some.len() >= most && some.len() < all.len());
        assert_eq!(some, all[..some.len()]);
        most = some.len();
    }
}

#[test]
fn a_changed_byte_is_noticed() {
    let (mut random, mut decompressor) = (fastrand::Rng::with_seed(SEED), Decompressor::new(MAX_BYTES));
    let records = fetched("fetch_v11_java_none").records;
    for _ in 0..2_000 {
        let mut changed = records.to_vec();
        // The epoch of the leader, and the first offset, are not under the checksum.
        let at = random.usize(16..changed.len());
        changed[at] ^= random.u8(1..);
        let read = all_records(&changed.into(), &mut decompressor);
        assert!(read.is_err(), "byte {at}: {read:?}");
    }
}

/// Changes bytes and corrects the checksum, so that the code behind the check is reached.
#[test]
fn hostile_batches_do_no_harm() {
    let mut random = fastrand::Rng::with_seed(SEED);
    let mut decompressor = Decompressor::new(MAX_BYTES);
    for compression in ["none", "gzip", "snappy", "lz4", "zstd"] {
        let records = fetched(&format!("fetch_v11_librdkafka_{compression}")).records;
        for _ in 0..2_000 {
            let mut changed = records.to_vec();
            for _ in 0..random.usize(1..4) {
                let at = random.usize(..changed.len());
                changed[at] = random.u8(..);
            }
            seal(&mut changed);
            let _ = all_records(&changed.into(), &mut decompressor);
        }
    }
}

#[test]
fn a_batch_that_grows_over_the_limit_is_refused() {
    for compression in ["gzip", "snappy", "lz4", "zstd"] {
        let records = fetched(&format!("fetch_v11_java_{compression}")).records;
        let error = all_records(&records, &mut Decompressor::new(100_000)).unwrap_err();
        assert_eq!(error, BatchError::TooLarge { offset: 0, max_bytes: 100_000 }, "{compression}");
    }
}

#[test]
fn truncated_bodies_are_refused_in_every_compression() {
    let mut decompressor = Decompressor::new(MAX_BYTES);
    for compression in ["none", "gzip", "snappy", "lz4", "zstd"] {
        let records = fetched(&format!("fetch_v11_java_{compression}")).records;
        for length in head::HEAD_BYTES..records.len() {
            let mut cut = records[..length].to_vec();
            seal(&mut cut);
            let read = all_records(&cut.into(), &mut decompressor);
            assert!(read.is_err(), "{compression} cut at {length}");
        }
    }
}

#[test]
fn what_is_not_spoken_is_named() {
    let original = fetched("fetch_v11_java_none").records;
    let changed = |at: usize, byte: u8| {
        let mut changed = original.to_vec();
        changed[at] = byte;
        seal(&mut changed);
        all_records(&changed.into(), &mut Decompressor::new(MAX_BYTES)).unwrap_err()
    };
    assert_eq!(changed(16, 1), BatchError::Magic { offset: 0, magic: 1 });
    assert_eq!(changed(22, 5), BatchError::Compression { offset: 0, id: 5 });
    assert!(matches!(changed(0, 0x80), BatchError::Corrupt { .. }));
    assert!(matches!(changed(57, 0xFF), BatchError::Corrupt { .. }));
    // More records than there are, and fewer.
    assert!(matches!(changed(60, 41), BatchError::Corrupt { .. }));
    assert!(matches!(changed(60, 39), BatchError::Corrupt { .. }));
    // An offset beyond the last one of the batch.
    assert!(matches!(changed(26, 38), BatchError::Corrupt { .. }));
}

/// Sets size and checksum so that they fit the first batch's bytes.
fn seal(bytes: &mut [u8]) {
    let size = (bytes.len() - 12) as u32;
    bytes[8..12].copy_from_slice(&size.to_be_bytes());
    let crc = crc32c::crc32c(&bytes[21..]);
    bytes[17..21].copy_from_slice(&crc.to_be_bytes());
}
