//! The decision when a batch that failed is sent again.

use crate::failure::Failure;

/// The facts that are known when it has to be decided.
#[derive(Debug, Clone, Copy)]
pub struct Attempts {
    /// The number of attempts of the batch that have failed, this one included.
    pub failed: u32,
    /// The time since the first of them ended, in milliseconds.
    pub elapsed_ms: u64,
    /// True if the rows would survive the end of the process.
    pub survives: bool,
}

/// A policy for retries. A program may bring its own.
pub trait Retry: Send {
    /// Returns after how many milliseconds to try again. With `None` the writer gives up, and the rows are
    /// handed over with the error.
    fn again_after_ms(&mut self, failure: &Failure, attempts: Attempts) -> Option<u64>;
}

/// A policy that waits longer each time, with a random share so that many writers don't come back at once.
#[derive(Debug, Clone)]
pub struct Backoff {
    pub first_ms: u64,
    pub max_ms: u64,
    /// The number of attempts after which it gives up.
    pub max_attempts: Option<u32>,
    /// The time since the first failure after which it gives up, in milliseconds. `None` stands for
    /// [`MEMORY_RETRY_MS`] where rows don't survive the process anyway, and for no limit where they do.
    pub max_elapsed_ms: Option<u64>,
    pub seed: u64,
}

/// The time for which rows in memory are tried by default.
pub const MEMORY_RETRY_MS: u64 = 5 * 60 * 1000;

impl Default for Backoff {
    fn default() -> Self {
        Backoff { first_ms: 100, max_ms: 10_000, max_attempts: None, max_elapsed_ms: None, seed: 1 }
    }
}

impl Retry for Backoff {
    fn again_after_ms(&mut self, _failure: &Failure, attempts: Attempts) -> Option<u64> {
        let max_elapsed_ms = self.max_elapsed_ms.or((!attempts.survives).then_some(MEMORY_RETRY_MS));
        let is_over = max_elapsed_ms.is_some_and(|max_ms| attempts.elapsed_ms >= max_ms);
        if is_over || self.max_attempts.is_some_and(|max| attempts.failed >= max) {
            return None;
        }
        let doublings = attempts.failed.saturating_sub(1).min(32);
        let full_ms = self.first_ms.saturating_mul(1 << doublings).min(self.max_ms);
        // Between a half and the whole of it.
        let random = self.random();
        Some(full_ms / 2 + random % (full_ms - full_ms / 2 + 1))
    }
}

impl Backoff {
    /// Returns a random number by SplitMix64.
    fn random(&mut self) -> u64 {
        self.seed = self.seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.seed ^ (self.seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn again(backoff: &mut Backoff, failed: u32, elapsed_ms: u64, survives: bool) -> Option<u64> {
        backoff.again_after_ms(&Failure::passing("away"), Attempts { failed, elapsed_ms, survives })
    }

    #[test]
    fn waits_grow_to_a_limit() {
        let mut backoff = Backoff { first_ms: 100, max_ms: 1000, ..Backoff::default() };
        for (failed, full_ms) in [(1, 100), (2, 200), (4, 800), (5, 1000), (500, 1000)] {
            let waited = again(&mut backoff, failed, 0, true).unwrap();
            assert!((full_ms / 2..=full_ms).contains(&waited), "{failed}: {waited}");
        }
    }

    #[test]
    fn it_gives_up_by_number_and_time() {
        let mut backoff = Backoff { max_attempts: Some(3), ..Backoff::default() };
        assert!(again(&mut backoff, 2, 0, true).is_some());
        assert!(again(&mut backoff, 3, 0, true).is_none());
        let mut backoff = Backoff::default();
        assert!(again(&mut backoff, 9, MEMORY_RETRY_MS, true).is_some());
        assert!(again(&mut backoff, 9, MEMORY_RETRY_MS, false).is_none());
    }
}
