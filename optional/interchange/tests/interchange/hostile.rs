//! Tests with bytes that are cut off, changed or followed by others.

use windrow_columns::{decode_native, NativeLimits};

use crate::support::{native, payloads, table};

#[test]
fn no_file_is_read_that_was_cut_off() {
    for payload in payloads() {
        let plan = table(payload.format);
        for length in 0..payload.bytes.len() {
            let cut = (payload.format.read)(&payload.bytes[..length], &plan);
            // An Avro file is whole after each of its blocks: here there is one, behind the header.
            let is_header = cut.as_ref().is_ok_and(|parsed| parsed.block.rows() == 0);
            assert!(cut.is_err() || (payload.format.name == "Avro" && is_header), "{} cut at {length}", payload.name);
        }
    }
}

#[test]
fn nothing_is_read_that_stands_behind_a_file() {
    for payload in payloads() {
        let plan = table(payload.format);
        for behind in [&b"\0"[..], b"\n", &payload.bytes] {
            let longer = [&payload.bytes[..], behind].concat();
            let read = (payload.format.read)(&longer, &plan).map(|parsed| parsed.block.rows()).ok();
            // The places in a Parquet file count from its start, so that of two files the second one's say the same.
            let is_doubled = payload.format.name == "Parquet" && behind.len() > 1;
            assert_eq!(read, is_doubled.then_some(20), "{} and {} bytes", payload.name, behind.len());
        }
    }
}

#[test]
fn changed_bytes_give_a_sound_block_or_none() {
    let mut random = fastrand::Rng::with_seed(0x1f2e3d);
    for payload in payloads() {
        let plan = table(payload.format);
        for _ in 0..1500 {
            let mut bytes = payload.bytes.clone();
            for _ in 0..random.usize(1..4) {
                change(&mut bytes, &mut random);
            }
            if let Ok(parsed) = (payload.format.read)(&bytes, &plan) {
                let encoded = native(&parsed, &plan);
                if parsed.block.columns() == plan.columns().len() {
                    let decoded = decode_native(&encoded, NativeLimits::default());
                    assert_eq!(decoded.map(|native| native.block), Ok(parsed.block), "{}", payload.name);
                }
            }
        }
    }
}

fn change(bytes: &mut Vec<u8>, random: &mut fastrand::Rng) {
    let at = random.usize(0..bytes.len());
    match random.u8(0..6) {
        0 => bytes[at] ^= 1 << random.u8(0..8),
        1 => bytes[at] = [0, 1, 0x7F, 0x80, 0xFF][random.usize(0..5)],
        2 => drop(bytes.remove(at)),
        3 => bytes.insert(at, random.u8(..)),
        4 => {
            let end = (at + 4).min(bytes.len());
            bytes[at..end].fill(0xFF);
        }
        _ => {
            let from = random.usize(0..bytes.len());
            bytes[at] = bytes[from];
        }
    }
    if bytes.is_empty() {
        bytes.push(0);
    }
}
