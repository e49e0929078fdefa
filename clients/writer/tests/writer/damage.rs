//! A dead writer's segments, cut at every byte and changed at random: sound records are found, damage is
//! told, and nothing that was never written comes out.

use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use windrow_writer::{Buffer, DiskOptions};

use crate::support::{append, copy, left_overs, load, open, seeds, Folder};

fn options() -> DiskOptions {
    DiskOptions { batch_rows: 4, segment_bytes: 16 << 10, ..DiskOptions::default() }
}

/// The folder of a writer that died: rows that name themselves, some in batches, some of these done.
struct Dead {
    folder: Folder,
    /// Rows that are not done, and must be found.
    rows: Vec<String>,
    done: Vec<String>,
}

fn dead(rows: usize, row_bytes: usize) -> Dead {
    let folder = Folder::new();
    let buffer = open(folder.path(), &options());
    let texts: Vec<String> = (0..rows).map(|row| format!("row {row:04} {}", "x".repeat(row_bytes))).collect();
    let mut done = Vec::new();
    for (index, text) in texts.iter().enumerate() {
        append(&buffer, &[text]);
        if index % 6 == 5 {
            let batch = buffer.seal().unwrap().unwrap();
            if index % 12 == 11 {
                done.extend(load(&buffer, &batch));
                buffer.done(batch.id).unwrap();
            }
        }
    }
    drop(buffer);
    let rows = texts.into_iter().filter(|text| !done.contains(text)).collect();
    Dead { folder, rows, done }
}

struct Found {
    rows: Vec<String>,
    complains: bool,
    damaged_bytes: u64,
}

/// Opens a copy of the folder in which one file was changed.
fn found(dead: &Dead, change: impl FnOnce(&[PathBuf])) -> Found {
    let folder = Folder::new();
    copy(dead.folder.path(), folder.path());
    change(&folder.files(".segment"));
    let buffer = open(folder.path(), &options());
    let left_overs = left_overs(&buffer);
    let mut rows: Vec<String> = left_overs.batches.iter().flat_map(|batch| load(&buffer, batch)).collect();
    rows.sort();
    let distinct = rows.len();
    rows.dedup();
    assert_eq!(distinct, rows.len(), "no row comes out twice");
    assert!(rows.iter().all(|row| dead.rows.contains(row) || dead.done.contains(row)), "{rows:?}");
    for batch in left_overs.batches {
        buffer.done(batch.id).unwrap();
    }
    Found { rows, complains: !left_overs.complaints.is_empty(), damaged_bytes: left_overs.damaged_bytes }
}

#[test]
fn undamaged_everything_is_found() {
    let dead = dead(40, 1000);
    assert!(dead.folder.files(".segment").len() >= 3);
    let found = found(&dead, |_| ());
    assert_eq!((found.rows, found.complains), (dead.rows, false));
}

#[test]
fn cut_at_any_byte_whole_records_are_found_and_the_cut_is_told() {
    let dead = dead(7, 3);
    let bytes = std::fs::read(&dead.folder.files(".segment")[0]).unwrap();
    let used = bytes.iter().rposition(|&byte| byte != 0).unwrap() + 1;
    let ends: Vec<(usize, &String)> = dead.rows.iter().map(|row| (end_of(&bytes, row), row)).collect();
    for length in 0..used + 40 {
        let found = found(&dead, |files| {
            std::fs::File::options().write(true).open(&files[0]).unwrap().set_len(length as u64).unwrap();
        });
        let whole: Vec<_> = ends.iter().filter(|(end, _)| *end <= length).map(|(_, row)| (*row).clone()).collect();
        // A file without its header, or without the table's name, gives nothing.
        let missing = whole.len() - found.rows.len();
        assert!(found.rows == whole || found.rows.is_empty() && missing < 2, "{length}: {:?}", found.rows);
        assert_eq!(found.complains, length > 0, "{length}: a file that has become shorter has lost something");
    }
}

fn end_of(bytes: &[u8], row: &str) -> usize {
    bytes.windows(row.len()).position(|window| window == row.as_bytes()).unwrap() + row.len()
}

#[test]
fn an_end_that_was_not_written_whole_is_a_torn_tail_and_no_damage() {
    let dead = dead(7, 3);
    let file = dead.folder.files(".segment").remove(0);
    let bytes = std::fs::read(&file).unwrap();
    let last = bytes.windows(8).rposition(|window| window == b"row 0006").unwrap();
    // From the record's first byte on, some of it never reached the disk.
    let start = last - 36;
    for kept in 0..36 + dead.rows[6].len() {
        let found = found(&dead, |files| {
            let file = std::fs::File::options().write(true).open(&files[0]).unwrap();
            file.write_all_at(&vec![0; bytes.len() - start - kept], (start + kept) as u64).unwrap();
        });
        assert_eq!((found.rows.len(), found.complains), (6, false), "{kept}");
    }
}

#[test]
fn changed_at_random_nothing_is_lost_in_silence() {
    let dead = dead(40, 300);
    let mut lossy = 0;
    for seed in 0..seeds(200) {
        let mut random = fastrand::Rng::with_seed(seed);
        let found = found(&dead, |files| {
            let path = &files[random.usize(..files.len())];
            let file = std::fs::File::options().read(true).write(true).open(path).unwrap();
            for _ in 0..random.usize(1..4) {
                let offset = random.u64(..file.metadata().unwrap().len());
                let length = *random.choice(&[1, 1, 8, 500]).unwrap();
                let bytes: Vec<u8> = (0..length).map(|_| if random.bool() { 0 } else { random.u8(..) }).collect();
                file.write_all_at(&bytes, offset).unwrap();
            }
        });
        let missing: Vec<_> = dead.rows.iter().filter(|row| !found.rows.contains(row)).collect();
        // Damage that reaches to the very end looks like a torn tail.
        let is_tail = missing.first().is_some_and(|first| {
            dead.rows.ends_with(&dead.rows[dead.rows.iter().position(|row| row == *first).unwrap()..])
        }) && missing.len() <= 8;
        assert!(missing.is_empty() || found.complains || is_tail, "seed {seed}: {missing:?}");
        lossy += usize::from(!missing.is_empty());
        assert!(found.damaged_bytes < 1 << 20);
    }
    assert!(lossy > 30, "{lossy}: most changes meet a record");
}

#[test]
fn a_lost_segment_in_the_middle_is_told() {
    let dead = dead(60, 1000);
    let found = found(&dead, |files| std::fs::remove_file(&files[1]).unwrap());
    assert!(found.complains && !found.rows.is_empty() && found.rows.len() < dead.rows.len());
}

#[test]
fn a_later_release_is_left_alone() {
    let dead = dead(5, 3);
    let folder = Folder::new();
    copy(dead.folder.path(), folder.path());
    let file = folder.files(".segment").remove(0);
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[8] = 2;
    let crc = crc32fast::hash(&[&bytes[..12], &bytes[16..64]].concat());
    bytes[12..16].copy_from_slice(&crc.to_le_bytes());
    std::fs::write(&file, &bytes).unwrap();
    let buffer = open(folder.path(), &options());
    let found = left_overs(&buffer);
    assert!(found.batches.is_empty() && found.complaints[0].contains("version 2"), "{found:?}");
    assert_eq!(std::fs::read(&file).unwrap(), bytes);
}
