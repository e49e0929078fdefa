#![no_main]
//! Opens a dead writer's files of any bytes: the next writer finds rows that were written, or says what is
//! wrong. It never fails.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use windrow_writer::{Buffer, Destination, DiskBuffer, DiskOptions, Rows};

fn open(folder: &Path) -> DiskBuffer {
    let options = DiskOptions { batch_rows: 4, segment_bytes: 16 << 10, ..DiskOptions::default() };
    DiskBuffer::open(folder, Arc::<Destination>::default(), options).expect("the folder can be written to")
}

fuzz_target!(|changes: &[u8]| {
    let folder = std::env::temp_dir().join(format!("windrow-fuzz-writer-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir(&folder).expect("a folder");
    write(&folder);
    let segment = segment(&folder);
    let file = fs::File::options().write(true).open(segment).expect("it was listed");
    // Where, and what.
    for change in changes.chunks_exact(3) {
        let offset = u64::from(u16::from_le_bytes([change[0], change[1]])) % 1024;
        file.write_all_at(&change[2..], offset).expect("a byte");
    }
    let buffer = open(&folder);
    let found = buffer.left_overs().expect("damage is no error");
    for batch in found.batches {
        let body = buffer.load(batch.id).expect("what was found can be read");
        assert!(body.each_row().all(|row| row.len() == 5 && row.iter().all(|&byte| byte < 12)));
        buffer.done(batch.id).expect("it was there");
    }
    let _ = fs::remove_dir_all(&folder);
});

fn write(folder: &Path) {
    let buffer = open(folder);
    for number in 0..12u8 {
        buffer.append(Rows::new(&[number; 5], &[5])).expect("there is room");
        if number % 4 == 3 {
            let batch = buffer.seal().ok().flatten().expect("rows wait");
            match number {
                3 => buffer.done(batch.id).expect("it was sealed"),
                _ => drop(buffer.split(batch.id, &[1]).expect("it was sealed")),
            }
        }
    }
}

fn segment(folder: &Path) -> PathBuf {
    let first = |folder: &Path, end: &str| {
        let paths = fs::read_dir(folder).expect("a folder").filter_map(|entry| Some(entry.ok()?.path()));
        let mut found = paths.filter(|path| path.to_string_lossy().ends_with(end));
        found.next().expect("it was written")
    };
    first(&first(folder, ""), ".segment")
}
