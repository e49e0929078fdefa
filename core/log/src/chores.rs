//! Work that is done between groups. Segments that are not needed any more are removed, from the front only,
//! so that a record which says that an older one is done never disappears before that older record. Where
//! little of many segments is still needed, that part is copied (`rewrite.rs`).

use std::io;

use super::committer::Committer;
use super::segment::file_name;
use crate::disk::Disk;

/// The number of groups that are written before failed work is tried again.
const PAUSE_GROUPS: u32 = 1000;

impl<D: Disk> Committer<D> {
    /// Performs one piece of work that is due. Returns false where none is due, or it has just failed.
    pub(super) fn do_chore(&mut self) -> bool {
        if self.shared.queue.is_closed() {
            self.stop_rewriting();
        }
        !self.chores_paused && (self.tidy() || self.rewrite())
    }

    fn tidy(&mut self) -> bool {
        match self.remove_covered().and_then(|done| Ok(done || self.remove_front()?)) {
            Ok(done) => done,
            Err(error) => {
                tracing::warn!(%error, "an old segment of the log could not be removed; tried again later");
                self.chores_paused = true;
                false
            }
        }
    }

    fn rewrite(&mut self) -> bool {
        if self.shared.queue.is_closed() || self.rewrite_pause > 0 {
            return false;
        }
        match self.rewrite_slice() {
            Ok(done) => done,
            Err(error) => {
                tracing::warn!(%error, "old segments of the log could not be made smaller; tried again later");
                self.rewrite_pause = PAUSE_GROUPS;
                false
            }
        }
    }

    /// Removes the files whose records another file has now, as soon as the name of that file is surely on
    /// the disk.
    pub(super) fn remove_covered(&mut self) -> io::Result<bool> {
        if !self.shared.index().names_unsynced && self.covered.is_empty() {
            return Ok(false);
        }
        self.disk.sync_directory()?;
        while let Some(name) = self.covered.front() {
            remove_if_there(&self.disk, name)?;
            self.covered.pop_front();
        }
        self.disk.sync_directory()?;
        self.shared.index().names_unsynced = false;
        Ok(true)
    }

    fn remove_front(&mut self) -> io::Result<bool> {
        let number = {
            let index = self.shared.index();
            if self.rewrite.is_some() || !index.front_is_dead() {
                return Ok(false);
            }
            index.segments[0].header.number
        };
        remove_if_there(&self.disk, &file_name(number))?;
        // Before the next is removed: after a crash, what is left has to be the newer end.
        self.disk.sync_directory()?;
        self.shared.index().segments.pop_front();
        // There is more room to copy into.
        self.rewrite_pause = 0;
        self.note_used();
        Ok(true)
    }

    pub(super) fn note_used(&self) {
        let active = self.active.as_ref().map_or(0, |active| active.number);
        self.shared.queue.set_used(self.used_bytes(), active);
    }
}

/// Removes a file. The file may be gone already, from an earlier try after which the directory could not be
/// synced.
fn remove_if_there<D: Disk>(disk: &D, name: &str) -> io::Result<()> {
    match disk.remove(name) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        outcome => outcome,
    }
}
