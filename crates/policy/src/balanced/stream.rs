//! How likely one more insert is: the stream of inserts that nobody's acknowledgement triggers.

use crate::{BufferPolicy, Micros, SealReason};

use super::Outlook;

/// Averages reach back over about this many inserts.
const MEMORY: f64 = 32.0;
/// A stream is evenly spaced when its gaps stray from their mean by less than this share of it...
const EVEN: f64 = 0.2;
/// ... for at least that many gaps.
const EVEN_AFTER: f64 = 8.0;
/// A stream has stopped when it is silent for this many mean gaps: random arrivals do that once in 160,000 times.
const SILENCE_GAPS: f64 = 12.0;
/// Schedulers and sockets are late by milliseconds; a shorter silence says nothing.
const SHORTEST_SILENCE: Micros = Micros::from_millis(5);

#[derive(Clone, Debug, Default)]
pub(crate) struct Stream {
    last: Option<Micros>,
    /// Gaps longer than the maximum hold can't be bridged; they count with that length, as "longer".
    capped_gap_us: Average,
    /// The share of gaps that a hold could bridge.
    bridgeable: Average,
    short_gap_us: Average,
    stray_us: Average,
}

impl Stream {
    /// Returns the pause before this insert.
    pub(crate) fn arrive(&mut self, now: Micros, longest_hold: Micros) -> Micros {
        let Some(last) = self.last.replace(now) else {
            return Micros::NEVER;
        };
        let gap = now - last;
        let bridgeable = gap <= longest_hold;
        self.bridgeable.add(f64::from(u8::from(bridgeable)));
        self.capped_gap_us.add(gap.min(longest_hold).0 as f64);
        if bridgeable {
            let gap_us = gap.0 as f64;
            self.stray_us.add((gap_us - self.short_gap_us.mean).abs());
            self.short_gap_us.add(gap_us);
        }
        gap
    }

    pub(crate) fn outlook(&self, now: Micros, buffer: &BufferPolicy, grace: Micros) -> Outlook {
        let over = |then| Outlook { until: Micros::ZERO, then };
        let Some(last) = self.last else {
            return over(SealReason::Idle);
        };
        if let Some(reason) = buffer.due {
            return over(reason);
        }
        let rate_per_us = self.rate_per_us();
        if rate_per_us <= 0.0 {
            return over(SealReason::Idle);
        }
        let silence = last + Micros((SILENCE_GAPS / rate_per_us) as u64).max(SHORTEST_SILENCE);
        if now >= silence {
            return over(SealReason::Quiet);
        }
        let latest = buffer.deadline + grace;
        if self.is_even() {
            return self.even_outlook(last, buffer, latest);
        }
        let full = rate_per_us * buffer.min_timeout.0 as f64;
        let span = buffer.deadline - buffer.opened_at;
        let until = if full >= 1.0 { latest } else { buffer.opened_at + span.scale(full) };
        if silence < until {
            Outlook { until: silence, then: SealReason::Quiet }
        } else {
            Outlook { until, then: SealReason::Deadline }
        }
    }

    /// The next insert of an even stream is due at a known time: hold exactly for it, or not at all.
    fn even_outlook(&self, last: Micros, buffer: &BufferPolicy, latest: Micros) -> Outlook {
        let gap = Micros(self.short_gap_us.mean as u64);
        if gap > buffer.min_timeout.scale(1.0 + EVEN / 2.0) {
            return Outlook { until: Micros::ZERO, then: SealReason::Idle };
        }
        if last + gap.scale(1.0 - EVEN / 2.0) > latest {
            return Outlook { until: Micros::ZERO, then: SealReason::Deadline };
        }
        let overdue = last + gap.scale(1.0 + 2.0 * EVEN) + SHORTEST_SILENCE;
        if overdue < latest {
            Outlook { until: overdue, then: SealReason::Quiet }
        } else {
            Outlook { until: latest, then: SealReason::Deadline }
        }
    }

    /// Of a stream with random gaps, cut at the longest hold, this is the best estimate.
    fn rate_per_us(&self) -> f64 {
        self.bridgeable.mean / self.capped_gap_us.mean.max(1.0)
    }

    fn is_even(&self) -> bool {
        self.short_gap_us.count >= EVEN_AFTER
            && self.bridgeable.mean > 0.5
            && self.stray_us.mean < EVEN * self.short_gap_us.mean
    }
}

/// A plain mean at first, then one that forgets.
#[derive(Clone, Copy, Debug, Default)]
struct Average {
    mean: f64,
    count: f64,
}

impl Average {
    fn add(&mut self, value: f64) {
        if self.count < MEMORY {
            self.count += 1.0;
        }
        self.mean += (value - self.mean) / self.count;
    }
}
