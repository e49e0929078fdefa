//! A journal in a folder of its own, over several runs of a gatherer, and a disk that fails on demand.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;

use tokio::runtime::Runtime;
use tokio::sync::watch;
use windrow_engine::{open_journal, GathererOptions, OpenedJournal, Stores};
use windrow_log::{Committer, Disk, Folder, LogOptions};

use super::dead_letters::FakeDeadLetters;
use super::sink::FakeSink;
use super::world::World;

/// A folder that is removed at the end.
struct TempFolder(PathBuf);

impl TempFolder {
    fn new() -> TempFolder {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name = format!("windrow-gatherer-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        TempFolder(std::env::temp_dir().join(name))
    }
}

impl Drop for TempFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The parts that outlive a gatherer: the sink's system, the dead letters, the disk.
pub struct Machine {
    folder: TempFolder,
    pub sink: FakeSink,
    pub dead_letters: FakeDeadLetters,
    pub options: GathererOptions,
    pub log: LogOptions,
    pub inserts_per_batch: u64,
    pub faults: Faults,
}

/// The faults of the disk from now on.
#[derive(Clone, Default)]
pub struct Faults {
    state: Arc<FaultState>,
}

#[derive(Default)]
struct FaultState {
    fails_to_sync: AtomicBool,
    is_full: AtomicBool,
    fails_to_read: AtomicBool,
}

impl Faults {
    pub fn fail_to_sync(&self, fails: bool) {
        self.state.fails_to_sync.store(fails, Ordering::SeqCst);
    }

    pub fn fail_to_read(&self, fails: bool) {
        self.state.fails_to_read.store(fails, Ordering::SeqCst);
    }

    /// Sets whether the disk is full: then no new file can be created.
    pub fn fill_up(&self, is_full: bool) {
        self.state.is_full.store(is_full, Ordering::SeqCst);
    }
}

impl Machine {
    pub fn new(inserts_per_batch: u64) -> Machine {
        Machine {
            folder: TempFolder::new(),
            sink: FakeSink::new(),
            dead_letters: FakeDeadLetters::default(),
            options: GathererOptions::default(),
            log: LogOptions { segment_bytes: 64 << 10, max_bytes: 64 << 20, reserve_bytes: 64 << 10 },
            inserts_per_batch,
            faults: Faults::default(),
        }
    }

    /// Runs one life of a gatherer. When `life` ends, only the parts of the machine are left of it.
    pub fn live<T>(&self, life: impl AsyncFnOnce(&Life) -> T) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let lived = runtime.block_on(async {
            let disk =
                FaultyFolder { folder: Folder::open(&self.folder.0).unwrap(), faults: self.faults.state.clone() };
            let (journal, committer) = open_journal(disk, self.log).unwrap();
            let commits = watch::Sender::new(true);
            let log = journal.log();
            tokio::spawn(commit(committer, log, commits.subscribe()));
            let world = self.world(Some(journal));
            life(&Life { world, commits }).await
        });
        crash(runtime);
        self.sink.crash();
        lived
    }

    fn world(&self, journal: Option<OpenedJournal>) -> World {
        let dead_letters = Arc::new(self.dead_letters.clone());
        let stores = Stores { journal, dead_letters: Some(dead_letters), ..Stores::none() };
        World::on(self.sink.clone(), self.dead_letters.clone(), stores, self.inserts_per_batch, self.options.clone())
    }
}

/// Ends the runtime so that no running task continues.
fn crash(runtime: Runtime) {
    runtime.shutdown_background();
}

pub struct Life {
    pub world: World,
    /// True while written records come to the disk.
    commits: watch::Sender<bool>,
}

impl Life {
    pub fn hold_the_disk(&self) {
        self.commits.send_replace(false);
    }

    pub fn let_the_disk_go(&self) {
        self.commits.send_replace(true);
    }
}

async fn commit<D: Disk>(mut committer: Committer<D>, log: windrow_log::Log, mut commits: watch::Receiver<bool>) {
    loop {
        log.work().await;
        commits.wait_for(|commits| *commits).await.expect("the test lives");
        committer.turn();
        tokio::task::yield_now().await;
    }
}

struct FaultyFolder {
    folder: Folder,
    faults: Arc<FaultState>,
}

struct FaultyFile {
    file: windrow_log::FolderFile,
    faults: Arc<FaultState>,
}

impl FaultyFolder {
    fn file(&self, file: windrow_log::FolderFile) -> FaultyFile {
        FaultyFile { file, faults: self.faults.clone() }
    }
}

impl Disk for FaultyFolder {
    type File = FaultyFile;

    fn list(&self) -> io::Result<Vec<String>> {
        self.folder.list()
    }

    fn create(&self, name: &str, bytes: u64) -> io::Result<FaultyFile> {
        if self.faults.is_full.load(Ordering::SeqCst) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(self.file(self.folder.create(name, bytes)?))
    }

    fn open(&self, name: &str) -> io::Result<FaultyFile> {
        Ok(self.file(self.folder.open(name)?))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.folder.remove(name)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.folder.rename(from, to)
    }

    fn sync_directory(&self) -> io::Result<()> {
        self.folder.sync_directory()
    }
}

impl windrow_log::DiskFile for FaultyFile {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_at(offset, bytes)
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        match self.faults.fails_to_read.load(Ordering::SeqCst) {
            true => Err(io::Error::other("scripted: can't be read")),
            false => self.file.read_at(offset, into),
        }
    }

    fn sync(&self) -> io::Result<()> {
        match self.faults.fails_to_sync.load(Ordering::SeqCst) {
            true => Err(io::Error::other("scripted: can't be synced")),
            false => self.file.sync(),
        }
    }
}
