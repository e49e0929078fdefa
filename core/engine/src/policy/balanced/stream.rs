//! The prediction of one more insert in the stream: inserts that no acknowledgement causes.

use crate::policy::{BufferPolicy, FlushLimits, Micros, SealReason, Stretch};

use super::average::Average;
use super::HoldForecast;

/// The lateness of a timer at the longest hold; a shorter hold has the other lateness. Inserts that arrive in
/// between still join. ClickHouse's deadline thread looks every 10 ms or at the next insert, which is late by
/// as much on average.
pub(super) const LATE_AT_MAXIMUM: Micros = Micros::from_millis(5);
const LATE_BELOW_MAXIMUM: Micros = Micros(1_500);
/// The lateness for an even stream: its next insert is worth waiting for up to ClickHouse's own worst case.
pub(super) const LATE_WHEN_EVEN: Micros = Micros::from_millis(10);

/// The factor of the expected inserts at which a buffer goes at once. Its many inserts have the most to lose,
/// if clients wait for them at all, or so few were expected that the surprise is no artefact of a busy
/// machine.
const PLENTY: f64 = 1.85;
/// The number of expected inserts from which the rate of a moment says little: inserts then arrive in
/// bunches, as the machine has time for them.
const MANY_EXPECTED: f64 = 100.0;

/// The number of minimum time-outs above which a gap always shrinks the hold. Without it a hold of seconds
/// would live on gaps that are shorter than itself and yet far too long to gather anything.
const STICKY_MINIMUMS: f64 = 4.0;

/// The number of longest holds after which a table is idle in any case. After a pause of one longest hold it
/// is idle if its flushes were that far apart too.
const IDLE_HOLDS: f64 = 20.0;

/// The factor of the next lower hold above which a gap shrinks the hold. ClickHouse shrinks a little sooner,
/// and loses more inserts by it than it gains in time.
const RELUCTANCE: f64 = 1.04;

/// The share of their mean by which the gaps of an evenly spaced stream may deviate from it.
const EVEN: f64 = 0.2;
/// The least number of gaps that show that a stream is evenly spaced.
const EVEN_AFTER: f64 = 8.0;

/// The number of mean gaps of silence after which a stream has stopped: random arrivals do that once in
/// 160,000 times.
const SILENCE_GAPS: f64 = 12.0;
/// The number of inserts from which a buffer takes the hold that is right now, not the one that was right
/// when it opened.
const RUSH: u64 = 24;
/// The shortest silence that says anything: schedulers and sockets are late by milliseconds.
const SHORTEST_SILENCE: Micros = Micros::from_millis(5);

#[derive(Clone, Debug, Default)]
pub(super) struct Stream {
    last: Option<Micros>,
    /// The hold, which walks between the two time-outs: up with every short gap, down with every long one.
    hold: Micros,
    /// The mean of the gaps. Gaps longer than the longest hold can't be bridged; they count with that length.
    capped_gap_us: Average,
    /// The share of gaps that a hold could bridge.
    bridgeable: Average,
    short_gap_us: Average,
    stray_us: Average,
    /// The share of pauses that ended in a burst: a second insert right after the first.
    pause_ends_in_burst: Average,
    after_pause: bool,
    /// Ends of the last two flushes, the latest last.
    flushes: [Option<Micros>; 2],
    stretch: Stretch,
}

impl Stream {
    pub(super) fn stretch(&mut self, stretch: Stretch) {
        self.stretch = stretch;
    }

    pub(super) fn arrive(&mut self, now: Micros, buffer: &mut BufferPolicy, limits: &FlushLimits) {
        let longest = limits.max_timeout();
        let pause = self.last.replace(now).map_or(Micros::NEVER, |last| now - last);
        let idle = pause > longest && (self.flushes_apart_by(longest) || pause > longest.scale(IDLE_HOLDS));
        self.walk(pause, limits);
        if pause < Micros::NEVER {
            self.measure(pause, longest);
        }
        if self.after_pause {
            self.pause_ends_in_burst.add(f64::from(u8::from(pause <= SHORTEST_SILENCE)));
        }
        self.after_pause = pause > longest;
        if buffer.inserts() == 1 && idle {
            buffer.due = Some(SealReason::Idle);
        }
        let rush = buffer.inserts() >= RUSH && pause <= SHORTEST_SILENCE;
        if buffer.hold.is_none() || rush {
            buffer.hold = Some(self.hold);
        }
    }

    pub(super) fn flush_ended(&mut self, now: Micros) {
        self.flushes = [self.flushes[1], Some(now)];
    }

    fn flushes_apart_by(&self, span: Micros) -> bool {
        match self.flushes {
            [Some(older), Some(newer)] => newer - older > span,
            _ => true,
        }
    }

    fn walk(&mut self, gap: Micros, limits: &FlushLimits) {
        let shortest = Micros::from_millis(limits.min_timeout_ms());
        let longer = self.hold.scale(1.0 + limits.increase_rate);
        let shorter = self.hold.scale(1.0 / (1.0 + limits.decrease_rate));
        if gap < shortest {
            self.hold = longer;
        } else if gap > shorter.scale(RELUCTANCE).min(shortest.scale(STICKY_MINIMUMS)) {
            self.hold = shorter;
        }
        self.hold = self.hold.clamp(shortest, limits.max_timeout());
    }

    fn measure(&mut self, gap: Micros, longest: Micros) {
        let bridgeable = gap <= longest;
        self.bridgeable.add(f64::from(u8::from(bridgeable)));
        self.capped_gap_us.add(gap.min(longest).0 as f64);
        if bridgeable {
            let gap_us = gap.0 as f64;
            self.stray_us.add((gap_us - self.short_gap_us.mean()).abs());
            self.short_gap_us.add(gap_us);
        }
    }

    /// Returns the time until which holding for more of the stream is worth it, and the reason to seal after
    /// that.
    pub(super) fn outlook(&self, now: Micros, buffer: &BufferPolicy) -> HoldForecast {
        let Some(last) = self.last else {
            return HoldForecast::over(SealReason::Idle);
        };
        if buffer.due.is_some() && buffer.inserts() == 1 {
            return self.first_after_pause(buffer);
        }
        let rate_per_us = self.rate_per_us();
        let silence = last + Micros((SILENCE_GAPS / rate_per_us) as u64).max(self.shortest_silence());
        if now >= silence {
            return HoldForecast::over(SealReason::Quiet);
        }
        if self.is_even() {
            return self.even_outlook(last, buffer);
        }
        let hold = match buffer.hold {
            Some(hold) => hold,
            // Nobody of the stream is in the buffer yet: only a busy one is worth holding others for.
            None if rate_per_us * buffer.min_timeout.0 as f64 >= 1.0 => self.hold,
            None => return HoldForecast::over(SealReason::Idle),
        };
        let expected = 1.0 + rate_per_us * hold.0 as f64;
        let heeded = buffer.is_waited_for() || expected < MANY_EXPECTED;
        if now == last && heeded && buffer.inserts() as f64 >= PLENTY * expected {
            return HoldForecast::over(SealReason::Plenty);
        }
        let latest = buffer.deadline + LATE_AT_MAXIMUM;
        let held = buffer.opened_at + hold;
        let until = if held >= buffer.deadline { latest } else { (held + LATE_BELOW_MAXIMUM).min(latest) };
        HoldForecast::first_of(silence, until)
    }

    /// Returns the shortest silence that ends a hold. A longer hold meets more of a machine's pauses. When
    /// those ended it, four gateways made 2.1 times the parts of one at 8,000 inserts/s.
    fn shortest_silence(&self) -> Micros {
        SHORTEST_SILENCE.scale(self.stretch.factor())
    }

    fn first_after_pause(&self, buffer: &BufferPolicy) -> HoldForecast {
        if self.pause_ends_in_burst.mean() > 0.5 {
            return HoldForecast { until: buffer.opened_at + SHORTEST_SILENCE, then: SealReason::Idle };
        }
        HoldForecast::over(SealReason::Idle)
    }

    /// Returns the outlook of an even stream. Its next insert is due at a known time: hold exactly for it, or
    /// not at all.
    fn even_outlook(&self, last: Micros, buffer: &BufferPolicy) -> HoldForecast {
        let gap = Micros(self.short_gap_us.mean() as u64);
        let soon = gap.scale(1.0 - EVEN / 2.0);
        if soon > buffer.min_timeout {
            return HoldForecast::over(SealReason::Idle);
        }
        let latest = if gap.scale(1.0 + EVEN / 2.0) < buffer.min_timeout {
            buffer.deadline + LATE_WHEN_EVEN
        } else {
            // The gap is about the minimum: one more insert is all that holding is worth.
            (buffer.opened_at + gap.scale(1.0 + EVEN)).min(buffer.deadline + LATE_WHEN_EVEN)
        };
        if last + soon > latest {
            return HoldForecast::over(SealReason::Deadline);
        }
        HoldForecast::first_of(last + gap.scale(1.0 + 2.0 * EVEN) + self.shortest_silence(), latest)
    }

    /// Returns the best estimate of the rate for random gaps that are cut at the longest hold; 0 if no gap
    /// could be bridged.
    fn rate_per_us(&self) -> f64 {
        self.bridgeable.mean() / self.capped_gap_us.mean().max(1.0)
    }

    fn is_even(&self) -> bool {
        self.short_gap_us.count() >= EVEN_AFTER
            && self.bridgeable.mean() > 0.5
            && self.stray_us.mean() < EVEN * self.short_gap_us.mean()
    }
}
