//! The number of flushes that the backend has at once.

use super::pace::Pace;

/// The slots for each CPU of the backend: enough to keep it busy while some of the flushes wait for its disk.
pub(super) const SLOTS_PER_CPU: u32 = 4;
/// The most slots. Beyond this the connections to the backend are scarce.
pub(super) const MOST_SLOTS: u32 = 128;
/// The stretch below which there is room for more slots. While all are taken, and flushes usually take less
/// than this many times the quickest, they wait for a disk or the network.
const ROOM: f64 = 2.0;
/// The stretch above which flushes slow each other down. Between the two nothing changes: each slot moves the
/// usual duration a little, and slots that grow and shrink at the same point would swing around it.
const NO_ROOM: f64 = 2.5;

#[derive(Clone, Debug)]
pub(super) struct FlushSlots {
    count: f64,
    /// The lower bound of the slots, except after overloads.
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

    /// Notes a flush that has ended in time; with `is_full` all slots were taken until then. As many ends as
    /// there are slots add one slot, or remove one.
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
