//! The time to wait before trying again: twice as long each time, up to a bound, and never in step with others.

use std::time::{Duration, Instant};

use crate::client::options::ClientOptions;
use crate::error::Error;

#[derive(Debug, Clone)]
pub struct Backoff {
    min_ms: u64,
    max_ms: u64,
    next_ms: u64,
}

impl Backoff {
    pub fn new(min_ms: u64, max_ms: u64) -> Self {
        let min_ms = min_ms.max(1);
        Self { min_ms, max_ms: max_ms.max(min_ms), next_ms: min_ms }
    }

    /// Starts with the shortest time again, after a success.
    pub fn reset(&mut self) {
        self.next_ms = self.min_ms;
    }

    pub fn max_delay(&self) -> Duration {
        Duration::from_millis(self.max_ms)
    }

    pub async fn pause(&mut self) {
        tokio::time::sleep(self.next_delay()).await;
    }

    /// Returns a random time, between half of the present one and all of it, and doubles the present one.
    pub fn next_delay(&mut self) -> Duration {
        let upper_ms = self.next_ms;
        self.next_ms = upper_ms.saturating_mul(2).min(self.max_ms);
        Duration::from_millis(fastrand::u64(upper_ms.div_ceil(2)..=upper_ms))
    }
}

/// The repetition of a request until its time is over.
pub(crate) struct Retry {
    backoff: Backoff,
    until: Instant,
}

impl Retry {
    pub(crate) fn new(options: &ClientOptions) -> Self {
        let until = Instant::now() + Duration::from_millis(options.retry_for_ms);
        Self { backoff: Backoff::new(options.min_backoff_ms, options.max_backoff_ms), until }
    }

    /// Waits before the next attempt. Returns the error if another attempt would be in vain, or too late.
    pub(crate) async fn after(&mut self, error: Error) -> Result<(), Error> {
        let delay = self.backoff.next_delay();
        if !error.is_retriable() || Instant::now() + delay > self.until {
            return Err(error);
        }
        tokio::time::sleep(delay).await;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_to_the_bound_and_begin_anew() {
        let mut backoff = Backoff::new(50, 300);
        for upper_ms in [50, 100, 200, 300, 300] {
            let delay_ms = backoff.next_delay().as_millis() as u64;
            assert!((upper_ms / 2..=upper_ms).contains(&delay_ms), "{delay_ms} ms of {upper_ms}");
        }
        backoff.reset();
        assert!(backoff.next_delay().as_millis() <= 50);
    }
}
