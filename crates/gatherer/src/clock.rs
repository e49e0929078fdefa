use std::time::{Instant, SystemTime, UNIX_EPOCH};

use windrow_policy::Micros;

/// Monotonic time since the gatherer started: what the flush policies are told.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    start: Instant,
}

impl Clock {
    pub(crate) fn start() -> Clock {
        Clock { start: Instant::now() }
    }

    pub(crate) fn now(self) -> Micros {
        Micros(self.start.elapsed().as_micros() as u64)
    }

    /// The moment as the runtime's timers know it; `None` for never.
    pub(crate) fn instant(self, at: Micros) -> Option<tokio::time::Instant> {
        self.start.checked_add(std::time::Duration::from_micros(at.0)).map(tokio::time::Instant::from_std)
    }
}

/// Microseconds since 1970, for people and logs only: this clock may jump.
pub(crate) fn wall_micros() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as u64)
}
