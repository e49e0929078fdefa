//! What is done between groups: segments that nobody needs are removed, from the front only, so that a record which says
//! that an older one is done is never gone before that one is.

use std::io;

use super::committer::Committer;
use super::segment::file_name;
use crate::disk::Disk;

impl<D: Disk> Committer<D> {
    /// Does one thing that is due. False: nothing is, or it has just failed.
    pub(super) fn do_chore(&mut self) -> bool {
        if self.chores_paused {
            return false;
        }
        match self.remove_front() {
            Ok(done) => done,
            Err(error) => {
                tracing::warn!(%error, "an old segment of the log could not be removed; tried again later");
                self.chores_paused = true;
                false
            }
        }
    }

    fn remove_front(&mut self) -> io::Result<bool> {
        let number = {
            let index = self.shared.index();
            if !index.front_is_dead() {
                return Ok(false);
            }
            index.segments[0].header.number
        };
        match self.disk.remove(&file_name(number)) {
            // Removed before, but the directory could not be synced then.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            outcome => outcome?,
        }
        // Before the next is removed: after a crash, what is left has to be the newer end.
        self.disk.sync_directory()?;
        self.shared.index().segments.pop_front();
        let active = self.active.as_ref().map_or(0, |active| active.number);
        self.shared.queue.set_used(self.used_bytes(), active);
        Ok(true)
    }
}
