//! Writes times as ClickHouse reads them.

use std::time::{SystemTime, UNIX_EPOCH};

/// Returns a time as `2026-11-21 20:41:30.123`, in UTC.
pub(crate) fn datetime64_text(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (seconds, ms) = (since.as_secs(), since.subsec_millis());
    let (days, of_day) = (seconds / 86_400, seconds % 86_400);
    let date = date_of(days);
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    format!("{:04}-{:02}-{:02} {hour:02}:{minute:02}:{second:02}.{ms:03}", date.year, date.month, date.day)
}

struct Date {
    year: u64,
    month: u64,
    day: u64,
}

/// Returns the date of a day. It counts in years that begin in March, so that the leap day is the last day of one.
fn date_of(days_since_1970: u64) -> Date {
    const DAYS_PER_400_YEARS: u64 = 146_097;
    const FROM_MARCH_OF_YEAR_0: u64 = 719_468;
    let days = days_since_1970 + FROM_MARCH_OF_YEAR_0;
    let (era, of_era) = (days / DAYS_PER_400_YEARS, days % DAYS_PER_400_YEARS);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    Date { year: era * 400 + year_of_era + u64::from(month <= 2), month, day }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn known_times_are_written_right() {
        for (ms, text) in [
            (0, "1970-01-01 00:00:00.000"),
            (951_782_399_999, "2000-02-28 23:59:59.999"),
            (951_782_400_000, "2000-02-29 00:00:00.000"),
            (951_868_800_000, "2000-03-01 00:00:00.000"),
            (1_709_164_800_001, "2024-02-29 00:00:00.001"),
            (1_735_689_599_000, "2024-12-31 23:59:59.000"),
            (4_107_542_400_000, "2100-03-01 00:00:00.000"),
        ] {
            assert_eq!(datetime64_text(UNIX_EPOCH + Duration::from_millis(ms)), text);
        }
    }
}
