//! Pauses between attempts that go on for ever.

use std::time::Duration;

#[derive(Debug)]
pub(crate) struct Backoff {
    next: Duration,
}

const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(5);

impl Default for Backoff {
    fn default() -> Self {
        Backoff { next: FIRST }
    }
}

impl Backoff {
    /// Each time twice as long, with some chance in it, so that many don't come back at the same time.
    pub(crate) fn next(&mut self) -> Duration {
        let pause = self.next.mul_f64(0.8 + 0.4 * fastrand::f64());
        self.next = (self.next * 2).min(LONGEST);
        pause
    }

    pub(crate) async fn pause(&mut self) {
        tokio::time::sleep(self.next()).await;
    }

    pub(crate) fn reset(&mut self) {
        self.next = FIRST;
    }
}
