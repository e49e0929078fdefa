//! How many flushes the backend has at once.

use super::pace::Pace;

/// For each CPU of the backend: enough to keep it busy while some of them wait for its disk.
pub(super) const SLOTS_PER_CPU: u32 = 4;
/// Beyond this the connections to the backend are what is scarce.
pub(super) const MOST_SLOTS: u32 = 128;
/// While all are taken, and flushes usually take less than this many times the quickest, there is room for more: they
/// wait for a disk or the network.
const ROOM: f64 = 2.0;
/// From here on they are in each other's way. Between the two nothing changes: each slot moves the usual duration a
/// little, and slots that grow and shrink at the same point would swing around it.
const NO_ROOM: f64 = 2.5;

#[derive(Clone, Debug)]
pub(super) struct FlushSlots {
    count: f64,
    /// Not counting overloads.
    least: f64,
}

impl FlushSlots {
    pub(super) fn new(cpus: u32) -> Self {
        let least = f64::from(cpus.saturating_mul(SLOTS_PER_CPU).min(MOST_SLOTS));
        FlushSlots { count: least, least }
    }

    pub(super) fn set_cpus(&mut self, cpus: u32) {
        let new = FlushSlots::new(cpus);
        if new.least != self.least {
            *self = new;
        }
    }

    pub(super) fn has_free(&self, taken: usize) -> bool {
        (taken as f64) < self.count.floor()
    }

    pub(super) fn overloaded(&mut self) {
        self.count = (self.count / 2.0).max(1.0);
    }

    /// A flush has ended in time; `is_full`: all were taken until then. As many ends as there are slots make it one
    /// more, or one less.
    pub(super) fn ended(&mut self, is_full: bool, pace: &Pace) {
        let (part, stretch) = (1.0 / self.count, pace.stretch());
        if self.count < self.least {
            // After an overload.
            self.count = (self.count + part).min(self.least);
        } else if stretch > NO_ROOM {
            self.count = (self.count - part).max(self.least);
        } else if stretch < ROOM && is_full {
            self.count = (self.count + part).min(f64::from(MOST_SLOTS));
        }
    }
}
