//! Rows in files that are mapped into memory: they survive the death of the process without a system call per row.
//!
//! **Constraints.** 500,000 rows/s and more, one record per `write_row`; nothing that an append has taken is lost when
//! the process is killed; a full disk is an error of the append that met it, and never a SIGBUS; a batch comes back
//! under its id with its members.
//!
//! **Files.** Each writer has a sub-folder of its own under the folder that it was given, and holds a lock on it
//! (`folder.rs`). In it is a *log*: numbered segments, each taken whole from the disk before it is mapped. A record is
//! copied behind the last one and then *published* by one atomic store of its first eight bytes, which were zero until
//! then (`format.rs`, `segment.rs`). The kernel has the pages, so a killed process loses no published record. Against
//! power loss the pages have to be synced: never, at an interval, or before an append is confirmed (`syncing.rs`).
//!
//! **Records.** Rows are numbered by their position in the log. Seals, splits and dones are records too: a
//! batch is an id and a range of positions. Bytes that were written through the map are read back with
//! ordinary reads, so that a disk's error is an error and no signal.
//!
//! **Who deletes.** The writer alone, and only from the old end: a segment goes when all rows in it, and all segments
//! before it, are done. So a seal is never gone before its rows, nor a done before its batch. A batch that can't be
//! stored holds up the deletion of everything behind it; `max_disk_bytes` bounds that.
//!
//! **After a crash** another writer finds the lock free (`adopt.rs`), reads all segments (`scan.rs`, `recover.rs`), and
//! goes on where the dead one stopped: sealed batches under their ids, the rest in new ones, sealed in a new segment of
//! the same log. When all is done it deletes the sub-folder.
//!
//! **Not for** several writers of one log, nor for network file systems without locks.

mod adopt;
mod folder;
mod format;
mod groups;
mod log;
mod options;
mod read;
mod recover;
mod runs;
mod scan;
mod segment;
mod syncing;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

pub use options::{DiskOptions, DiskSync};

use crate::buffer::{AppendError, Appended, Buffer, BufferError, BufferEvents, Kept, LeftOvers, Open, Sealed};
use crate::destination::Destination;
use crate::id::BatchId;
use crate::rows::{Body, Rows};
use log::Log;
use syncing::{RealDisk, Syncer};

/// A [`Buffer`] in a folder.
pub struct DiskBuffer {
    root: PathBuf,
    options: DiskOptions,
    destination: Arc<Destination>,
    own: Arc<Mutex<Log>>,
    /// Logs of dead writers that are not done yet.
    adopted: Mutex<Vec<Log>>,
    /// Batches and damage that were found at the opening.
    found: Mutex<Option<LeftOvers>>,
    syncer: OnceLock<Syncer>,
}

impl DiskBuffer {
    /// Opens a buffer. Makes the folder if it isn't there (its parent has to be), and a sub-folder in it; and
    /// reads what dead writers have left, which takes a while if it is much.
    ///
    /// # Errors
    /// Fails where the folder or the first segment can't be made or read, for example since the disk is full.
    pub fn open(
        folder: impl AsRef<Path>,
        destination: Arc<Destination>,
        options: DiskOptions,
    ) -> Result<DiskBuffer, BufferError> {
        let options = options.sane();
        let root = folder.as_ref().to_path_buf();
        let own = Log::create(folder::create_own(&root)?, destination.clone(), &options)?;
        if options.sync != DiskSync::Never {
            folder::sync_name(&root)?;
        }
        let buffer = DiskBuffer {
            root,
            options,
            destination,
            own: Arc::new(Mutex::new(own)),
            adopted: Mutex::default(),
            found: Mutex::default(),
            syncer: OnceLock::new(),
        };
        let found = buffer.look()?;
        *buffer.found() = Some(found);
        Ok(buffer)
    }

    /// Takes over the logs that dead writers have left.
    fn look(&self) -> Result<LeftOvers, BufferError> {
        let mut found = LeftOvers::default();
        for log in adopt::adopt(&self.root, &self.destination, &self.options, &mut found)? {
            found.batches.extend(log.sealed_batches());
            self.adopted().push(log);
        }
        Ok(found)
    }

    /// Tells the syncer that records without rows were written, which say what batches are made of: they are synced as
    /// rows are.
    fn tell_of_records(&self, own: MutexGuard<'_, Log>) {
        let recorded = own.recorded();
        drop(own);
        if let Some(syncer) = self.syncer.get() {
            syncer.wrote(0, recorded);
        }
    }

    fn found(&self) -> MutexGuard<'_, Option<LeftOvers>> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn own(&self) -> MutexGuard<'_, Log> {
        syncing::lock(&self.own)
    }

    fn adopted(&self) -> MutexGuard<'_, Vec<Log>> {
        self.adopted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `act` on the log that has the batch.
    fn on_log_of<T>(
        &self,
        id: BatchId,
        act: impl FnOnce(&mut Log) -> Result<T, BufferError>,
    ) -> Result<T, BufferError> {
        let mut own = self.own();
        if own.has(id) {
            return act(&mut own);
        }
        drop(own);
        let mut adopted = self.adopted();
        let log = adopted.iter_mut().find(|log| log.has(id)).ok_or(BufferError::UnknownBatch(id))?;
        act(log)
    }
}

impl Buffer for DiskBuffer {
    fn attach(&self, events: Arc<dyn BufferEvents>) {
        if self.options.sync != DiskSync::Never {
            let syncer = Syncer::start(self.options.sync, events, self.own.clone(), Arc::new(RealDisk));
            let _ = self.syncer.set(syncer);
        }
    }

    fn survives(&self) -> bool {
        true
    }

    fn append(&self, rows: Rows<'_>) -> Result<Appended, AppendError> {
        let outcome = {
            let adopted_bytes = || self.adopted().iter().map(Log::disk_bytes).sum();
            self.own().append(rows, adopted_bytes)
        };
        let mut appended = outcome?;
        if let Some(syncer) = self.syncer.get() {
            syncer.wrote(appended.first + rows.count() as u64, 0);
            if self.options.sync == DiskSync::Always {
                appended.kept = Kept::Later;
            }
        }
        Ok(appended)
    }

    fn next_position(&self) -> u64 {
        self.own().next_position()
    }

    fn open(&self) -> Open {
        self.own().open()
    }

    fn seal(&self) -> Result<Option<Sealed>, BufferError> {
        let mut own = self.own();
        let sealed = own.seal();
        self.tell_of_records(own);
        sealed
    }

    fn load(&self, id: BatchId) -> Result<Body, BufferError> {
        let plan = self.on_log_of(id, |log| log.reading(id))?;
        // An id that is sent has to be there also after a loss of power, if its rows have to. But what the disk has lost
        // will never be there.
        let synced = self.syncer.get().map_or(u64::MAX, Syncer::synced);
        if self.options.sync == DiskSync::Always && plan.recorded > synced && !plan.is_suspect {
            return Err(BufferError::NotYet);
        }
        // Read without the lock: appends go on meanwhile.
        plan.read().inspect_err(|error| {
            if matches!(error, BufferError::Damaged(_)) {
                let _ = self.on_log_of(id, |log| {
                    log.keep_aside(&plan);
                    Ok(())
                });
            }
        })
    }

    fn split(&self, id: BatchId, cuts: &[usize]) -> Result<Vec<Sealed>, BufferError> {
        let pieces = self.on_log_of(id, |log| log.split(id, cuts))?;
        self.tell_of_records(self.own());
        Ok(pieces)
    }

    fn done(&self, id: BatchId) -> Result<(), BufferError> {
        let outcome = self.on_log_of(id, |log| log.done(id));
        let mut adopted = self.adopted();
        while let Some(at) = adopted.iter().position(Log::is_done) {
            adopted.swap_remove(at).remove();
        }
        outcome
    }

    fn left_overs(&self) -> Result<LeftOvers, BufferError> {
        let found_at_opening = self.found().take();
        found_at_opening.map_or_else(|| self.look(), Ok)
    }

    fn close(&self) {
        if let Some(syncer) = self.syncer.get() {
            syncer.stop();
        }
        self.adopted().drain(..).for_each(Log::close);
        self.own().close_own();
    }
}
