//! The bytes that appends may hold, and who holds them.
//!
//! Two bounds hold for memory, one for each append and one for all, and one for files. A [`Grant`] is so many
//! bytes of one of them, and gives them back when it is dropped. Only for the batch that an append can't go
//! on without is a bound overstepped: with every append waiting for its lowest batch, all of them could else
//! wait for each other.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use tokio::sync::watch;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Medium {
    Memory,
    Spool,
}

/// The room for all appends.
#[derive(Debug)]
pub(crate) struct Room {
    memory: Bound,
    spool: Bound,
    /// A channel that is told whenever some room has become free.
    freed: watch::Sender<()>,
}

#[derive(Debug)]
struct Bound {
    max_bytes: u64,
    used_bytes: AtomicU64,
}

impl Bound {
    fn new(max_bytes: u64) -> Bound {
        Bound { max_bytes, used_bytes: AtomicU64::new(0) }
    }

    fn used(&self) -> u64 {
        self.used_bytes.load(Ordering::Acquire)
    }

    /// Takes bytes if they fit. More bytes than the whole bound fit when nothing else is there.
    fn try_take(&self, bytes: u64) -> bool {
        let fits = |used: u64| {
            let after = used.saturating_add(bytes);
            (after <= self.max_bytes || used == 0).then_some(after)
        };
        self.used_bytes.fetch_update(Ordering::AcqRel, Ordering::Acquire, fits).is_ok()
    }

    fn take(&self, bytes: u64) {
        self.used_bytes.fetch_add(bytes, Ordering::AcqRel);
    }

    fn give_back(&self, bytes: u64) {
        self.used_bytes.fetch_sub(bytes, Ordering::AcqRel);
    }
}

/// The bytes that one append may hold in memory.
#[derive(Debug)]
pub(crate) struct Window(Bound);

impl Window {
    pub(crate) fn new(max_bytes: u64) -> Arc<Window> {
        Arc::new(Window(Bound::new(max_bytes)))
    }
}

/// Bytes that may be held.
#[derive(Debug)]
pub(crate) struct Grant {
    room: Arc<Room>,
    window: Arc<Window>,
    medium: Medium,
    bytes: u64,
}

impl Room {
    pub(crate) fn new(max_memory_bytes: u64, max_spool_bytes: u64) -> Arc<Room> {
        Arc::new(Room {
            memory: Bound::new(max_memory_bytes),
            spool: Bound::new(max_spool_bytes),
            freed: watch::Sender::new(()),
        })
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        self.memory.used()
    }

    pub(crate) fn spool_bytes(&self) -> u64 {
        self.spool.used()
    }

    /// Returns a receiver that becomes ready when room was given back after this call.
    pub(crate) fn freed(&self) -> watch::Receiver<()> {
        self.freed.subscribe()
    }

    pub(crate) fn try_grant(self: &Arc<Room>, window: &Arc<Window>, medium: Medium, bytes: u64) -> Option<Grant> {
        let is_taken = match medium {
            Medium::Spool => self.spool.try_take(bytes),
            Medium::Memory if !window.0.try_take(bytes) => false,
            Medium::Memory => {
                let fits = self.memory.try_take(bytes);
                if !fits {
                    window.0.give_back(bytes);
                }
                fits
            }
        };
        is_taken.then(|| self.grant(window, medium, bytes))
    }

    /// Grants memory beyond every bound: for the batch that nothing goes on without.
    pub(crate) fn grant_memory(self: &Arc<Room>, window: &Arc<Window>, bytes: u64) -> Grant {
        window.0.take(bytes);
        self.memory.take(bytes);
        self.grant(window, Medium::Memory, bytes)
    }

    fn grant(self: &Arc<Room>, window: &Arc<Window>, medium: Medium, bytes: u64) -> Grant {
        Grant { room: self.clone(), window: window.clone(), medium, bytes }
    }
}

impl Grant {
    pub(crate) fn medium(&self) -> Medium {
        self.medium
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Makes the grant so many bytes. Returns false, and changes nothing, if more than there is room for
    /// would be needed.
    pub(crate) fn try_resize(&mut self, bytes: u64) -> bool {
        if let Some(more) = bytes.checked_sub(self.bytes).filter(|&more| more > 0) {
            let Some(added) = self.room.try_grant(&self.window, self.medium, more) else { return false };
            self.bytes += added.keep();
            return true;
        }
        drop(self.room.grant(&self.window, self.medium, self.bytes - bytes));
        self.bytes = bytes;
        true
    }

    /// Returns the bytes, which another grant has taken over.
    fn keep(mut self) -> u64 {
        std::mem::take(&mut self.bytes)
    }
}

impl Drop for Grant {
    fn drop(&mut self) {
        if self.bytes == 0 {
            return;
        }
        match self.medium {
            Medium::Spool => self.room.spool.give_back(self.bytes),
            Medium::Memory => {
                self.window.0.give_back(self.bytes);
                self.room.memory.give_back(self.bytes);
            }
        }
        self.room.freed.send_replace(());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_bounds_of_memory_hold() {
        let room = Room::new(100, 1000);
        let (one, other) = (Window::new(60), Window::new(60));
        let first = room.try_grant(&one, Medium::Memory, 50).unwrap();
        assert!(room.try_grant(&one, Medium::Memory, 20).is_none(), "its window is full");
        let second = room.try_grant(&other, Medium::Memory, 50).unwrap();
        assert!(room.try_grant(&other, Medium::Memory, 1).is_none(), "memory is full");
        drop(first);
        assert!(room.try_grant(&other, Medium::Memory, 10).is_some());
        assert_eq!(room.memory_bytes(), 50);
        drop(second);
        assert_eq!(room.memory_bytes(), 0);
    }

    #[test]
    fn what_fits_nowhere_else_fits_into_an_empty_place() {
        let (room, window) = (Room::new(100, 1000), Window::new(60));
        let large = room.try_grant(&window, Medium::Memory, 500).unwrap();
        assert!(room.try_grant(&window, Medium::Memory, 1).is_none());
        let lowest = room.grant_memory(&window, 7);
        drop((large, lowest));
        assert_eq!(room.memory_bytes(), 0);
    }

    #[test]
    fn a_grant_is_resized_where_there_is_room() {
        let (room, window) = (Room::new(100, 1000), Window::new(60));
        let mut grant = room.try_grant(&window, Medium::Memory, 30).unwrap();
        assert!(grant.try_resize(60));
        assert!(!grant.try_resize(61));
        assert_eq!(room.memory_bytes(), 60);
        assert!(grant.try_resize(10));
        assert_eq!((room.memory_bytes(), grant.bytes()), (10, 10));
        drop(grant);
        assert_eq!(room.memory_bytes(), 0);
        let spooled = room.try_grant(&window, Medium::Spool, 1000).unwrap();
        assert_eq!((room.spool_bytes(), spooled.medium()), (1000, Medium::Spool));
    }

    #[test]
    fn who_waits_is_told() {
        let (room, window) = (Room::new(100, 1000), Window::new(60));
        let grant = room.try_grant(&window, Medium::Memory, 30).unwrap();
        let freed = room.freed();
        assert!(!freed.has_changed().unwrap());
        drop(grant);
        assert!(freed.has_changed().unwrap());
    }
}
