//! The credit of the backend's time for flushes that no client waits for. It is counted in microseconds of
//! one CPU.

use crate::policy::Micros;

/// The share of each CPU's time that such flushes get.
pub(super) const UNWAITED_SHARE: f64 = 0.25;
/// The most unused credit that is kept, in microseconds: after a pause a few hundred tables flush at sight.
/// Debt is no greater either: later lanes would otherwise pay for as long as others went without credit,
/// because they were overdue.
const MOST: f64 = 1_000_000.0;

#[derive(Clone, Debug)]
pub(super) struct Credit {
    /// The credit in microseconds; below zero if it was spent in advance.
    us: f64,
    per_us: f64,
}

impl Credit {
    pub(super) fn new(cpus: u32) -> Self {
        Credit { us: MOST, per_us: share_of(cpus) }
    }

    pub(super) fn set_cpus(&mut self, cpus: u32) {
        self.per_us = share_of(cpus);
    }

    pub(super) fn is_left(&self) -> bool {
        self.us > 0.0
    }

    /// Returns the time until there is credit again.
    pub(super) fn is_left_in(&self) -> Micros {
        Micros((-self.us).max(0.0).div_euclid(self.per_us) as u64 + 1)
    }

    pub(super) fn time_passed(&mut self, passed: Micros) {
        self.add(passed.0 as f64 * self.per_us);
    }

    /// Takes credit. Returns the amount that was taken, which is less at the limit of debt.
    pub(super) fn take(&mut self, us: f64) -> f64 {
        let before = self.us;
        self.add(-us);
        before - self.us
    }

    /// Settles a flush for which `taken_us` was taken, and which has turned out to cost `cost_us`.
    pub(super) fn settle(&mut self, taken_us: f64, cost_us: f64) {
        self.add(taken_us - cost_us);
    }

    fn add(&mut self, us: f64) {
        self.us = (self.us + us).clamp(-MOST, MOST);
    }
}

fn share_of(cpus: u32) -> f64 {
    UNWAITED_SHARE * f64::from(cpus)
}
