//! Makes what was written survive a loss of power: one thread, and one sync for all who wait.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::options::DiskSync;
use crate::buffer::BufferEvents;

/// How long a disk is left alone after a sync has failed.
const AGAIN_AFTER: Duration = Duration::from_millis(500);

/// Files that have been written to.
pub(super) struct Dirt {
    folder: PathBuf,
    files: Mutex<Vec<Arc<File>>>,
}

impl Dirt {
    pub(super) fn new(folder: &Path) -> Dirt {
        Dirt { folder: folder.to_path_buf(), files: Mutex::default() }
    }

    /// A new segment: it, and that it is there.
    pub(super) fn add(&self, file: &Arc<File>) {
        let mut files = lock(&self.files);
        files.push(file.clone());
        // Nobody takes them where nothing is synced: those of late are enough.
        let excess = files.len().saturating_sub(1024);
        files.drain(..excess);
    }

    /// The latest file stays in: it is still written to.
    fn sync(&self) -> io::Result<()> {
        let files = lock(&self.files).clone();
        files.iter().try_for_each(|file| file.sync_data())?;
        if files.len() > 1 {
            File::open(&self.folder)?.sync_all()?;
            lock(&self.files).drain(..files.len() - 1);
        }
        Ok(())
    }
}

#[derive(Default)]
struct Wanted {
    written: Reached,
    synced: Reached,
    is_stopped: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Reached {
    /// All rows before this position.
    before: u64,
    /// This many seals and splits.
    recorded: u64,
}

struct Shared {
    wanted: Mutex<Wanted>,
    changed: Condvar,
    sync: DiskSync,
}

pub(super) struct Syncer {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Syncer {
    pub(super) fn start(sync: DiskSync, events: Arc<dyn BufferEvents>, dirt: Arc<Dirt>) -> Syncer {
        let shared = Arc::new(Shared { wanted: Mutex::default(), changed: Condvar::new(), sync });
        let its = shared.clone();
        let thread = std::thread::Builder::new().name("windrow-sync".into()).spawn(move || its.run(&*events, &dirt));
        // Without a thread nothing is confirmed, which is what `Always` promises.
        Syncer { shared, thread: Mutex::new(thread.ok()) }
    }

    /// All rows before this position are in the files, and so many seals and splits.
    pub(super) fn wrote(&self, before: u64, recorded: u64) {
        let mut wanted = lock(&self.shared.wanted);
        let was_clean = wanted.written == wanted.synced;
        wanted.written.before = wanted.written.before.max(before);
        wanted.written.recorded = wanted.written.recorded.max(recorded);
        if was_clean {
            self.shared.changed.notify_one();
        }
    }

    /// How many seals and splits are there for good.
    pub(super) fn synced(&self) -> u64 {
        lock(&self.shared.wanted).synced.recorded
    }

    /// After a last sync.
    pub(super) fn stop(&self) {
        lock(&self.shared.wanted).is_stopped = true;
        self.shared.changed.notify_one();
        if let Some(thread) = lock(&self.thread).take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Syncer {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Shared {
    fn run(&self, events: &dyn BufferEvents, dirt: &Dirt) {
        loop {
            let (reached, is_stopped) = self.wait();
            let synced = dirt.sync();
            if synced.is_ok() {
                lock(&self.wanted).synced = reached;
                events.kept(reached.before);
                events.wake();
            }
            if is_stopped {
                return;
            }
            if synced.is_err() {
                let wanted = lock(&self.wanted);
                drop(self.changed.wait_timeout_while(wanted, AGAIN_AFTER, |wanted| !wanted.is_stopped));
            }
        }
    }

    /// Until there is something to sync, and it is time. Says up to where, and whether it is for the last time.
    fn wait(&self) -> (Reached, bool) {
        let mut wanted = lock(&self.wanted);
        while wanted.written == wanted.synced && !wanted.is_stopped {
            wanted = self.changed.wait(wanted).unwrap_or_else(PoisonError::into_inner);
        }
        if let DiskSync::Interval(interval_ms) = self.sync {
            let interval = Duration::from_millis(interval_ms.max(1));
            let waited = self.changed.wait_timeout_while(wanted, interval, |wanted| !wanted.is_stopped);
            wanted = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        (wanted.written, wanted.is_stopped)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
