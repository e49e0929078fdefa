//! The load that the sink can take: the rest between two flushes of a table, and the wider spacing when its
//! parts pile up.

use crate::policy::{Micros, Stretch};

/// The rest after a flush, as a share of its duration. So flushing takes at most two thirds of a table's time.
const REST: f64 = 0.5;

/// The share of `parts_to_throw_insert` below which parts are left to the merges.
const PARTS_AT_EASE: f64 = 0.5;
/// The share from which the spacing is at its widest.
const PARTS_IN_DANGER: f64 = 0.95;
const WIDEST: Micros = Micros::from_millis(5_000);

#[derive(Clone, Debug, Default)]
pub(super) struct Pressure {
    last_start: Option<Micros>,
    rested_at: Micros,
    interval: Micros,
    stretch: Stretch,
    ended_at: Micros,
}

impl Pressure {
    pub(super) fn flush_started(&mut self, now: Micros) {
        self.last_start = Some(now);
    }

    pub(super) fn flush_ended(&mut self, now: Micros, duration: Micros) {
        self.rested_at = now + duration.scale(REST);
        self.ended_at = now;
    }

    pub(super) fn stretch(&mut self, stretch: Stretch) {
        self.stretch = stretch;
    }

    /// Returns the time when a round of writers ends. A buffer that has every writer in it since `ready`
    /// makes a part with each round of its writers, and so do those of the other gateways: rounds take that
    /// much longer. A writer that did not come right after the flush makes no rounds.
    pub(super) fn round_ends(&self, ready: Micros, round_trip: Micros) -> Micros {
        let ready = ready.max(self.ended_at);
        match self.last_start {
            Some(start) if ready - self.ended_at <= round_trip => ready + self.stretch.beyond(ready - start),
            _ => Micros::ZERO,
        }
    }

    pub(super) fn parts(&mut self, active_in_worst_partition: u64, parts_to_throw: u64) {
        self.interval = interval(active_in_worst_partition, parts_to_throw);
    }

    /// Returns the time before which only a full buffer is worth a part.
    pub(super) fn earliest_start(&self) -> Micros {
        self.last_start.map_or(Micros::ZERO, |start| start + self.interval)
    }

    pub(super) fn rested_at(&self) -> Micros {
        self.rested_at
    }
}

fn interval(active: u64, limit: u64) -> Micros {
    // 0 switches ClickHouse's own limit off, so there is nothing to keep away from.
    if limit == 0 {
        return Micros::ZERO;
    }
    let share = active as f64 / limit as f64;
    let danger = (share - PARTS_AT_EASE) / (PARTS_IN_DANGER - PARTS_AT_EASE);
    WIDEST.scale(danger.clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spacing_grows_with_the_parts() {
        assert_eq!(interval(0, 3000), Micros::ZERO);
        assert_eq!(interval(1500, 3000), Micros::ZERO);
        let middle = interval(2175, 3000); // half way from 0.5 to 0.95
        assert!(middle.0.abs_diff(2_500_000) <= 1, "{middle:?}");
        assert_eq!(interval(2850, 3000), WIDEST);
        assert_eq!(interval(u64::MAX, 3000), WIDEST);
        assert_eq!(interval(10_000, 0), Micros::ZERO);
    }
}
