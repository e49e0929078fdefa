//! Syncs that make records survive a loss of power: one thread, and one sync for all who wait.
//!
//! A sync that failed is never repeated on the same file: the kernel takes its pages for written then, and
//! the next sync would succeed without writing them. The records of such a segment are copied to a new file,
//! as long as the cache has them, and later records go into another segment. Nothing is confirmed before. The
//! same goes for the folder: its entries are made anew.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::format::{Checksums, SegmentHeader, SEGMENT_HEADER_BYTES};
use super::log::Log;
use super::options::DiskSync;
use super::scan::Scanner;
use crate::buffer::{BufferError, BufferEvents};

/// The time for which a disk is left alone after a sync has failed twice.
const AGAIN_AFTER: Duration = Duration::from_millis(500);

/// A disk that makes files and their names survive a loss of power. Tests bring one that fails.
pub(super) trait Disk: Send + Sync + 'static {
    fn sync_file(&self, file: &File) -> io::Result<()> {
        file.sync_data()
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        File::open(folder)?.sync_all()
    }
}

pub(super) struct RealDisk;

impl Disk for RealDisk {}

/// A segment that may not be on the disk as it is.
pub(super) struct Unsynced {
    pub(super) number: u64,
    pub(super) path: PathBuf,
    pub(super) file: Arc<File>,
    pub(super) checksums: Checksums,
    pub(super) bytes: u64,
    /// The offset where its records end, if nothing more is written to it.
    pub(super) end: Option<u64>,
    pub(super) is_distrusted: bool,
}

/// Syncs all records that were written before, and the names of their files.
fn sync(log: &Mutex<Log>, disk: &dyn Disk) -> Result<(), BufferError> {
    let segments = lock(log).unsynced();
    for segment in &segments {
        segment.sync(log, disk)?;
    }
    let new_names = lock(log).unsynced_names();
    if let Some((folder, names)) = new_names {
        if let Err(error) = disk.sync_folder(&folder) {
            segments.iter().try_for_each(|segment| lock(log).distrust(segment.number))?;
            return Err(error.into());
        }
        lock(log).were_named(names);
    }
    lock(log).was_synced(&segments);
    Ok(())
}

impl Unsynced {
    fn sync(&self, log: &Mutex<Log>, disk: &dyn Disk) -> Result<(), BufferError> {
        match (self.is_distrusted, self.end) {
            (true, Some(end)) => {
                let path = self.path.with_extension("rewrite");
                let copy = self.copy(&path, end, disk).inspect_err(|error| {
                    let _ = std::fs::remove_file(&path);
                    if matches!(error, BufferError::Damaged(_)) {
                        lock(log).mark_damaged(self.number);
                    }
                })?;
                Ok(lock(log).take_copy(self.number, &path, copy)?)
            }
            (false, _) => match disk.sync_file(&self.file) {
                Ok(()) => Ok(()),
                Err(error) => Err(lock(log).distrust(self.number).err().unwrap_or(error.into())),
            },
            // There was no room for another segment.
            (true, None) => {
                lock(log).distrust(self.number)?;
                Err(BufferError::Other("a segment is to be copied".into()))
            }
        }
    }

    /// Copies the segment, as far as the cache knows it, to another file and syncs that.
    fn copy(&self, path: &Path, end: u64, disk: &dyn Disk) -> Result<File, BufferError> {
        let copy = OpenOptions::new().read(true).write(true).create(true).truncate(true).mode(0o600).open(path)?;
        let mut bytes = vec![0; 1 << 20];
        let mut at = 0;
        while at < end {
            let part = &mut bytes[..(end - at).min(1 << 20) as usize];
            self.file.read_exact_at(part, at)?;
            copy.write_all_at(part, at)?;
            at += part.len() as u64;
        }
        copy.set_len(self.bytes)?;
        if !self.is_whole(&copy, end)? {
            return Err(BufferError::Damaged(format!("{}: what was written there is gone", self.path.display())));
        }
        disk.sync_file(&copy)?;
        Ok(copy)
    }

    /// Says whether the copy has all records. Pages that were taken for written may have been read anew,
    /// without what was written to them.
    fn is_whole(&self, copy: &File, end: u64) -> io::Result<bool> {
        let mut header = [0; SEGMENT_HEADER_BYTES];
        copy.read_exact_at(&mut header, 0)?;
        let mut scanner = Scanner::new(copy, self.checksums, SEGMENT_HEADER_BYTES as u64, end);
        while scanner.next()?.is_some() {}
        let has_header = SegmentHeader::from_bytes(&header).is_ok_and(|header| header.number == self.number);
        Ok(has_header && scanner.damage.is_empty() && scanner.end == end)
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
    /// The position before which all rows are written or synced.
    before: u64,
    /// The number of seals and splits.
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
    pub(super) fn start(
        sync: DiskSync,
        events: Arc<dyn BufferEvents>,
        log: Arc<Mutex<Log>>,
        disk: Arc<dyn Disk>,
    ) -> Syncer {
        let shared = Arc::new(Shared { wanted: Mutex::default(), changed: Condvar::new(), sync });
        let its = shared.clone();
        let thread =
            std::thread::Builder::new().name("windrow-sync".into()).spawn(move || its.run(&*events, &log, &*disk));
        // Without a thread nothing is confirmed, which is what `Always` promises.
        Syncer { shared, thread: Mutex::new(thread.ok()) }
    }

    /// Notes that all rows before this position are in the files, and so many seals and splits.
    pub(super) fn wrote(&self, before: u64, recorded: u64) {
        let mut wanted = lock(&self.shared.wanted);
        let was_clean = wanted.written == wanted.synced;
        wanted.written.before = wanted.written.before.max(before);
        wanted.written.recorded = wanted.written.recorded.max(recorded);
        if was_clean {
            self.shared.changed.notify_one();
        }
    }

    /// Returns the number of seals and splits that are synced.
    pub(super) fn synced(&self) -> u64 {
        lock(&self.shared.wanted).synced.recorded
    }

    /// Stops the thread after a last sync.
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
    fn run(&self, events: &dyn BufferEvents, log: &Mutex<Log>, disk: &dyn Disk) {
        loop {
            let (reached, is_stopped) = self.wait();
            // The second time concerns other files.
            let synced = sync(log, disk).or_else(|_| sync(log, disk));
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

    /// Waits until there is something to sync, and it is time. Returns how far to sync, and whether it is for
    /// the last time.
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

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::ops::Range;
    use std::os::unix::fs::MetadataExt;
    use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

    use super::super::folder;
    use super::super::options::DiskOptions;
    use super::*;
    use crate::destination::Destination;
    use crate::rows::Rows;

    /// A disk some of whose syncs fail. Its cache takes the pages for written then: the result of a later
    /// sync of the same file is worth nothing.
    #[derive(Default)]
    struct FailingDisk {
        calls: AtomicUsize,
        fails: Vec<usize>,
        /// Files whose sync failed. They are kept open, so that their numbers are not given to other files.
        distrusted: Mutex<Vec<File>>,
        /// The bytes that are on the disk, by the number of the file.
        there: Mutex<HashMap<u64, Vec<u8>>>,
    }

    impl FailingDisk {
        fn new(fails: &[usize]) -> FailingDisk {
            FailingDisk { fails: fails.to_vec(), ..FailingDisk::default() }
        }

        fn meets(&self) -> io::Result<()> {
            let call = self.calls.fetch_add(1, Ordering::SeqCst);
            if self.fails.contains(&call) {
                Err(io::Error::from_raw_os_error(libc::EIO))
            } else {
                Ok(())
            }
        }
    }

    impl Disk for FailingDisk {
        fn sync_file(&self, file: &File) -> io::Result<()> {
            let number = file.metadata()?.ino();
            let is_same = |other: &File| other.metadata().is_ok_and(|other| other.ino() == number);
            assert!(!lock(&self.distrusted).iter().any(is_same), "a sync that failed is not repeated on the same file");
            if let Err(error) = self.meets() {
                lock(&self.distrusted).push(file.try_clone()?);
                return Err(error);
            }
            let mut bytes = vec![0; file.metadata()?.len() as usize];
            file.read_exact_at(&mut bytes, 0)?;
            lock(&self.there).insert(number, bytes);
            Ok(())
        }

        fn sync_folder(&self, _: &Path) -> io::Result<()> {
            self.meets()
        }
    }

    struct Nobody;

    impl BufferEvents for Nobody {
        fn kept(&self, _: u64) {}
        fn refused(&self, _: Range<u64>, _: u64, _: BufferError) {}
        fn stored_elsewhere(&self, _: Range<u64>, _: u64) {}
        fn wake(&self) {}
    }

    struct TestFolder(PathBuf);

    impl TestFolder {
        fn new() -> TestFolder {
            static NUMBER: AtomicU32 = AtomicU32::new(0);
            let name = format!("windrow-sync-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
            TestFolder(std::env::temp_dir().join(name))
        }

        fn log(&self) -> Mutex<Log> {
            let options = DiskOptions { segment_bytes: 16 << 10, ..DiskOptions::default() }.sane();
            let own = folder::create_own(&self.0).unwrap();
            Mutex::new(Log::create(own, Arc::new(Destination::default()), &options).unwrap())
        }
    }

    impl Drop for TestFolder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn append(log: &Mutex<Log>, row: &[u8]) {
        lock(log).append(Rows::new(row, &[row.len() as u32]), || 0).unwrap();
    }

    /// Says whether the files as the disk has them hold the row.
    fn is_there(log: &Mutex<Log>, disk: &FailingDisk, row: &[u8]) -> bool {
        let there = lock(&disk.there);
        let files = lock(log).files();
        let mut contents = files.iter().filter_map(|file| there.get(&file.metadata().unwrap().ino()));
        contents.any(|bytes| bytes.windows(row.len()).any(|window| window == row))
    }

    /// Checks, whichever of the syncs fail: when all is said to be on the disk, each row is, in a file in
    /// which no sync failed.
    #[test]
    fn a_sync_that_failed_is_not_repeated_on_the_same_file() {
        for first in 0..12 {
            for second in first..first + 4 {
                let (folder, disk) = (TestFolder::new(), FailingDisk::new(&[first, second]));
                let log = folder.log();
                for number in 0..40 {
                    append(&log, format!("row {number:03} {}", "x".repeat(900)).as_bytes());
                    if number % 4 == 3 {
                        while sync(&log, &disk).is_err() {}
                        for row in 0..=number {
                            let text = format!("row {row:03} ");
                            assert!(is_there(&log, &disk, text.as_bytes()), "{first}, {second}: {text}");
                        }
                    }
                }
                assert!(disk.calls.load(Ordering::SeqCst) > second);
            }
        }
    }

    #[test]
    fn no_segment_is_forgotten_however_many_there_are() {
        // Each segment's file is open.
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: `limit` is valid for both calls.
        unsafe {
            libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit);
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
        }
        let (folder, disk) = (TestFolder::new(), FailingDisk::new(&[]));
        let log = folder.log();
        let row = vec![b'x'; 12 << 10];
        (0..1100).for_each(|_| append(&log, &row));
        sync(&log, &disk).unwrap();
        assert_eq!(lock(&disk.there).len(), 1100);
        assert_eq!(lock(&log).unsynced().len(), 1, "the one that is written to");
    }

    #[test]
    fn nothing_is_confirmed_while_the_cache_has_lost_what_was_written() {
        let (folder, disk) = (TestFolder::new(), FailingDisk::new(&[0]));
        let log = folder.log();
        append(&log, b"precious");
        assert!(sync(&log, &disk).is_err());
        let file = lock(&log).files().remove(0);
        let mut bytes = vec![0; 4096];
        file.read_exact_at(&mut bytes, 0).unwrap();
        let at = bytes.windows(8).position(|window| window == b"precious").unwrap();
        file.write_all_at(&[0; 8], at as u64).unwrap();
        for _ in 0..3 {
            assert!(matches!(sync(&log, &disk), Err(BufferError::Damaged(_))));
        }
        // It is told as lost; then the rest can be confirmed.
        let sealed = lock(&log).seal().unwrap().unwrap();
        let reading = lock(&log).reading(sealed.id).unwrap();
        assert!(reading.is_suspect && matches!(reading.read(), Err(BufferError::Damaged(_))));
        lock(&log).done(sealed.id).unwrap();
        sync(&log, &disk).unwrap();
    }

    #[test]
    fn a_writer_that_stops_tries_once_more() {
        let (folder, disk) = (TestFolder::new(), Arc::new(FailingDisk::new(&[0])));
        let log = Arc::new(folder.log());
        append(&log, b"precious");
        let syncer = Syncer::start(DiskSync::Always, Arc::new(Nobody), log.clone(), disk.clone());
        syncer.wrote(1, 0);
        syncer.stop();
        assert!(is_there(&log, &disk, b"precious"));
    }
}
