use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fastrand::Rng;

use super::contents::Contents;
use super::faults::DiskFaults;
use super::trace::Trace;
use crate::{Disk, DiskFile};

/// A folder on a simulated disk. A handle belongs to one run of the machine: after a crash the old handles
/// only fail.
#[derive(Clone)]
pub struct SimDisk {
    state: Arc<Mutex<State>>,
    life: u64,
}

/// A file of a [`SimDisk`].
pub struct SimFile {
    disk: SimDisk,
    inode: u64,
}

struct State {
    random: Rng,
    faults: DiskFaults,
    /// The most bytes of all files together.
    capacity_bytes: u64,
    life: u64,
    is_powered: bool,
    /// The number of calls until the power fails, which happens within the call that brings this to 0.
    calls_until_power_fails: Option<u32>,
    skips_syncs: bool,
    next_inode: u64,
    files: BTreeMap<u64, Contents>,
    names: BTreeMap<String, u64>,
    kept_names: BTreeMap<String, u64>,
    unsynced_names: Vec<Naming>,
    trace: Trace,
    calls: u64,
}

enum Naming {
    Make(String, u64),
    Remove(String),
    Move(String, String),
}

/// The outcome of a call.
enum Fate {
    Goes,
    Fails,
    /// The power fails while the call runs.
    Dies,
}

impl SimDisk {
    pub fn new(seed: u64, capacity_bytes: u64) -> SimDisk {
        let state = State {
            random: Rng::with_seed(seed),
            faults: DiskFaults::default(),
            capacity_bytes,
            life: 0,
            is_powered: true,
            calls_until_power_fails: None,
            skips_syncs: false,
            next_inode: 0,
            files: BTreeMap::new(),
            names: BTreeMap::new(),
            kept_names: BTreeMap::new(),
            unsynced_names: Vec::new(),
            trace: Trace::default(),
            calls: 0,
        };
        SimDisk { state: Arc::new(Mutex::new(state)), life: 0 }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn set_faults(&self, faults: DiskFaults) {
        self.lock().faults = faults;
    }

    /// Makes files' syncs do nothing and report success from now on, as code does that forgets its syncs.
    pub fn skip_syncs(&self) {
        self.lock().skips_syncs = true;
    }

    /// Makes the power fail in the middle of the `calls`-th call from now, counted from 1.
    pub fn fail_power_within(&self, calls: u32) {
        self.lock().calls_until_power_fails = Some(calls);
    }

    /// Cancels the power failure.
    pub fn keep_power(&self) {
        self.lock().calls_until_power_fails = None;
    }

    /// Says whether the machine is on. After the power failed, answers to callers don't count: their machine
    /// is off.
    pub fn is_powered(&self) -> bool {
        let state = self.lock();
        state.is_powered && state.life == self.life
    }

    /// Starts the machine again. Of the bytes that were not synced, chance decides which are kept.
    pub fn restart(&self) -> SimDisk {
        let mut state = self.lock();
        state.crash();
        state.life += 1;
        state.is_powered = true;
        state.calls_until_power_fails = None;
        SimDisk { state: self.state.clone(), life: state.life }
    }

    /// Ends the process without a failure of the machine: its writes are in the cache that the next process sees.
    pub fn reopen(&self) -> SimDisk {
        let mut state = self.lock();
        state.life += 1;
        state.is_powered = true;
        state.calls_until_power_fails = None;
        SimDisk { state: self.state.clone(), life: state.life }
    }

    /// Flips a bit of a file, as a disk that goes bad does.
    pub fn rot(&self, name: &str, offset: u64, bit: u8) {
        let mut state = self.lock();
        let Some(inode) = state.names.get(name).copied() else { return };
        if let Some(file) = state.files.get_mut(&inode) {
            file.rot(offset as usize, bit);
        }
    }

    /// Returns the names of all files with their lengths.
    pub fn files(&self) -> Vec<(String, u64)> {
        let state = self.lock();
        state.names.iter().map(|(name, inode)| (name.clone(), state.files[inode].len())).collect()
    }

    /// Returns all calls so far, and their results, as one number.
    pub fn trace(&self) -> Trace {
        self.lock().trace
    }

    pub fn calls(&self) -> u64 {
        self.lock().calls
    }

    /// Begins a call: counts it and returns its fate.
    fn begin(
        &self,
        what: &str,
        per_thousand: impl Fn(&DiskFaults) -> u32,
    ) -> io::Result<(MutexGuard<'_, State>, Fate)> {
        let mut state = self.lock();
        if !state.is_powered || state.life != self.life {
            return Err(io::Error::other("the power is off"));
        }
        state.calls += 1;
        state.trace.add(what.as_bytes());
        if let Some(calls) = &mut state.calls_until_power_fails {
            *calls = calls.saturating_sub(1);
            if *calls == 0 {
                state.is_powered = false;
                return Ok((state, Fate::Dies));
            }
        }
        let fails = state.random.u32(0..1000) < per_thousand(&state.faults);
        Ok((state, if fails { Fate::Fails } else { Fate::Goes }))
    }

    /// Makes a call that changes names. The change happens or not, and if the power fails the caller does not
    /// learn which.
    fn naming<T>(
        &self,
        what: &str,
        per_thousand: impl Fn(&DiskFaults) -> u32,
        go: impl FnOnce(&mut State) -> io::Result<T>,
    ) -> io::Result<T> {
        let (mut state, fate) = self.begin(what, per_thousand)?;
        match fate {
            Fate::Goes => go(&mut state),
            Fate::Fails => Err(broken()),
            Fate::Dies => {
                if state.random.bool() {
                    go(&mut state)?;
                }
                Err(broken())
            }
        }
    }
}

impl State {
    fn crash(&mut self) {
        let changes = std::mem::take(&mut self.unsynced_names);
        // In order, as a journaling file system does it, or each on its own, which POSIX allows.
        let in_order = self.random.bool();
        let whole = self.random.usize(0..=changes.len());
        for (index, change) in changes.iter().enumerate() {
            let is_kept = if in_order { index < whole } else { self.random.bool() };
            if is_kept {
                change.apply(&mut self.kept_names);
            }
        }
        self.names = self.kept_names.clone();
        let names = &self.names;
        self.files.retain(|inode, _| names.values().any(|named| named == inode));
        for file in self.files.values_mut() {
            file.crash(&mut self.random);
        }
    }

    fn rename(&mut self, change: Naming) {
        change.apply(&mut self.names);
        self.unsynced_names.push(change);
    }

    fn used_bytes(&self) -> u64 {
        self.names.values().map(|inode| self.files[inode].len()).sum()
    }

    fn has_room_for(&self, bytes: u64) -> bool {
        !self.faults.is_full && self.used_bytes() + bytes <= self.capacity_bytes
    }
}

impl Naming {
    fn apply(&self, names: &mut BTreeMap<String, u64>) {
        match self {
            Naming::Make(name, inode) => {
                names.insert(name.clone(), *inode);
            }
            Naming::Remove(name) => {
                names.remove(name);
            }
            Naming::Move(from, to) => {
                if let Some(inode) = names.remove(from) {
                    names.insert(to.clone(), inode);
                }
            }
        }
    }
}

fn broken() -> io::Error {
    io::Error::other("the disk failed")
}

fn missing() -> io::Error {
    io::Error::from(io::ErrorKind::NotFound)
}

fn no_room() -> io::Error {
    io::Error::from(io::ErrorKind::StorageFull)
}

impl Disk for SimDisk {
    type File = SimFile;

    fn list(&self) -> io::Result<Vec<String>> {
        self.naming("list", |faults| faults.directory, |state| Ok(state.names.keys().cloned().collect()))
    }

    fn create(&self, name: &str, bytes: u64) -> io::Result<SimFile> {
        let inode = self.naming(
            "create",
            |faults| faults.create,
            |state| {
                state.trace.add(name.as_bytes());
                if state.names.contains_key(name) {
                    return Err(io::Error::from(io::ErrorKind::AlreadyExists));
                }
                if !state.has_room_for(bytes) {
                    return Err(no_room());
                }
                let inode = state.next_inode;
                state.next_inode += 1;
                let mut file = Contents::default();
                file.resize(bytes);
                state.files.insert(inode, file);
                state.rename(Naming::Make(name.to_owned(), inode));
                Ok(inode)
            },
        )?;
        Ok(SimFile { disk: self.clone(), inode })
    }

    fn open(&self, name: &str) -> io::Result<SimFile> {
        let find = |state: &mut State| state.names.get(name).copied().ok_or_else(missing);
        let inode = self.naming("open", |faults| faults.read, find)?;
        Ok(SimFile { disk: self.clone(), inode })
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.naming(
            "remove",
            |faults| faults.directory,
            |state| {
                state.trace.add(name.as_bytes());
                if !state.names.contains_key(name) {
                    return Err(missing());
                }
                state.rename(Naming::Remove(name.to_owned()));
                Ok(())
            },
        )
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.naming(
            "rename",
            |faults| faults.directory,
            |state| {
                if !state.names.contains_key(from) {
                    return Err(missing());
                }
                state.rename(Naming::Move(from.to_owned(), to.to_owned()));
                Ok(())
            },
        )
    }

    fn salt(&self) -> io::Result<u64> {
        Ok(self.lock().random.u64(..))
    }

    fn sync_directory(&self) -> io::Result<()> {
        self.naming(
            "sync directory",
            |faults| faults.directory,
            |state| {
                let changes = std::mem::take(&mut state.unsynced_names);
                changes.iter().for_each(|change| change.apply(&mut state.kept_names));
                Ok(())
            },
        )
    }
}

impl SimFile {
    /// Makes a call on the file's contents; `go` gets the call's fate.
    fn call<T>(
        &self,
        what: &str,
        per_thousand: impl Fn(&DiskFaults) -> u32,
        go: impl FnOnce(&mut State, Fate) -> io::Result<T>,
    ) -> io::Result<T> {
        let (mut state, fate) = self.disk.begin(what, per_thousand)?;
        state.trace.add_number(self.inode);
        go(&mut state, fate)
    }

    /// Returns the file's contents. A removed file stays readable for those who have it open.
    fn contents<'a>(&self, state: &'a mut State) -> &'a mut Contents {
        state.files.entry(self.inode).or_default()
    }
}

impl DiskFile for SimFile {
    fn len(&self) -> io::Result<u64> {
        self.call(
            "len",
            |faults| faults.read,
            |state, fate| match fate {
                Fate::Goes => Ok(self.contents(state).len()),
                Fate::Fails | Fate::Dies => Err(broken()),
            },
        )
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.call(
            "write",
            |faults| faults.write,
            |state, fate| {
                state.trace.add_number(offset);
                state.trace.add(bytes);
                let end = offset + bytes.len() as u64;
                let growth = end.saturating_sub(self.contents(state).len());
                if growth > 0 && !state.has_room_for(growth) {
                    return Err(no_room());
                }
                match fate {
                    Fate::Goes => {
                        self.contents(state).write(offset, bytes);
                        Ok(())
                    }
                    Fate::Fails | Fate::Dies => {
                        let some = state.random.usize(0..=bytes.len());
                        self.contents(state).write(offset, &bytes[..some]);
                        Err(broken())
                    }
                }
            },
        )
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        self.call(
            "read",
            |faults| faults.read,
            |state, fate| match fate {
                Fate::Goes => {
                    // Now and then a read brings less than it was asked for, as it may.
                    let short = !into.is_empty() && state.random.u32(0..16) == 0;
                    let end = if short { state.random.usize(1..=into.len()) } else { into.len() };
                    Ok(self.contents(state).read(offset, &mut into[..end]))
                }
                Fate::Fails | Fate::Dies => Err(broken()),
            },
        )
    }

    fn sync(&self) -> io::Result<()> {
        self.call(
            "sync",
            |faults| faults.sync,
            |state, fate| match fate {
                Fate::Goes if state.skips_syncs => Ok(()),
                Fate::Goes => {
                    self.contents(state).sync();
                    Ok(())
                }
                Fate::Fails | Fate::Dies => {
                    let mut random = state.random.fork();
                    self.contents(state).fail_to_sync(&mut random);
                    Err(broken())
                }
            },
        )
    }
}
