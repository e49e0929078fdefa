//! Folders, rows and batches for the tests.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;

use windrow_writer::{Body, Buffer, Destination, DiskBuffer, DiskOptions, LeftOvers, Rows, Sealed};

/// A folder that goes with its owner.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new() -> Folder {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("windrow-writer-{}-{number}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        Folder(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Returns all files in the folder and its sub-folders whose names end with `end`, in order.
    pub fn files(&self, end: &str) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut folders = vec![self.0.clone()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                match path.is_dir() {
                    true => folders.push(path),
                    false if path.to_string_lossy().ends_with(end) => found.push(path),
                    false => {}
                }
            }
        }
        found.sort();
        found
    }

    pub fn sub_folders(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(&self.0).unwrap();
        let mut found: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
        found.sort();
        found
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Returns how many seeds to play; `WINDROW_WRITER_SEEDS=10000` plays as many.
pub fn seeds(usual: u64) -> u64 {
    let more = std::env::var("WINDROW_WRITER_SEEDS").ok().and_then(|count| count.parse().ok());
    more.unwrap_or(usual)
}

pub fn table(name: &str) -> Arc<Destination> {
    Arc::new(Destination {
        database: "d".into(),
        table: name.into(),
        columns: vec!["s".into()],
        types: vec!["String".into()],
    })
}

pub fn open(folder: &Path, options: &DiskOptions) -> DiskBuffer {
    DiskBuffer::open(folder, table("t"), options.clone()).unwrap()
}

pub fn append(buffer: &dyn Buffer, rows: &[&str]) {
    let lengths: Vec<u32> = rows.iter().map(|row| row.len() as u32).collect();
    buffer.append(Rows::new(rows.concat().as_bytes(), &lengths)).unwrap();
}

pub fn texts(body: &Body) -> Vec<String> {
    body.each_row().map(|row| String::from_utf8_lossy(row).into_owned()).collect()
}

pub fn load(buffer: &dyn Buffer, sealed: &Sealed) -> Vec<String> {
    let texts = texts(&buffer.load(sealed.id).unwrap());
    assert_eq!(texts.len() as u64, sealed.rows);
    texts
}

pub fn left_overs(buffer: &dyn Buffer) -> LeftOvers {
    buffer.left_overs().unwrap()
}

/// Copies the segments and locks of each sub-folder.
pub fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        match path.is_dir() {
            true => copy(&path, &target),
            false => drop(std::fs::copy(&path, &target).unwrap()),
        }
    }
}
