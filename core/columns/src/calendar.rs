//! Days of the calendar, and the units that partition keys and sharding keys are made of.

use jiff::tz::TimeZone;
use jiff::Timestamp;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Unit {
    Hour,
    Day,
    WeekFromMonday,
    WeekFromSunday,
    Month,
    Quarter,
    Year,
    MonthOfYear,
    DayOfMonth,
    DayOfWeek,
}

pub(crate) const DAY_SECONDS: i64 = 86_400;

impl Unit {
    /// Returns the number of the unit that holds a local time, which is given in seconds since 1970.
    pub(crate) fn of(self, local: i64) -> i64 {
        let day = local.div_euclid(DAY_SECONDS);
        match self {
            Unit::Hour => local.div_euclid(3600),
            Unit::Day => day,
            // 1970 began on a Thursday.
            Unit::WeekFromMonday => (day + 3).div_euclid(7),
            Unit::WeekFromSunday => (day + 4).div_euclid(7),
            Unit::DayOfWeek => (day + 3).rem_euclid(7),
            Unit::Month => Date::of(day).month_number(),
            Unit::Quarter => Date::of(day).month_number().div_euclid(3),
            Unit::Year => Date::of(day).year,
            Unit::MonthOfYear => Date::of(day).month,
            Unit::DayOfMonth => Date::of(day).day,
        }
    }
}

pub(crate) struct Date {
    pub(crate) year: i64,
    /// Month of the year, from 0.
    pub(crate) month: i64,
    pub(crate) day: i64,
}

impl Date {
    /// Returns the date of a day since 1970. The calculation uses years that begin with March: the leap day
    /// is then a year's last day, and every five months have 153 days.
    pub(crate) fn of(day: i64) -> Date {
        let days = day + 719_468;
        let era = days.div_euclid(146_097);
        let of_era = days.rem_euclid(146_097);
        let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let from_march = (5 * of_year + 2) / 153;
        let month = (from_march + 2) % 12;
        let year = era * 400 + year_of_era + i64::from(from_march >= 10);
        Date { year, month, day: of_year - (153 * from_march + 2) / 5 + 1 }
    }

    fn month_number(&self) -> i64 {
        self.year * 12 + self.month
    }
}

/// A converter of moments into local times of a zone. It looks the zone's rules up once for moments that are
/// near each other.
pub(crate) struct LocalTime {
    zone: TimeZone,
    quarter_hour: i64,
    offset: i64,
}

impl LocalTime {
    pub(crate) fn of(zone_name: &str) -> Option<LocalTime> {
        Some(LocalTime { zone: TimeZone::get(zone_name).ok()?, quarter_hour: i64::MIN, offset: 0 })
    }

    pub(crate) fn of_moment(&mut self, utc: i64) -> i64 {
        let quarter_hour = utc.div_euclid(900);
        if quarter_hour != self.quarter_hour {
            self.quarter_hour = quarter_hour;
            let moment = Timestamp::from_second(utc).unwrap_or(Timestamp::UNIX_EPOCH);
            self.offset = i64::from(self.zone.to_offset(moment).seconds());
        }
        // Beyond the calendar's end any partition will do.
        utc.saturating_add(self.offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_have_their_dates() {
        let date = |day| {
            let Date { year, month, day } = Date::of(day);
            (year, month + 1, day)
        };
        for (day, expected) in [
            (0, (1970, 1, 1)),
            (-1, (1969, 12, 31)),
            (58, (1970, 2, 28)),
            (59, (1970, 3, 1)),
            (11_016, (2000, 2, 29)),
            (19_782, (2024, 2, 29)),
            (19_783, (2024, 3, 1)),
            (65_535, (2149, 6, 6)),
            (-25_567, (1900, 1, 1)),
            (120_529, (2299, 12, 31)),
        ] {
            assert_eq!(date(day), expected, "day {day}");
        }
    }

    #[test]
    fn units_change_where_the_calendar_says() {
        // 2024-03-31 is a Sunday.
        let day = |day: i64| day * DAY_SECONDS;
        let changes = |unit: Unit| unit.of(day(19_813) - 1) != unit.of(day(19_813));
        let (sunday, monday) = (day(19_813), day(19_814));
        assert!(changes(Unit::WeekFromSunday) && !changes(Unit::WeekFromMonday) && changes(Unit::Day));
        assert_eq!(Unit::WeekFromSunday.of(sunday), Unit::WeekFromSunday.of(monday));
        assert_ne!(Unit::WeekFromMonday.of(sunday), Unit::WeekFromMonday.of(monday));
        for unit in [Unit::Month, Unit::Quarter, Unit::MonthOfYear] {
            assert_ne!(unit.of(monday - 1), unit.of(monday), "{unit:?}");
            assert_eq!(unit.of(monday), unit.of(monday + 20 * DAY_SECONDS), "{unit:?}");
        }
        assert_eq!(Unit::Year.of(sunday), 2024);
        assert_eq!(Unit::DayOfMonth.of(sunday), 31);
        assert_eq!(Unit::DayOfWeek.of(sunday), 6);
        assert_eq!(Unit::Hour.of(7_199), 1);
    }

    #[test]
    fn local_times_follow_the_zone() {
        let mut berlin = LocalTime::of("Europe/Berlin").unwrap();
        // The clocks went forward at 2024-03-31 01:00 UTC.
        assert_eq!(berlin.of_moment(1_711_846_799), 1_711_846_799 + 3600);
        assert_eq!(berlin.of_moment(1_711_846_800), 1_711_846_800 + 7200);
        assert!(LocalTime::of("Middle/Earth").is_none());
    }
}
