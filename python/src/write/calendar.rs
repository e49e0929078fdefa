//! Calculation of days and seconds since 1970 out of calendar fields.

pub(super) const SECONDS_PER_DAY: i64 = 86_400;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct CivilDate {
    pub(super) year: i32,
    pub(super) month: u8,
    pub(super) day: u8,
}

impl CivilDate {
    /// Returns days since 1970-01-01, by the rules of the Gregorian calendar for all years.
    pub(super) fn days(self) -> i64 {
        // Years begin in March here, so that a leap day is a year's last.
        let year = i64::from(self.year) - i64::from(self.month <= 2);
        let era = year.div_euclid(400);
        let year_of_era = year.rem_euclid(400);
        let month_from_march = (i64::from(self.month) + 9) % 12;
        let day_of_year = (153 * month_from_march + 2) / 5 + i64::from(self.day) - 1;
        let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
        era * 146_097 + day_of_era - 719_468
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ClockTime {
    pub(super) hour: u8,
    pub(super) minute: u8,
    pub(super) second: u8,
    pub(super) micros: u32,
}

impl ClockTime {
    pub(super) fn seconds(self) -> i64 {
        i64::from(self.hour) * 3600 + i64::from(self.minute) * 60 + i64::from(self.second)
    }
}

/// A moment, exact to the nanosecond: whole seconds since 1970 (rounded down) and the nanoseconds that are over.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Instant {
    pub(super) seconds: i64,
    pub(super) nanos: u32,
}

impl Instant {
    /// Returns ticks of `10^-precision` seconds, rounded down.
    pub(super) fn ticks(self, precision: u8) -> i128 {
        let per_second = 10_i128.pow(precision.into());
        i128::from(self.seconds) * per_second + i128::from(self.nanos) * per_second / 1_000_000_000
    }

    /// Says whether the moment is a whole number of such ticks.
    pub(super) fn is_whole_in(self, precision: u8) -> bool {
        i128::from(self.nanos) * 10_i128.pow(precision.into()) % 1_000_000_000 == 0
    }
}

/// A count of NumPy's units (`datetime64[ms]`, `timedelta64[15m]`) as a ratio of seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct TimeUnit {
    pub(super) seconds: i128,
    pub(super) per: i128,
}

impl TimeUnit {
    /// Reads a dtype's text: `datetime64[ns]`, `<M8[25us]`, `timedelta64[D]`. Returns `None` for months,
    /// years and units without a name.
    pub(super) fn of_dtype(dtype: &str) -> Option<Self> {
        let inside = dtype.split_once('[')?.1.strip_suffix(']')?;
        let digits = inside.bytes().take_while(u8::is_ascii_digit).count();
        let count: i128 = if digits == 0 { 1 } else { inside[..digits].parse::<u32>().ok()?.into() };
        let (seconds, per) = match &inside[digits..] {
            "W" => (604_800, 1),
            "D" => (86_400, 1),
            "h" => (3600, 1),
            "m" => (60, 1),
            "s" => (1, 1),
            "ms" => (1, 1_000),
            "us" => (1, 1_000_000),
            "ns" => (1, 1_000_000_000),
            "ps" => (1, 1_000_000_000_000),
            "fs" => (1, 1_000_000_000_000_000),
            "as" => (1, 1_000_000_000_000_000_000),
            _ => return None,
        };
        Some(TimeUnit { seconds: seconds * count, per })
    }

    /// Returns `count` of the unit in ticks of `10^-precision` seconds, rounded down. Returns `None` for more
    /// than any type holds.
    pub(super) fn floor_ticks(self, count: i64, precision: u8) -> Option<i128> {
        Some(self.scaled(count, precision)?.div_euclid(self.per))
    }

    /// Says whether `count` of the unit is a whole number of such ticks.
    pub(super) fn is_whole_in(self, count: i64, precision: u8) -> bool {
        self.scaled(count, precision).is_none_or(|scaled| scaled % self.per == 0)
    }

    /// Returns the same as `floor_ticks`, rounded towards zero.
    pub(super) fn truncated_ticks(self, count: i64, precision: u8) -> Option<i128> {
        Some(self.scaled(count, precision)? / self.per)
    }

    fn scaled(self, count: i64, precision: u8) -> Option<i128> {
        i128::from(count).checked_mul(self.seconds)?.checked_mul(10_i128.pow(precision.into()))
    }
}
