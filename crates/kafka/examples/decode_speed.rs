//! How fast record batches are decoded: `cargo run --release -p windrow-kafka --example decode_speed [VALUE_BYTES [RECORDS_PER_BATCH]]`.
//!
//! Batches of small records are made in memory, in every compression, and decoded again and again by one thread, by whose time of the CPU it is counted: checksum,
//! decompression, and every record's offset, timestamp, key and value.

use std::io::Write;
use std::time::{Duration, Instant};

use bytes::Bytes;
use windrow_kafka::{Batches, Decompressor};

const RECORDS: usize = 1_000_000;
const MEASURED: Duration = Duration::from_secs(1);

fn main() {
    let mut arguments = std::env::args().skip(1).map(|word| word.parse().expect("a number"));
    let value_bytes: usize = arguments.next().unwrap_or(40);
    let per_batch = arguments.next().unwrap_or(5_000).clamp(1, RECORDS);
    println!("{RECORDS} records of {value_bytes} bytes, {per_batch} a batch");
    for (id, name) in ["none", "gzip", "snappy", "lz4", "zstd"].into_iter().enumerate() {
        let mut answer = Vec::new();
        for first in (0..RECORDS).step_by(per_batch) {
            push_batch(&mut answer, first, per_batch.min(RECORDS - first), value_bytes, id as u8);
        }
        report(name, answer.into());
    }
}

fn report(name: &str, answer: Bytes) {
    let mut decompressor = Decompressor::new(64 << 20);
    let (mut records, mut value_bytes, begun, cpu_before) = (0u64, 0, Instant::now(), cpu_seconds());
    while begun.elapsed() < MEASURED {
        for batch in Batches::new(answer.clone()) {
            let batch = batch.expect("a batch of our own");
            for record in decompressor.records(&batch).expect("records of our own") {
                let record = record.expect("a record of our own");
                records += 1;
                value_bytes += std::hint::black_box(record).value.map_or(0, <[u8]>::len);
            }
        }
    }
    let wall = begun.elapsed().as_secs_f64();
    let seconds = cpu_seconds().zip(cpu_before).map_or(wall, |(after, before)| after - before);
    println!(
        "{name:>7}: {:>6.1} M records/s, {:>7.0} MB/s of values, {:>4.1} bytes a record on the wire",
        records as f64 / seconds / 1e6,
        value_bytes as f64 / seconds / 1e6,
        answer.len() as f64 / RECORDS as f64
    );
}

/// What this thread has had of the CPU, which others may be using too; Linux says it.
fn cpu_seconds() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(text.split(' ').next()?.parse::<f64>().ok()? / 1e9)
}

fn push_batch(out: &mut Vec<u8>, first: usize, count: usize, value_bytes: usize, compression: u8) {
    let mut records = Vec::new();
    for index in 0..count {
        let mut record = vec![0];
        push_varint(&mut record, index as i64);
        push_varint(&mut record, index as i64);
        push_varint(&mut record, -1);
        let value =
            format!(r#"{{"id":{},"name":"a name","value":{}}}"#, first + index, (first + index) * 7919 % 100_003);
        let value: Vec<u8> = value.bytes().chain(std::iter::repeat(b' ')).take(value_bytes).collect();
        push_varint(&mut record, value.len() as i64);
        record.extend_from_slice(&value);
        push_varint(&mut record, 0);
        push_varint(&mut records, record.len() as i64);
        records.extend_from_slice(&record);
    }
    let records = compress(compression, &records);
    let mut checked = Vec::new();
    checked.extend_from_slice(&i16::from(compression).to_be_bytes());
    checked.extend_from_slice(&(count as i32 - 1).to_be_bytes());
    checked.extend_from_slice(&1_700_000_000_000i64.to_be_bytes());
    checked.extend_from_slice(&1_700_000_000_000i64.to_be_bytes());
    checked.extend_from_slice(&(-1i64).to_be_bytes());
    checked.extend_from_slice(&(-1i16).to_be_bytes());
    checked.extend_from_slice(&(-1i32).to_be_bytes());
    checked.extend_from_slice(&(count as i32).to_be_bytes());
    checked.extend_from_slice(&records);
    out.extend_from_slice(&(first as i64).to_be_bytes());
    out.extend_from_slice(&(checked.len() as i32 + 9).to_be_bytes());
    out.extend_from_slice(&0i32.to_be_bytes());
    out.push(2);
    out.extend_from_slice(&crc32c::crc32c(&checked).to_be_bytes());
    out.extend_from_slice(&checked);
}

fn compress(compression: u8, records: &[u8]) -> Vec<u8> {
    match compression {
        1 => {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
            encoder.write_all(records).and_then(|()| encoder.finish()).expect("memory")
        }
        2 => snap::raw::Encoder::new().compress_vec(records).expect("memory"),
        3 => {
            let mut encoder = lz4_flex::frame::FrameEncoder::new(Vec::new());
            encoder.write_all(records).expect("memory");
            encoder.finish().expect("memory")
        }
        4 => zstd::encode_all(records, 3).expect("memory"),
        _ => records.to_vec(),
    }
}

fn push_varint(out: &mut Vec<u8>, value: i64) {
    let mut zigzag = (value << 1 ^ value >> 63) as u64;
    while zigzag >= 0x80 {
        out.push(zigzag as u8 | 0x80);
        zigzag >>= 7;
    }
    out.push(zigzag as u8);
}
