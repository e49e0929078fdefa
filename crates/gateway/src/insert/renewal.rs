//! When a remembered admission is asked for again, and whether that has failed of late.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Between a question that failed and the next: a thousand writers must not knock at a dead backend at every insert.
const PAUSE: Duration = Duration::from_millis(500);
/// For so long after an admission that failed nobody waits for the next one. Longer than its three questions may take, so
/// that while the backend is silent one failure follows the other without a gap in which an insert would have to wait.
const LATELY: Duration = Duration::from_secs(60);

#[derive(Default)]
pub(crate) struct Renewal {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    is_under_way: bool,
    failed: Option<Failure>,
}

struct Failure {
    at: Instant,
    /// Of what was known then: a failure from before a DDL statement says nothing of whether there is an answer now.
    epoch: u64,
}

impl Renewal {
    /// True for one caller, who is to ask and then to say how it went.
    pub(crate) fn begin(&self) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let pauses = state.failed.as_ref().is_some_and(|failed| failed.at.elapsed() < PAUSE);
        let begins = !state.is_under_way && !pauses;
        state.is_under_way |= begins;
        begins
    }

    pub(crate) fn failed(&self, epoch: u64) {
        let failed = Some(Failure { at: Instant::now(), epoch });
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = State { is_under_way: false, failed };
    }

    pub(crate) fn has_failed_lately(&self, epoch: u64) -> bool {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.failed.as_ref().is_some_and(|failed| failed.epoch == epoch && failed.at.elapsed() < LATELY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_asks_at_a_time_and_none_right_after_a_failure() {
        let renewal = Renewal::default();
        assert!(renewal.begin() && !renewal.begin());
        renewal.failed(3);
        assert!(!renewal.begin(), "it has failed only now");
        assert!(renewal.has_failed_lately(3));
        assert!(!renewal.has_failed_lately(4), "what was known has been given up since");
    }
}
