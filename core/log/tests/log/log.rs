//! Tests of a log on the real disk: durable records are there after a restart, released records free their room.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use crate::support::memory::{Faults, MemoryDisk};
use crate::support::{open, open_and, open_disk, small, Opened, TempFolder};
use windrow_log::{Bound, CommitError, Folder, Log, LogFull, ReadError, RecordId, Room};

const KIND: u8 = 1;
/// The kind of records that are about others.
const ABOUT: u8 = 2;

#[test]
fn what_was_durable_is_there_after_a_restart() {
    let folder = TempFolder::new();
    let mut ids = Vec::new();
    for life in 0..5u8 {
        let Opened { log, thread, found } = open(&folder, small());
        assert_eq!(found.iter().map(|record| record.id).collect::<Vec<_>>(), ids, "life {life}");
        for record in &found {
            assert_eq!(record.payload, format!("record {}", record.id).into_bytes());
            assert_eq!(record.context.as_deref(), Some(&b"shared"[..]));
        }
        let context = log.context(b"shared".to_vec());
        for _ in 0..100 {
            let next = log.usage().next_id;
            let appended =
                log.append(KIND, Some(&context), format!("record {next}").into_bytes(), Room::Ordinary).unwrap();
            assert_eq!(appended.id, RecordId(next));
            ids.push(appended.id);
            if ids.len() % 7 == 0 {
                appended.durable.wait().unwrap();
            }
        }
        // In every other life nobody says goodbye to the committer, but the handle's drop.
        if life % 2 == 0 {
            log.close();
        }
        drop(log);
        thread.join().unwrap();
    }
}

#[test]
fn records_are_read_by_their_ids_from_many_segments() {
    let folder = TempFolder::new();
    let payload = |id: u64| vec![id as u8; 50 + (id as usize * 37) % 3000];
    let mut first = None;
    for life in 0..3 {
        let Opened { log, thread, found } = open(&folder, small());
        assert_eq!(found.len(), life * 150);
        let first = *first.get_or_insert(log.usage().next_id);
        let contexts = [log.context(vec![b'a'; 300]), log.context(vec![b'b'; 10])];
        for number in 0..150u64 {
            let id = log.usage().next_id;
            let context = contexts.get((number % 3) as usize);
            log.append(KIND, context, payload(id), Room::Ordinary).unwrap().durable.wait().unwrap();
        }
        assert!(log.usage().segments > 2, "{:?}", log.usage());
        let mut reader = log.reader();
        for id in (first..log.usage().next_id).chain([2, 1, 100, 0].map(|rank| first + rank)) {
            let record = reader.read(RecordId(id)).unwrap();
            assert_eq!((record.id.0, record.payload), (id, payload(id)));
            let shared = record.context.map(|context| context.bytes()[0]);
            assert_eq!(shared, [Some(b'a'), Some(b'b'), None][((id - first) % 150 % 3) as usize], "{id}");
        }
        assert_eq!(log.read(RecordId(first + 100_000)).unwrap_err(), ReadError::Gone);
        drop((log, reader));
        thread.join().unwrap();
    }
}

#[test]
fn released_segments_go_from_the_front_and_ids_go_on() {
    let folder = TempFolder::new();
    let Opened { log, thread, .. } = open(&folder, small());
    let mut ids = Vec::new();
    while log.usage().segments < 6 {
        let appended = log.append(KIND, None, vec![7; 2000], Room::Ordinary).unwrap();
        ids.push(appended.id);
        appended.durable.wait().unwrap();
    }
    let (first, rest) = ids.split_first().unwrap();
    log.release_all(rest.iter().copied());
    assert_eq!(log.read(*first).unwrap().payload, vec![7; 2000]);
    assert_eq!(log.read(rest[0]).unwrap_err(), ReadError::Gone);
    log.release(*first);
    // The committer does a chore before it looks for the next group.
    log.append(KIND, None, Vec::new(), Room::Ordinary).unwrap().durable.wait().unwrap();
    drop(log);
    thread.join().unwrap();
    let Opened { log, thread, found } = open(&folder, small());
    assert_eq!(log.usage().segments, 1);
    assert!(found.len() < 40 && found.last().unwrap().id.0 == first.0 + ids.len() as u64, "{}", found.len());
    assert_eq!(log.usage().next_id, first.0 + ids.len() as u64 + 1);
    drop(log);
    thread.join().unwrap();
}

#[test]
fn a_record_may_be_larger_than_a_segment() {
    let folder = TempFolder::new();
    let Opened { log, thread, .. } = open(&folder, small());
    for length in [10, 100_000, 10, 300_000] {
        log.append(KIND, None, vec![1; length], Room::Ordinary).unwrap().durable.wait().unwrap();
    }
    drop(log);
    thread.join().unwrap();
    let found = open(&folder, small()).end();
    assert_eq!(found.iter().map(|record| record.payload.len()).collect::<Vec<_>>(), [10, 100_000, 10, 300_000]);
}

#[test]
fn a_full_log_refuses_and_the_reserve_is_for_what_frees_room() {
    let folder = TempFolder::new();
    let Opened { log, thread, .. } = open(&folder, small());
    let mut ids = Vec::new();
    let full = loop {
        match log.append(KIND, None, vec![1; 1000], Room::Ordinary) {
            Ok(appended) => {
                ids.push(appended.id);
                appended.durable.wait().unwrap();
            }
            Err(full) => break full,
        }
    };
    assert_eq!(full, LogFull { max_bytes: small().max_bytes, bound: Bound::Disk });
    assert!(log.usage().file_bytes <= small().max_bytes);
    assert!(log.usage().live_bytes > small().max_bytes / 2, "{:?}", log.usage());
    let done = log.append(2, None, vec![2; 1000], Room::Reserve).unwrap();
    log.release_all(ids);
    log.release(done.id);
    done.durable.wait().unwrap();
    // Room comes back with the next turn of the committer at the latest.
    log.append(2, None, Vec::new(), Room::Reserve).unwrap().durable.wait().unwrap();
    while log.usage().segments > 2 {
        log.append(2, None, Vec::new(), Room::Reserve).unwrap().durable.wait().unwrap();
    }
    log.append(KIND, None, vec![1; 1000], Room::Ordinary).unwrap().durable.wait().unwrap();
    drop(log);
    thread.join().unwrap();
}

#[test]
fn many_writers_share_syncs_and_callbacks_come_in_order() {
    let folder = TempFolder::new();
    let called = Arc::new(AtomicUsize::new(0));
    let all = called.clone();
    let append_thousand = move |log: &Log| {
        for number in 0..1000 {
            let called = all.clone();
            let then = move |_, outcome: Result<(), _>| {
                outcome.unwrap();
                assert_eq!(called.fetch_add(1, Ordering::Relaxed), number);
            };
            log.append_then(KIND, None, vec![3; 20], Room::Ordinary, then).unwrap();
        }
    };
    // They are there before the committer looks: it can't write each alone, however fast it is.
    let Opened { log, thread, .. } = open_and(Folder::open(folder.path()).unwrap(), small(), append_thousand);
    let writers: Vec<_> = (0..8)
        .map(|_| {
            let log = log.clone();
            std::thread::spawn(move || {
                for _ in 0..100 {
                    log.append(KIND, None, vec![3; 20], Room::Ordinary).unwrap().durable.wait().unwrap();
                }
            })
        })
        .collect();
    writers.into_iter().for_each(|writer| writer.join().unwrap());
    assert_eq!(called.load(Ordering::Relaxed), 1000);
    assert!(log.usage().syncs < 1800, "{:?}", log.usage());
    drop(log);
    thread.join().unwrap();
    assert_eq!(open(&folder, small()).end().len(), 1800);
}

#[test]
fn what_is_appended_to_a_closed_log_is_not_kept_and_says_so() {
    let folder = TempFolder::new();
    let Opened { log, thread, .. } = open(&folder, small());
    log.append(KIND, None, vec![1], Room::Ordinary).unwrap();
    log.close();
    thread.join().unwrap();
    assert!(log.append(KIND, None, vec![2], Room::Ordinary).unwrap().durable.wait().is_err());
    assert_eq!(open(&folder, small()).end().len(), 1);
}

#[test]
fn what_is_left_of_old_segments_is_copied_and_found_where_it_was() {
    let folder = TempFolder::new();
    let Opened { log, thread, .. } = open(&folder, small());
    let contexts = [log.context(b"kept".to_vec()), log.context(b"gone".to_vec())];
    let (mut kept, mut reader) = (Vec::new(), log.reader());
    // Ten times what the log may take: one record in fifty stays.
    for number in 0..10_000u32 {
        let stays = number % 50 == 0;
        let context = &contexts[usize::from(!stays)];
        let payload = [&number.to_le_bytes()[..], &[5; 900]].concat();
        let appended = log.append(KIND, Some(context), payload.clone(), Room::Ordinary).unwrap();
        if number % 4 == 0 {
            appended.durable.wait().unwrap();
        }
        match stays {
            true => kept.push((appended.id, payload)),
            false => log.release(appended.id),
        }
        if number % 700 == 699 {
            // Both of those that were copied and of those that weren't yet.
            for (id, payload) in &kept {
                let record = reader.read(*id).unwrap();
                assert_eq!((&record.payload, record.context.unwrap().bytes()), (payload, &b"kept"[..]));
            }
        }
    }
    assert!(log.usage().file_bytes <= small().max_bytes, "{:?}", log.usage());
    drop((log, reader));
    thread.join().unwrap();
    let Opened { log, thread, found } = open(&folder, small());
    let left: Vec<_> = found.iter().filter(|record| record.context.as_deref() == Some(b"kept")).collect();
    assert_eq!(left.len(), kept.len());
    for (found, (id, payload)) in left.iter().zip(&kept) {
        assert_eq!((found.id, &found.payload), (*id, payload));
        assert_eq!(log.read(*id).unwrap().payload, *payload);
    }
    // What had been released and was not yet left out comes back; nothing else does.
    assert!(found.len() < 2000, "{}", found.len());
    drop(log);
    thread.join().unwrap();
}

/// Appends records until one is refused by a disk with room for `most_bytes`. Returns the ids of the written
/// records, and the first refused id.
fn fill(disk: &MemoryDisk, log: &Log, most_bytes: u64, payload_bytes: usize) -> (Vec<RecordId>, RecordId) {
    disk.fail(Faults { most_bytes: Some(most_bytes), ..Faults::default() });
    let (mut written, mut refused) = (Vec::new(), None);
    while refused.is_none() {
        let append = |_| log.append(KIND, None, vec![1; payload_bytes], Room::Ordinary).unwrap();
        let batch: Vec<_> = (0..50).map(append).collect();
        for appended in batch {
            match appended.durable.wait() {
                Ok(()) => written.push(appended.id),
                Err(CommitError::DiskFull(_)) => _ = refused.get_or_insert(appended.id),
                Err(error) => panic!("{error}"),
            }
        }
    }
    (written, refused.unwrap())
}

fn says(log: &Log, payload: Vec<u8>, about: &[RecordId]) -> Result<(), CommitError> {
    log.append_about(ABOUT, payload, about.to_vec()).unwrap().durable.wait()
}

#[test]
fn what_is_said_of_a_record_that_was_not_written_takes_no_room() {
    let disk = MemoryDisk::default();
    let Opened { log, thread, .. } = open_disk(disk.clone(), small());
    let (written, refused) = fill(&disk, &log, 200 << 10, 500);
    let before = log.usage();
    assert!(log.is_missing(refused) && !log.is_missing(written[0]) && log.has_failed());
    for _ in 0..1000 {
        assert_eq!(says(&log, vec![2; 500], &[refused]), Ok(()));
    }
    assert_eq!(log.usage().written_bytes, before.written_bytes);
    // With the record itself, in one group: it is refused, and so has nothing said about it.
    let together = |log: &Log| {
        let one = log.append(KIND, None, vec![1; 60 << 10], Room::Ordinary).unwrap();
        let about = log.append_about(ABOUT, vec![2; 100], vec![one.id]).unwrap();
        (one.durable.wait(), about.durable.wait())
    };
    assert!(matches!(together(&log), (Err(CommitError::DiskFull(_)), Ok(()))));
    assert_eq!(log.usage().written_bytes, before.written_bytes);
    // What is about one that is there is said.
    assert_eq!(says(&log, vec![2; 500], &[refused, written[0]]), Ok(()));
    assert!(log.usage().written_bytes > before.written_bytes);
    drop(log);
    thread.join().unwrap();
    let found = open_disk(disk, small()).end();
    let ids: Vec<RecordId> = found.iter().filter(|record| record.kind == KIND).map(|record| record.id).collect();
    assert_eq!((ids, found.len()), (written.clone(), written.len() + 1));
}

#[test]
fn a_disk_with_room_for_less_than_a_segment_gets_a_smaller_one() {
    let disk = MemoryDisk::default();
    let Opened { log, thread, .. } = open_disk(disk.clone(), small());
    let (written, _) = fill(&disk, &log, 200 << 10, 500);
    while says(&log, vec![2; 500], &written[..1]).is_ok() {}
    // Somebody else has given a little back: for what frees room, not for more of what takes it.
    disk.fail(Faults { most_bytes: Some(206 << 10), ..Faults::default() });
    assert!(log.append(KIND, None, vec![1; 500], Room::Ordinary).unwrap().durable.wait().is_err());
    for _ in 0..6 {
        assert_eq!(says(&log, vec![2; 500], &written[..1]), Ok(()));
    }
    assert!(disk.files().values().map(Vec::len).sum::<usize>() <= 206 << 10);
    drop(log);
    thread.join().unwrap();
    disk.fail(Faults::default());
    let Opened { log, thread, found } = open_disk(disk, small());
    assert_eq!(found.iter().filter(|record| record.kind == KIND).count(), written.len());
    log.append(KIND, None, vec![1; 500], Room::Ordinary).unwrap().durable.wait().unwrap();
    drop(log);
    thread.join().unwrap();
}

/// The oldest segment can be finished on a full disk, however small the records are.
#[test]
fn on_a_full_disk_there_is_room_to_be_done_with_the_oldest_segment() {
    for payload_bytes in [1, 20, 100, 1000] {
        let disk = MemoryDisk::default();
        let (log, mut committer) = windrow_log::open(disk.clone(), small(), &mut |_| ()).unwrap();
        committer.keep_room_for_ends(96);
        let thread = std::thread::spawn(move || committer.run());
        let (written, _) = fill(&disk, &log, 200 << 10, payload_bytes);
        disk.fail(Faults { most_bytes: Some(0), ..Faults::default() });
        let segments = log.usage().segments;
        let mut left = written.as_slice();
        while log.usage().segments == segments {
            let (some, others) = left.split_at(100.min(left.len()));
            left = others;
            // As the journal does it: what they are sent with, then that they are done.
            for _ in 0..2 {
                assert_eq!(
                    says(&log, vec![2; 21 + 8 * some.len()], some),
                    Ok(()),
                    "{payload_bytes}, {} left",
                    left.len()
                );
            }
            log.release_all(some.iter().copied());
            log.append_about(ABOUT, Vec::new(), vec![written[written.len() - 1]]).unwrap().durable.wait().unwrap();
        }
        drop(log);
        thread.join().unwrap();
    }
}
