//! Whether what the backend said still holds, as far as anybody knows.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// After a question that failed nobody waits for the next one, for so long. Longer than a question may take, so that
/// while the backend is silent one failure follows the other without a gap in which an insert would have to wait.
const FAILED_LATELY: Duration = Duration::from_secs(60);
/// Between a question that failed and the next: a thousand writers must not knock at a dead backend at every insert.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_millis(500);

/// A moment, as microseconds since the process looked at the clock first. Fits into an atomic.
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

/// Shared by what was learnt and by all that stands on it.
#[derive(Debug, Default)]
pub(crate) struct Standing {
    learnt: Moment,
    /// When the question began that last said that it is so.
    confirmed: AtomicU64,
    /// When the last question ended that could not be answered, and when it began.
    failed: AtomicU64,
    failed_question_began: AtomicU64,
    /// When somebody last took it upon himself to have it confirmed again.
    renewed: AtomicU64,
    is_over: AtomicBool,
}

impl Standing {
    pub(crate) fn confirmed_at(moment: Moment) -> Standing {
        let standing = Standing { learnt: moment, ..Standing::default() };
        standing.confirm(moment);
        standing
    }

    /// When it was confirmed first.
    pub(crate) fn learnt(&self) -> Moment {
        self.learnt
    }

    pub(crate) fn confirm(&self, began: Moment) {
        self.confirmed.fetch_max(began.0, Ordering::Release);
    }

    pub(crate) fn confirmed(&self) -> Moment {
        Moment(self.confirmed.load(Ordering::Acquire))
    }

    /// It is not so any more.
    pub(crate) fn end(&self) {
        self.is_over.store(true, Ordering::Release);
    }

    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    /// A question that began then could not be answered.
    pub(crate) fn fail(&self, began: Moment) {
        self.failed_question_began.store(began.0, Ordering::Relaxed);
        self.failed.store(Moment::now().0, Ordering::Release);
    }

    /// Whether a question failed of late that began no earlier than `since`, and none was answered after it.
    pub(crate) fn has_failed_lately(&self, since: Moment) -> bool {
        let failed = Moment(self.failed.load(Ordering::Acquire));
        let began = self.failed_question_began.load(Ordering::Relaxed);
        let is_last_word = began >= since.0 && began >= self.confirmed().0;
        failed.0 > 0 && is_last_word && failed >= Moment::now().before(FAILED_LATELY)
    }

    /// True for one caller, and again after a while: it is to have it confirmed.
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
