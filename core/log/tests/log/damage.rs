//! Tests with damage of every byte, every truncation, every missing file: a log opens with all records that
//! were synced, or it reports the damage.

use crate::support::memory::{Files, MemoryDisk};
use crate::support::{open_disk, Opened, Seen, TempFolder};
use windrow_log::{Folder, LogOptions, OpenError, Room};

fn tiny() -> LogOptions {
    LogOptions { segment_bytes: 4 << 10, max_bytes: 64 << 10, reserve_bytes: 512 }
}

struct Written {
    files: Files,
    /// Records in groups, as they were synced.
    groups: Vec<Vec<Seen>>,
    /// The offset of the last group, of data or the one that closes the log: damage of all of it leaves no
    /// trace of it.
    last_group: usize,
}

/// Writes three segments, closed or as a crash leaves them.
fn written(is_closed: bool) -> Written {
    let disk = MemoryDisk::default();
    let (log, mut committer) = windrow_log::open(disk.clone(), tiny(), &mut |_| ()).unwrap();
    let contexts = [log.context(b"one".to_vec()), log.context(b"another".to_vec())];
    let mut last_group = 0;
    for group in 0..30u8 {
        for member in 0..=group % 3 {
            let payload = vec![group + 1; 100 + usize::from(member) * 77];
            log.append(1 + member, contexts.get(usize::from(member)), payload, Room::Ordinary).unwrap();
        }
        last_group = end_of_last(&disk.files());
        committer.turn();
    }
    if is_closed {
        last_group = end_of_last(&disk.files());
        log.close();
        while committer.turn() {}
    }
    let files = disk.files();
    let groups = grouped(visited(&files).unwrap());
    Written { files, groups, last_group }
}

fn end_of_last(files: &Files) -> usize {
    let last = files.last_key_value().and_then(|(_, bytes)| bytes.iter().rposition(|byte| *byte != 0));
    last.map_or(0, |at| (at + 1).next_multiple_of(8))
}

fn grouped(found: Vec<Seen>) -> Vec<Vec<Seen>> {
    let mut groups: Vec<Vec<Seen>> = Vec::new();
    for seen in found {
        match groups.last_mut() {
            Some(group) if group[0].payload[0] == seen.payload[0] => group.push(seen),
            _ => groups.push(vec![seen]),
        }
    }
    groups
}

fn visited(files: &Files) -> Result<Vec<Seen>, OpenError> {
    let mut found = Vec::new();
    windrow_log::open(MemoryDisk::of(files), tiny(), &mut |record| found.push(Seen::of(&record)))?;
    Ok(found)
}

/// Checks that a damaged log has all records, or all but some of the last group if it was not closed, or
/// gives an error with advice.
fn check(written: &Written, is_closed: bool, damaged: &Files, what: &str) {
    match visited(damaged) {
        Ok(found) => {
            let all: Vec<Seen> = written.groups.concat();
            let sure = all.len() - if is_closed { 0 } else { written.groups.last().unwrap().len() };
            assert!(found.len() >= sure && all.starts_with(&found), "{what}: {} of {} records", found.len(), all.len());
        }
        Err(error @ OpenError::Corrupt(_)) => assert!(error.to_string().contains("repair"), "{what}: {error}"),
        Err(OpenError::Version { .. }) => {}
        Err(error) => panic!("{what}: {error}"),
    }
}

#[test]
fn the_log_under_test_has_several_segments_and_all_records() {
    for is_closed in [false, true] {
        let written = written(is_closed);
        assert!(written.files.len() >= 3, "{}", written.files.len());
        assert_eq!(written.groups.len(), 30);
        assert_eq!(written.groups.concat().len(), 60);
    }
}

#[test]
fn no_changed_bit_loses_a_synced_record_in_silence() {
    for is_closed in [false, true] {
        let written = written(is_closed);
        for (name, bytes) in &written.files {
            for at in 0..bytes.len() {
                let mut damaged = written.files.clone();
                damaged.get_mut(name).unwrap()[at] ^= 1 << (at % 8);
                check(&written, is_closed, &damaged, &format!("{name} at {at}, closed: {is_closed}"));
            }
        }
    }
}

#[test]
fn no_zeroed_or_garbled_part_loses_a_synced_record_in_silence() {
    let mut random = fastrand::Rng::with_seed(11);
    for is_closed in [false, true] {
        let written = written(is_closed);
        for (name, bytes) in &written.files {
            for round in 0..1000 {
                let start = random.usize(..bytes.len());
                let end = (start + random.usize(1..600)).min(bytes.len());
                let mut damaged = written.files.clone();
                let part = &mut damaged.get_mut(name).unwrap()[start..end];
                part.iter_mut().for_each(|byte| *byte = if round % 2 == 0 { 0 } else { random.u8(..) });
                if *name == *written.files.keys().next_back().unwrap() && end > written.last_group {
                    let _ = visited(&damaged);
                } else {
                    check(&written, is_closed, &damaged, &format!("{name} {start}..{end}, closed: {is_closed}"));
                }
            }
        }
    }
}

#[test]
fn no_truncation_loses_a_synced_record_in_silence() {
    for is_closed in [false, true] {
        let written = written(is_closed);
        for (name, bytes) in &written.files {
            for end in 0..bytes.len() {
                let mut damaged = written.files.clone();
                damaged.get_mut(name).unwrap().truncate(end);
                // The newest file without a record is how one looks that was just being made.
                if *name == *written.files.keys().next_back().unwrap() && end <= 96 {
                    continue;
                }
                check(&written, is_closed, &damaged, &format!("{name} up to {end}, closed: {is_closed}"));
            }
        }
    }
}

#[test]
fn a_missing_segment_is_noticed_but_at_the_front() {
    let written = written(true);
    let names: Vec<&String> = written.files.keys().collect();
    for name in &names[1..names.len() - 1] {
        let mut damaged = written.files.clone();
        damaged.remove(*name);
        let Err(OpenError::Corrupt(corruption)) = visited(&damaged) else { panic!("{name} is not missed") };
        assert!(corruption.why.contains(&**name), "{corruption}");
    }
}

#[test]
fn a_segment_in_anothers_place_is_noticed() {
    let written = written(true);
    let names: Vec<&String> = written.files.keys().collect();
    let mut damaged = written.files.clone();
    damaged.insert(names[0].clone(), written.files[names[1]].clone());
    assert!(matches!(visited(&damaged), Err(OpenError::Corrupt(_))));
}

#[test]
fn what_cannot_be_opened_is_left_as_it_was() {
    let written = written(true);
    let mut files = written.files.clone();
    let first = files.keys().next().unwrap().clone();
    files.get_mut(&first).unwrap()[300] ^= 1;
    files.insert("0000000000000099.rewrite".into(), vec![1, 2, 3]);
    let disk = MemoryDisk::of(&files);
    assert!(windrow_log::open(disk.clone(), tiny(), &mut |_| ()).is_err());
    assert!(disk.files() == files);
}

#[test]
fn a_torn_tail_is_cut_off_and_the_log_goes_on() {
    let written = written(false);
    let (name, bytes) = written.files.last_key_value().unwrap();
    let end = bytes.iter().rposition(|byte| *byte != 0).unwrap();
    let mut torn = written.files.clone();
    torn.get_mut(name).unwrap()[end - 40..].fill(0);
    let disk = MemoryDisk::of(&torn);
    for life in 0..3 {
        let Opened { log, thread, found } = open_disk(disk.clone(), tiny());
        assert!(found.len() >= 57 + life, "{}", found.len());
        log.append(1, None, vec![99; 10], Room::Ordinary).unwrap().durable.wait().unwrap();
        drop(log);
        thread.join().unwrap();
    }
}

#[test]
fn random_files_are_no_danger() {
    let mut random = fastrand::Rng::with_seed(3);
    let written = written(false);
    for _ in 0..2000 {
        let mut files = written.files.clone();
        for bytes in files.values_mut() {
            for _ in 0..random.usize(..6) {
                let at = random.usize(..bytes.len());
                bytes[at] = random.u8(..);
            }
            if random.u8(..) < 20 {
                bytes.truncate(random.usize(..bytes.len()));
            }
        }
        let _ = visited(&files);
    }
}

#[test]
fn a_damaged_log_is_inspected_repaired_and_opened() {
    let written = written(true);
    let all = written.groups.concat();
    for (name, bytes) in &written.files {
        for at in (0..bytes.len()).step_by(61) {
            let folder = TempFolder::new();
            let disk = Folder::open(folder.path()).unwrap();
            for (other, bytes) in &written.files {
                let mut bytes = bytes.clone();
                if other == name {
                    let end = (at + 40).min(bytes.len());
                    bytes[at..end].fill(0xA5);
                }
                std::fs::write(folder.path().join(other), bytes).unwrap();
            }
            let is_damaged = windrow_log::look(&disk, &mut |_| ()).is_err();
            let inspection = windrow_log::inspect(&disk).unwrap();
            assert_eq!(inspection.damaged, is_damaged, "{name} at {at}:\n{inspection}");
            let repaired = windrow_log::repair(&disk).unwrap();
            assert_eq!(!repaired.is_empty(), is_damaged, "{name} at {at}: {repaired:?}");
            let mut found = Vec::new();
            let visit = &mut |record: windrow_log::Recovered<'_>| found.push(Seen::of(&record));
            drop(windrow_log::open(disk, tiny(), visit).unwrap_or_else(|error| panic!("{name} at {at}: {error}")));
            assert!(found.iter().all(|record| all.contains(record)), "{name} at {at}");
            // A header takes all of its segment with it, a context what needs it.
            let is_context = (96..1000).contains(&at);
            assert!(found.len() + 3 >= all.len() || at < 96 || is_context, "{name} at {at}: {} left", found.len());
            assert_eq!(folder.path().join("damaged").join(name).exists(), is_damaged);
        }
    }
}
