//! A log in a folder that is removed when the test ends, with its committer on a thread.

// Each test is a crate of its own, and none needs all of this.
#![allow(dead_code)]

pub mod memory;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;

use windrow_log::{Disk, Folder, Log, LogOptions, RecordId, Recovered};

static COUNT: AtomicU64 = AtomicU64::new(0);

pub struct TempFolder(PathBuf);

impl TempFolder {
    pub fn new() -> TempFolder {
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("windrow-journal-{}-{number}", std::process::id()));
        // What a killed test of the same number left behind.
        let _ = std::fs::remove_dir_all(&path);
        TempFolder(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TempFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Returns options with segments of 64 KiB, 1 MiB in all.
pub fn small() -> LogOptions {
    LogOptions { segment_bytes: 64 << 10, max_bytes: 1 << 20, reserve_bytes: 32 << 10 }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    pub id: RecordId,
    pub kind: u8,
    pub context: Option<Vec<u8>>,
    pub payload: Vec<u8>,
}

impl Seen {
    pub fn of(record: &Recovered<'_>) -> Seen {
        Seen {
            id: record.id,
            kind: record.kind,
            context: record.context.map(|(_, bytes)| bytes.to_vec()),
            payload: record.payload.to_vec(),
        }
    }
}

pub struct Opened {
    pub log: Log,
    pub thread: JoinHandle<()>,
    pub found: Vec<Seen>,
}

impl Opened {
    pub fn end(self) -> Vec<Seen> {
        drop(self.log);
        self.thread.join().unwrap();
        self.found
    }
}

pub fn open(folder: &TempFolder, options: LogOptions) -> Opened {
    open_disk(Folder::open(folder.path()).unwrap(), options)
}

pub fn open_disk(disk: impl Disk, options: LogOptions) -> Opened {
    open_and(disk, options, |_| ())
}

/// Opens a log whose committer begins only after `first` has appended its records.
pub fn open_and(disk: impl Disk, options: LogOptions, first: impl FnOnce(&Log)) -> Opened {
    let mut found = Vec::new();
    let (log, committer) = windrow_log::open(disk, options, &mut |record| found.push(Seen::of(&record))).unwrap();
    first(&log);
    Opened { log, thread: std::thread::spawn(move || committer.run()), found }
}
