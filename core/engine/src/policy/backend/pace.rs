//! How long flushes take: usually, when nothing is in their way, and what of that can have been a CPU's time.

use crate::policy::Micros;

/// Of the usual duration, before any flush has ended.
const FIRST_GUESS: Micros = Micros::from_millis(5);
/// No flush moves a figure by more than this share of it. So "usual" is a running median: whether a table is held up
/// for a second or an hour is the same. And no odd one, such as one that had nothing to send, decides what "quickest"
/// is.
const STEP: f64 = 1.0 / 32.0;
/// By which "quickest" rises with each flush that took longer, if there were free slots: a backend that has become
/// twice as slow is believed after 7,000 of them. While all are taken it stays, or a backend that is full for some
/// minutes would have its queues taken for its nature, and be given more slots to queue in.
const DRIFT: f64 = 1.0001;
/// With this many flushes for each CPU in the air it shows how much of a CPU one of them has at most.
const CROWD: f64 = 2.0;
/// Of the time of a flush that is a CPU's: a limit to what a wrong estimate can do.
const LEAST_CPU_SHARE: f64 = 1.0 / 16.0;

#[derive(Clone, Debug)]
pub(super) struct Pace {
    usual_us: f64,
    quickest_us: Option<f64>,
    /// What a flush in a crowd usually has of a CPU at most.
    cpu_us: Option<f64>,
}

impl Default for Pace {
    fn default() -> Self {
        Pace { usual_us: FIRST_GUESS.0 as f64, quickest_us: None, cpu_us: None }
    }
}

impl Pace {
    pub(super) fn usual_us(&self) -> f64 {
        self.usual_us
    }

    /// How many times longer than without others in its way a flush usually takes.
    pub(super) fn stretch(&self) -> f64 {
        self.quickest_us.map_or(1.0, |quickest_us| self.usual_us / quickest_us)
    }

    /// The share of a flush's time that keeps a CPU busy, at most. The whole of it until a crowd has been seen in which
    /// each got on faster than with its share of the CPUs.
    pub(super) fn cpu_share(&self) -> f64 {
        let share = self.cpu_us.zip(self.quickest_us).map_or(1.0, |(cpu_us, quickest_us)| cpu_us / quickest_us);
        share.clamp(LEAST_CPU_SHARE, 1.0)
    }

    /// A flush has come in time. `cpu_us`: what it had of a CPU, if all in the air share them evenly.
    pub(super) fn came_in_time(&mut self, took: Micros, cpu_us: f64, is_full: bool) {
        self.took(took);
        let took_us = took.0.max(1) as f64;
        let drift = if is_full { 1.0 } else { DRIFT };
        let risen_us = self.quickest_us.map_or(took_us, |quickest_us| quickest_us * drift);
        self.quickest_us = Some(approach(risen_us, took_us.min(risen_us)));
        if cpu_us * CROWD <= took_us {
            self.cpu_us = Some(approach(self.cpu_us.unwrap_or(took_us), cpu_us));
        }
    }

    /// A flush has come in time, or this was as long as it was waited for.
    pub(super) fn took(&mut self, took: Micros) {
        self.usual_us = approach(self.usual_us, took.0.max(1) as f64);
    }
}

fn approach(figure: f64, seen: f64) -> f64 {
    seen.clamp(figure * (1.0 - STEP), figure * (1.0 + STEP))
}
