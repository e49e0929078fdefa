//! Bytes that many records share: kept once in memory, and written once into each segment that has such records.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

/// The key of a context, unique in a log for as long as the log is open. Equal bytes need not have the same key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ContextKey(pub(crate) u64);

/// Bytes that many records share. Cheap to clone.
#[derive(Clone)]
pub struct Context(pub(crate) Arc<Shared>);

pub(crate) struct Shared {
    key: ContextKey,
    bytes: Box<[u8]>,
    /// The place where the context was written last: the segment's number, and the index among the contexts
    /// there. Only the committer sets it.
    place: AtomicU64,
}

const INDEX_BITS: u32 = 24;

impl Context {
    pub(crate) fn new(key: u64, bytes: Box<[u8]>) -> Context {
        Context(Arc::new(Shared { key: ContextKey(key), bytes, place: AtomicU64::new(0) }))
    }

    pub fn key(&self) -> ContextKey {
        self.0.key
    }

    pub fn bytes(&self) -> &[u8] {
        &self.0.bytes
    }

    /// Returns the context's index in this segment, if it was written there.
    pub(crate) fn place_in(&self, segment: u64) -> Option<u32> {
        let place = self.0.place.load(Ordering::Relaxed);
        (place != 0 && place >> INDEX_BITS == segment).then_some((place & ((1 << INDEX_BITS) - 1)) as u32)
    }

    pub(crate) fn set_place(&self, segment: u64, index: u32) {
        self.0.place.store(segment << INDEX_BITS | u64::from(index), Ordering::Relaxed);
    }

    pub(crate) fn forget_place(&self) {
        self.0.place.store(0, Ordering::Relaxed);
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Context({}, {} bytes)", self.0.key.0, self.0.bytes.len())
    }
}
