use crate::policy::Micros;
use tokio::time::Instant;

/// Monotonic time since the gatherer started, which the flush policies are told. The clock is the runtime's,
/// so that a test can hold it.
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

    /// Returns the moment as the runtime's timers know it, or `None` for never.
    pub(crate) fn instant(self, at: Micros) -> Option<Instant> {
        self.start.checked_add(std::time::Duration::from_micros(at.0))
    }
}
