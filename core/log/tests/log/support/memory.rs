//! A disk in memory, whose files can be damaged, and which can be made to fail.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};

use windrow_log::{Disk, DiskFile};

#[derive(Clone, Default)]
pub struct MemoryDisk(Arc<Mutex<State>>);

#[derive(Clone, Default)]
struct State {
    files: BTreeMap<String, Arc<Mutex<Vec<u8>>>>,
    faults: Faults,
}

/// The faults from now on, until others are set.
#[derive(Clone, Copy, Default)]
pub struct Faults {
    pub create: Option<io::ErrorKind>,
    pub write: Option<io::ErrorKind>,
    pub sync: Option<io::ErrorKind>,
    pub read: Option<io::ErrorKind>,
    pub remove: Option<io::ErrorKind>,
    /// The most bytes of all files together: a new file that would exceed it can't be created.
    pub most_bytes: Option<u64>,
}

pub type Files = BTreeMap<String, Vec<u8>>;

impl MemoryDisk {
    pub fn of(files: &Files) -> MemoryDisk {
        let disk = MemoryDisk::default();
        let shared = files.iter().map(|(name, bytes)| (name.clone(), Arc::new(Mutex::new(bytes.clone()))));
        disk.0.lock().unwrap().files = shared.collect();
        disk
    }

    pub fn files(&self) -> Files {
        let state = self.0.lock().unwrap();
        state.files.iter().map(|(name, bytes)| (name.clone(), bytes.lock().unwrap().clone())).collect()
    }

    pub fn fail(&self, faults: Faults) {
        self.0.lock().unwrap().faults = faults;
    }

    fn faults(&self) -> Faults {
        self.0.lock().unwrap().faults
    }
}

fn check(fault: Option<io::ErrorKind>) -> io::Result<()> {
    fault.map_or(Ok(()), |kind| Err(kind.into()))
}

impl Disk for MemoryDisk {
    type File = MemoryFile;

    fn list(&self) -> io::Result<Vec<String>> {
        check(self.faults().read)?;
        Ok(self.0.lock().unwrap().files.keys().cloned().collect())
    }

    fn create(&self, name: &str, bytes: u64) -> io::Result<MemoryFile> {
        check(self.faults().create)?;
        let taken: u64 = self.files().values().map(|bytes| bytes.len() as u64).sum();
        let is_full = self.faults().most_bytes.is_some_and(|most| taken + bytes > most);
        check(is_full.then_some(io::ErrorKind::StorageFull))?;
        let file = Arc::new(Mutex::new(vec![0; bytes as usize]));
        self.0.lock().unwrap().files.insert(name.to_owned(), file.clone());
        Ok(MemoryFile { disk: self.clone(), bytes: file })
    }

    fn open(&self, name: &str) -> io::Result<MemoryFile> {
        let found = self.0.lock().unwrap().files.get(name).cloned();
        Ok(MemoryFile { disk: self.clone(), bytes: found.ok_or(io::ErrorKind::NotFound)? })
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        check(self.faults().remove)?;
        self.0.lock().unwrap().files.remove(name).map(drop).ok_or(io::ErrorKind::NotFound.into())
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.0.lock().unwrap();
        let file = state.files.remove(from).ok_or(io::ErrorKind::NotFound)?;
        state.files.insert(to.to_owned(), file);
        Ok(())
    }

    fn sync_directory(&self) -> io::Result<()> {
        check(self.faults().sync)
    }

    fn salt(&self) -> io::Result<u64> {
        Ok(0x5a17)
    }
}

pub struct MemoryFile {
    disk: MemoryDisk,
    bytes: Arc<Mutex<Vec<u8>>>,
}

impl DiskFile for MemoryFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.bytes.lock().unwrap().len() as u64)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        check(self.disk.faults().write)?;
        let mut file = self.bytes.lock().unwrap();
        let end = offset as usize + bytes.len();
        if file.len() < end {
            file.resize(end, 0);
        }
        file[offset as usize..end].copy_from_slice(bytes);
        Ok(())
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        check(self.disk.faults().read)?;
        let file = self.bytes.lock().unwrap();
        let rest = file.get(offset as usize..).unwrap_or_default();
        // Less than was asked for, as a disk may.
        let count = rest.len().min(into.len()).min(5000);
        into[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }

    fn sync(&self) -> io::Result<()> {
        check(self.disk.faults().sync)
    }
}
