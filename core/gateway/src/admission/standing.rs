//! Validity of the backend's answers, as far as it is known.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Time after a failed question in which no insert waits for the next one. It is longer than a question may
/// take, so that while the backend is silent, failures follow each other without a gap in which an insert
/// would have to wait.
const FAILED_LATELY: Duration = Duration::from_secs(60);
/// Pause between a failed question and the next: a thousand writers must not ask a dead backend per insert.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_millis(500);

/// A moment, in microseconds since the process first looked at the clock. It fits into an atomic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(crate) struct Moment(u64);

impl Moment {
    pub(crate) fn now() -> Moment {
        Moment::of(Instant::now())
    }

    pub(crate) fn of(instant: Instant) -> Moment {
        static START: OnceLock<Instant> = OnceLock::new();
        // Never zero, which stands for "not yet".
        Moment(instant.saturating_duration_since(*START.get_or_init(Instant::now)).as_micros() as u64 + 1)
    }

    pub(crate) fn as_micros(self) -> u64 {
        self.0
    }

    pub(crate) fn of_micros(micros: u64) -> Moment {
        Moment(micros)
    }

    pub(crate) fn elapsed(self) -> Duration {
        Duration::from_micros(Moment::now().0.saturating_sub(self.0))
    }

    pub(crate) fn before(self, span: Duration) -> Moment {
        Moment(self.0.saturating_sub(u64::try_from(span.as_micros()).unwrap_or(u64::MAX)))
    }
}

/// Validity of an answer, shared by the answer and by everything that is based on it.
#[derive(Debug, Default)]
pub(crate) struct Standing {
    learnt: Moment,
    /// Moment at which the last question that confirmed the answer began.
    confirmed: AtomicU64,
    /// Moment at which the last question that could not be answered ended.
    failed: AtomicU64,
    /// Moment at which that question began.
    failed_question_began: AtomicU64,
    /// Moment at which a caller last undertook to have the answer confirmed again.
    renewed: AtomicU64,
    is_over: AtomicBool,
}

impl Standing {
    pub(crate) fn confirmed_at(moment: Moment) -> Standing {
        let standing = Standing { learnt: moment, ..Standing::default() };
        standing.confirm(moment);
        standing
    }

    /// Returns the moment of the first confirmation.
    pub(crate) fn learnt(&self) -> Moment {
        self.learnt
    }

    pub(crate) fn confirm(&self, began: Moment) {
        self.confirmed.fetch_max(began.0, Ordering::Release);
    }

    pub(crate) fn confirmed(&self) -> Moment {
        Moment(self.confirmed.load(Ordering::Acquire))
    }

    /// Notes that the answer is not true any more.
    pub(crate) fn end(&self) {
        self.is_over.store(true, Ordering::Release);
    }

    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    /// Notes that a question which began then could not be answered.
    pub(crate) fn fail(&self, began: Moment) {
        self.failed_question_began.store(began.0, Ordering::Relaxed);
        self.failed.store(Moment::now().0, Ordering::Release);
    }

    /// Says whether a question that began at `since` or later failed lately, and no later one was answered.
    pub(crate) fn has_failed_lately(&self, since: Moment) -> bool {
        let failed = Moment(self.failed.load(Ordering::Acquire));
        let began = self.failed_question_began.load(Ordering::Relaxed);
        let is_last_word = began >= since.0 && began >= self.confirmed().0;
        failed.0 > 0 && is_last_word && failed >= Moment::now().before(FAILED_LATELY)
    }

    /// Returns true for one caller, and again after a while: that caller is to have the answer confirmed.
    pub(crate) fn begin_renewal(&self) -> bool {
        let now = Moment::now();
        let pause_began = now.before(PAUSE_AFTER_FAILURE);
        let last = self.renewed.load(Ordering::Relaxed).max(self.failed.load(Ordering::Relaxed));
        if last > pause_began.0 {
            return false;
        }
        let renewed = self.renewed.load(Ordering::Relaxed);
        self.renewed.compare_exchange(renewed, now.0, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_renews_at_a_time_and_none_right_after_a_failure() {
        let standing = Standing::default();
        assert!(standing.begin_renewal() || Moment::now().0 <= 500_000, "the process is younger than the pause");
        assert!(!standing.begin_renewal());
        let began = Moment::now();
        standing.fail(began);
        assert!(!standing.begin_renewal(), "it has failed only now");
        assert!(standing.has_failed_lately(began));
        assert!(!standing.has_failed_lately(Moment(began.0 + 1)), "what was known has been doubted since");
    }

    #[test]
    fn a_late_answer_does_not_take_a_confirmation_back() {
        let standing = Standing::confirmed_at(Moment(7));
        standing.confirm(Moment(5));
        assert_eq!(standing.confirmed(), Moment(7));
        assert!(!standing.is_over());
        standing.end();
        assert!(standing.is_over());
    }
}
