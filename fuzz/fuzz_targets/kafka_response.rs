#![no_main]
//! Reads answers of any bytes to every request.

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use windrow_kafka::{
    decode_response, FetchRequest, HeartbeatRequest, Isolation, JoinGroupRequest, LeaveGroupRequest,
    ListOffsetsRequest, MetadataRequest, OffsetCommitRequest, OffsetFetchRequest, OffsetForLeaderEpochRequest,
    SyncGroupRequest, VisibleBatches,
};

fuzz_target!(|bytes: &[u8]| {
    let Some((api, frame)) = bytes.split_first() else { return };
    let frame = Bytes::copy_from_slice(frame);
    match api % 14 {
        0 => drop(decode_response::<MetadataRequest>(&frame, 9)),
        1 => drop(decode_response::<MetadataRequest>(&frame, 12)),
        2 => drop(decode_response::<JoinGroupRequest>(&frame, 6)),
        3 => drop(decode_response::<JoinGroupRequest>(&frame, 7)),
        4 => drop(decode_response::<SyncGroupRequest>(&frame, 5)),
        5 => drop(decode_response::<HeartbeatRequest>(&frame, 4)),
        6 => drop(decode_response::<LeaveGroupRequest>(&frame, 4)),
        7 => drop(decode_response::<OffsetCommitRequest>(&frame, 8)),
        8 => drop(decode_response::<OffsetFetchRequest>(&frame, 6)),
        9 => drop(decode_response::<ListOffsetsRequest>(&frame, 5)),
        10 => drop(decode_response::<OffsetForLeaderEpochRequest>(&frame, 3)),
        11 => fetch(&frame, 13),
        _ => fetch(&frame, 11),
    }
});

fn fetch(frame: &Bytes, version: i16) {
    let Ok(answer) = decode_response::<FetchRequest>(frame, version) else { return };
    for partition in answer.response.topics.iter().flat_map(|topic| &topic.partitions) {
        let mut batches = VisibleBatches::new(partition, Isolation::ReadCommitted, 0);
        let mut position = batches.position();
        while let Some(Ok(batch)) = batches.next() {
            assert!(batches.position() > batch.last_offset || batch.last_offset == i64::MAX);
            assert!(batches.position() >= position);
            position = batches.position();
        }
    }
}
