//! The settings that an insert brings along, under ClickHouse's names and with its defaults.

use std::fmt;

use crate::policy::{Micros, Stretch};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PolicyKind {
    /// ClickHouse's algorithm, with its state kept per table.
    Adaptive,
    /// A hold of exactly `busy_timeout_max_ms` after the buffer opened.
    Fixed,
    /// A hold only while more inserts are likely; the default.
    Balanced,
}

impl PolicyKind {
    pub const fn as_str(self) -> &'static str {
        match self {
            PolicyKind::Adaptive => "adaptive",
            PolicyKind::Fixed => "fixed",
            PolicyKind::Balanced => "balanced",
        }
    }
}

/// The effect of reaching `max_query_number` inserts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CountLimit {
    /// No effect, as in ClickHouse while deduplication is off.
    Off,
    /// The buffer is sealed at once, also behind a flush: no batch is ever larger. ClickHouse does that while
    /// deduplication is on.
    Cap,
    /// The buffer is sealed when the sink is free; behind a running flush it grows on. One flush of a shape
    /// runs at a time, so a cap also caps the throughput (450 inserts per 40 ms are 11,000 a second); this
    /// lets a default give way to the load.
    Trigger,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlushLimits {
    pub kind: PolicyKind,
    pub busy_timeout_min_ms: u64,
    pub busy_timeout_max_ms: u64,
    /// The rate at which the hold grows; `fixed` reads neither this rate nor the one at which it shrinks.
    pub increase_rate: f64,
    pub decrease_rate: f64,
    pub max_data_size_bytes: u64,
    pub max_query_number: u64,
    pub count_limit: CountLimit,
    /// True if no time-out was set for this insert: a default applies, which is longer among several gateways.
    pub may_be_stretched: bool,
}

impl Default for FlushLimits {
    fn default() -> Self {
        FlushLimits {
            kind: PolicyKind::Balanced,
            busy_timeout_min_ms: 50,
            busy_timeout_max_ms: 200,
            increase_rate: 0.2,
            decrease_rate: 0.2,
            max_data_size_bytes: 10 * 1024 * 1024,
            max_query_number: 450,
            count_limit: CountLimit::Cap,
            may_be_stretched: true,
        }
    }
}

impl FlushLimits {
    /// Checks the limits as ClickHouse does.
    ///
    /// # Errors
    /// Fails where ClickHouse answers with `INVALID_SETTING_VALUE`: on a maximum of zero, or a rate that is
    /// not positive.
    pub fn validate(&self) -> Result<(), LimitsError> {
        if self.busy_timeout_max_ms == 0 {
            return Err(LimitsError::ZeroMaxTimeout);
        }
        if self.kind == PolicyKind::Fixed {
            return Ok(());
        }
        // NaN is refused too.
        if self.increase_rate.is_nan() || self.increase_rate <= 0.0 {
            return Err(LimitsError::IncreaseRateNotPositive);
        }
        if self.decrease_rate.is_nan() || self.decrease_rate <= 0.0 {
            return Err(LimitsError::DecreaseRateNotPositive);
        }
        Ok(())
    }

    /// Returns the limits for each of several gateways. Only `balanced` has others: the other policies do
    /// exactly what ClickHouse does.
    pub(crate) fn stretched(&self, stretch: Stretch) -> FlushLimits {
        let mut limits = *self;
        if self.kind == PolicyKind::Balanced && self.may_be_stretched && !stretch.is_none() {
            limits.busy_timeout_min_ms = stretch.of_millis(self.min_timeout_ms());
            limits.busy_timeout_max_ms = stretch.of_millis(self.busy_timeout_max_ms);
        }
        limits
    }

    pub(crate) fn max_timeout(&self) -> Micros {
        Micros::from_millis(self.busy_timeout_max_ms)
    }

    /// Returns the minimum time-out. A minimum above the maximum is ignored, as in ClickHouse.
    pub(crate) fn min_timeout_ms(&self) -> u64 {
        self.busy_timeout_min_ms.max(1).min(self.busy_timeout_max_ms)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitsError {
    ZeroMaxTimeout,
    IncreaseRateNotPositive,
    DecreaseRateNotPositive,
}

impl fmt::Display for LimitsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LimitsError::ZeroMaxTimeout => {
                "Setting 'async_insert_busy_timeout_max_ms' can't be zero; set at least 1 millisecond"
            }
            LimitsError::IncreaseRateNotPositive => {
                "Setting 'async_insert_busy_timeout_increase_rate' must be greater than zero"
            }
            LimitsError::DecreaseRateNotPositive => {
                "Setting 'async_insert_busy_timeout_decrease_rate' must be greater than zero"
            }
        })
    }
}

impl std::error::Error for LimitsError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_what_clickhouse_refuses() {
        let fine = FlushLimits { kind: PolicyKind::Adaptive, ..FlushLimits::default() };
        assert_eq!(fine.validate(), Ok(()));
        assert_eq!(FlushLimits { busy_timeout_max_ms: 0, ..fine }.validate(), Err(LimitsError::ZeroMaxTimeout));
        for rate in [0.0, -0.1, f64::NAN] {
            let bad = FlushLimits { increase_rate: rate, ..fine };
            assert_eq!(bad.validate(), Err(LimitsError::IncreaseRateNotPositive));
            let bad = FlushLimits { decrease_rate: rate, ..fine };
            assert_eq!(bad.validate(), Err(LimitsError::DecreaseRateNotPositive));
            // A fixed time-out has no use for the rates.
            assert_eq!(FlushLimits { kind: PolicyKind::Fixed, ..bad }.validate(), Ok(()));
        }
    }

    #[test]
    fn only_defaults_of_balanced_are_stretched() {
        let limits = FlushLimits::default();
        let four = limits.stretched(Stretch::among(4));
        assert_eq!((four.busy_timeout_min_ms, four.busy_timeout_max_ms), (125, 500));
        assert_eq!(limits.stretched(Stretch::NONE), limits);
        for limits in [
            FlushLimits { may_be_stretched: false, ..limits },
            FlushLimits { kind: PolicyKind::Fixed, ..limits },
            FlushLimits { kind: PolicyKind::Adaptive, ..limits },
        ] {
            assert_eq!(limits.stretched(Stretch::among(4)), limits);
        }
    }

    #[test]
    fn a_minimum_above_the_maximum_is_ignored() {
        let limits = FlushLimits { busy_timeout_min_ms: 500, busy_timeout_max_ms: 100, ..FlushLimits::default() };
        assert_eq!(limits.validate(), Ok(()));
        assert_eq!(limits.min_timeout_ms(), 100);
        assert_eq!(FlushLimits { busy_timeout_min_ms: 0, ..limits }.min_timeout_ms(), 1);
    }
}
