//! Memory of large answers that is used again. The system has to clear freshly mapped memory, page by page,
//! which costs about as much as reading an answer into it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;

const MAX_KEPT: usize = 4;
const MAX_KEPT_BYTES: usize = 32 << 20;
/// Time after which unused memory is freed for others.
const UNUSED: Duration = Duration::from_secs(5);
/// Bytes that sizes are rounded up to, so that answers of about the same size fit into each other's memory.
const ROUNDED_TO: usize = 1 << 20;

#[derive(Debug, Default)]
pub(crate) struct FramePool {
    free: Mutex<Vec<Free>>,
}

#[derive(Debug)]
struct Free {
    memory: Vec<u8>,
    since: Instant,
}

impl FramePool {
    fn free(&self) -> MutexGuard<'_, Vec<Free>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns empty memory for this number of bytes, if the pool has any.
    pub(crate) fn take(&self, wanted: usize) -> Option<Vec<u8>> {
        let mut free = self.free();
        let fits = free.iter().enumerate().filter(|(_, free)| free.memory.capacity() >= wanted);
        let smallest = fits.min_by_key(|(_, free)| free.memory.capacity()).map(|(index, _)| index);
        smallest.map(|index| free.swap_remove(index).memory)
    }

    pub(crate) fn rounded(wanted: usize) -> usize {
        wanted.next_multiple_of(ROUNDED_TO)
    }

    /// Returns the memory as shared bytes. It comes back to the pool when the last of them is dropped.
    pub(crate) fn share(self: &Arc<Self>, memory: Vec<u8>) -> Bytes {
        Bytes::from_owner(Pooled { memory, pool: self.clone() })
    }

    fn give_back(&self, mut memory: Vec<u8>) {
        memory.clear();
        let mut free = self.free();
        free.push(Free { memory, since: Instant::now() });
        let is_too_much = |free: &[Free]| {
            free.len() > MAX_KEPT || free.iter().map(|free| free.memory.capacity()).sum::<usize>() > MAX_KEPT_BYTES
        };
        // What would be too large for the pool is the first to go, then what fits least often.
        free.retain(|free| free.memory.capacity() <= MAX_KEPT_BYTES);
        while is_too_much(&free) {
            let smallest = (0..free.len()).min_by_key(|index| free[*index].memory.capacity()).unwrap_or_default();
            free.swap_remove(smallest);
        }
    }

    /// Frees memory that was not used for a while.
    pub(crate) fn trim(&self) {
        let mut free = self.free();
        if !free.is_empty() {
            let now = Instant::now();
            free.retain(|free| now.duration_since(free.since) < UNUSED);
        }
    }
}

struct Pooled {
    memory: Vec<u8>,
    pool: Arc<FramePool>,
}

impl AsRef<[u8]> for Pooled {
    fn as_ref(&self) -> &[u8] {
        &self.memory
    }
}

impl Drop for Pooled {
    fn drop(&mut self) {
        self.pool.give_back(std::mem::take(&mut self.memory));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(pool: &FramePool) -> Vec<usize> {
        let mut sizes: Vec<usize> = pool.free().iter().map(|free| free.memory.capacity() >> 20).collect();
        sizes.sort();
        sizes
    }

    #[test]
    fn memory_comes_back_when_nobody_reads_it_any_more() {
        let pool = Arc::new(FramePool::default());
        assert!(pool.take(1).is_none());
        let mut memory = Vec::with_capacity(3 << 20);
        memory.extend_from_slice(b"an answer");
        let whole = pool.share(memory);
        let part = whole.slice(3..);
        drop(whole);
        assert!(pool.take(1).is_none());
        assert_eq!(part, b"answer"[..]);
        drop(part);
        assert!(pool.take(4 << 20).is_none());
        let memory = pool.take(3 << 20).unwrap();
        assert!(memory.is_empty() && memory.capacity() >= 3 << 20);
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let pool = Arc::new(FramePool::default());
        for megabytes in [1, 2, 3, 4, 5, 6] {
            drop(pool.share(Vec::with_capacity(megabytes << 20)));
        }
        assert_eq!(sizes(&pool), [3, 4, 5, 6]);
        drop(pool.share(Vec::with_capacity(20 << 20)));
        assert_eq!(sizes(&pool), [5, 6, 20]);
        drop(pool.share(Vec::with_capacity(40 << 20)));
        assert_eq!(sizes(&pool), [5, 6, 20]);
        for free in pool.free().iter_mut() {
            free.since = Instant::now().checked_sub(UNUSED).unwrap();
        }
        pool.trim();
        assert!(sizes(&pool).is_empty());
    }
}
