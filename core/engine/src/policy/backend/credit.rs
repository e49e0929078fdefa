//! What of the backend's time may go to flushes that nobody waits for. In microseconds of one CPU.

use crate::policy::Micros;

/// The share of each CPU's time.
pub(super) const UNWAITED_SHARE: f64 = 0.25;
/// Unused credit is kept up to this: after a pause a few hundred tables go at sight. Debt is no greater either: those
/// who come later would otherwise pay for as long as others went without credit, because they were overdue.
const MOST: f64 = 1_000_000.0;

#[derive(Clone, Debug)]
pub(super) struct Credit {
    /// Below zero: it was spent in advance.
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

    /// Until there is some again.
    pub(super) fn is_left_in(&self) -> Micros {
        Micros((-self.us).max(0.0).div_euclid(self.per_us) as u64 + 1)
    }

    pub(super) fn time_passed(&mut self, passed: Micros) {
        self.add(passed.0 as f64 * self.per_us);
    }

    /// What was taken, which is less at the limit of debt.
    pub(super) fn take(&mut self, us: f64) -> f64 {
        let before = self.us;
        self.add(-us);
        before - self.us
    }

    /// `taken` was for what has turned out to cost `cost_us`.
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
