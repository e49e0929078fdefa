//! The durations of flushes: the usual one, the quickest one without others in the way, and the part of them
//! that can have been a CPU's time.

use crate::policy::Micros;

/// The guess of the usual duration, before any flush has ended.
const FIRST_GUESS: Micros = Micros::from_millis(5);
/// The largest share by which one flush moves a figure. So "usual" is a running median: it makes no
/// difference whether a table is held up for a second or an hour. And no single flush, such as one that had
/// nothing to send, decides the value of "quickest".
const STEP: f64 = 1.0 / 32.0;
/// The factor by which "quickest" rises with each flush that took longer, if there were free slots: a backend
/// that has become twice as slow is believed after 7,000 of them. While all slots are taken it stays.
/// Otherwise the queues of a backend that is full for some minutes would count as its normal state, and it
/// would get more slots to queue in.
const DRIFT: f64 = 1.0001;
/// The number of running flushes for each CPU that shows the most CPU time that one of them has.
const CROWD: f64 = 2.0;
/// The least share of a flush's time that counts as a CPU's: it limits the effect of a wrong estimate.
const LEAST_CPU_SHARE: f64 = 1.0 / 16.0;

#[derive(Clone, Debug)]
pub(super) struct Pace {
    usual_us: f64,
    quickest_us: Option<f64>,
    /// The most CPU time that a flush in a crowd usually has.
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

    /// Returns how many times longer a flush usually takes than without others in its way.
    pub(super) fn stretch(&self) -> f64 {
        self.quickest_us.map_or(1.0, |quickest_us| self.usual_us / quickest_us)
    }

    /// Returns the largest share of a flush's time that can keep a CPU busy. It is the whole time until a
    /// crowd has been seen in which each flush was faster than its share of the CPUs allows.
    pub(super) fn cpu_share(&self) -> f64 {
        let share = self.cpu_us.zip(self.quickest_us).map_or(1.0, |(cpu_us, quickest_us)| cpu_us / quickest_us);
        share.clamp(LEAST_CPU_SHARE, 1.0)
    }

    /// Notes a flush that has come in time. `cpu_us` is the CPU time that it had, if all running ones share
    /// the CPUs evenly.
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

    /// Notes the duration of a flush that has come in time, or the time for which a late one was waited for.
    pub(super) fn took(&mut self, took: Micros) {
        self.usual_us = approach(self.usual_us, took.0.max(1) as f64);
    }
}

fn approach(figure: f64, seen: f64) -> f64 {
    seen.clamp(figure * (1.0 - STEP), figure * (1.0 + STEP))
}
