//! A disk in memory that fails on demand, and a store of dead letters on it.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use prometheus_client::registry::Registry;
use windrow_engine::dead_letters::{DeadLetterOptions, DeadLetters, DeadLettersOpenError};
use windrow_log::{Disk, DiskFile};

#[derive(Clone, Default)]
pub struct MemoryDisk {
    state: Arc<Mutex<State>>,
}

#[derive(Clone, Default)]
struct State {
    files: BTreeMap<String, Vec<u8>>,
    is_broken: bool,
}

pub struct MemoryFile {
    disk: MemoryDisk,
    name: String,
}

impl MemoryDisk {
    pub fn of(files: impl Iterator<Item = (String, Vec<u8>)>) -> MemoryDisk {
        MemoryDisk { state: Arc::new(Mutex::new(State { files: files.collect(), is_broken: false })) }
    }

    pub fn files(&self) -> BTreeMap<String, Vec<u8>> {
        self.state.lock().unwrap().files.clone()
    }

    pub fn break_down(&self, is_broken: bool) {
        self.state.lock().unwrap().is_broken = is_broken;
    }

    /// Returns the disk that another process would find if this one ended now.
    pub fn copy(&self) -> MemoryDisk {
        let copied = State { is_broken: false, ..self.state.lock().unwrap().clone() };
        MemoryDisk { state: Arc::new(Mutex::new(copied)) }
    }

    pub fn holds(&self, text: &str) -> bool {
        let state = self.state.lock().unwrap();
        state.files.values().any(|bytes| bytes.windows(text.len()).any(|window| window == text.as_bytes()))
    }

    /// Damages a byte of this text, in every file that has it.
    pub fn flip(&self, text: &str) {
        let mut state = self.state.lock().unwrap();
        for bytes in state.files.values_mut() {
            if let Some(at) = bytes.windows(text.len()).position(|window| window == text.as_bytes()) {
                bytes[at] ^= 1;
            }
        }
    }

    fn writable(&self) -> io::Result<std::sync::MutexGuard<'_, State>> {
        let state = self.state.lock().unwrap();
        match state.is_broken {
            true => Err(io::Error::other("broken")),
            false => Ok(state),
        }
    }
}

impl Disk for MemoryDisk {
    type File = MemoryFile;

    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.state.lock().unwrap().files.keys().cloned().collect())
    }

    fn create(&self, name: &str, bytes: u64) -> io::Result<MemoryFile> {
        self.writable()?.files.insert(name.to_owned(), vec![0; bytes as usize]);
        self.open(name)
    }

    fn open(&self, name: &str) -> io::Result<MemoryFile> {
        Ok(MemoryFile { disk: self.clone(), name: name.to_owned() })
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.writable()?.files.remove(name).map(drop).ok_or(io::ErrorKind::NotFound.into())
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.writable()?;
        let bytes = state.files.remove(from).ok_or(io::ErrorKind::NotFound)?;
        state.files.insert(to.to_owned(), bytes);
        Ok(())
    }

    fn sync_directory(&self) -> io::Result<()> {
        self.writable().map(drop)
    }
}

impl DiskFile for MemoryFile {
    fn len(&self) -> io::Result<u64> {
        let state = self.disk.state.lock().unwrap();
        Ok(state.files.get(&self.name).map_or(0, Vec::len) as u64)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.disk.writable()?;
        let file = state.files.entry(self.name.clone()).or_default();
        let end = offset as usize + bytes.len();
        file.resize(file.len().max(end), 0);
        file[offset as usize..end].copy_from_slice(bytes);
        Ok(())
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        let state = self.disk.state.lock().unwrap();
        let file = state.files.get(&self.name).ok_or(io::ErrorKind::NotFound)?;
        let rest = file.get(offset as usize..).unwrap_or_default();
        let count = rest.len().min(into.len());
        into[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }

    fn sync(&self) -> io::Result<()> {
        self.disk.writable().map(drop)
    }
}

/// An open store, with its committer on a thread.
pub struct Opened {
    pub dead_letters: DeadLetters,
    pub disk: MemoryDisk,
    committing: JoinHandle<()>,
}

impl Opened {
    pub fn on(disk: MemoryDisk, max_bytes: u64) -> Opened {
        Opened::try_on(disk, max_bytes).unwrap()
    }

    pub fn try_on(disk: MemoryDisk, max_bytes: u64) -> Result<Opened, DeadLettersOpenError> {
        let options = DeadLetterOptions { max_bytes };
        let (dead_letters, committer) = DeadLetters::open(disk.clone(), options, &mut Registry::default())?;
        Ok(Opened { dead_letters, disk, committing: std::thread::spawn(|| committer.run()) })
    }

    /// Closes the store in order, and opens it again.
    pub fn again(self, max_bytes: u64) -> Opened {
        let Opened { dead_letters, disk, committing } = self;
        drop(dead_letters);
        committing.join().unwrap();
        Opened::on(disk, max_bytes)
    }
}
