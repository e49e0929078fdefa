//! Dates and times.
//!
//! Some of the spellings of ClickHouse's best-effort reading are read here: `YYYY-MM-DD`, `YYYY-MM-DD hh:mm:ss` and the
//! same with `T`, a fraction of up to nine digits, `Z` or an offset (`+hh:mm`, `-hhmm`), and ten digits of Unix time. A
//! date that does not exist, a second 60 or a value outside the type's range is left to ClickHouse.

use super::outcome::NotParsedReason;
use crate::settings::ReadSettings;
use crate::zone::Zone;

const SECONDS_PER_DAY: i64 = 86_400;

/// A date and time as it was written.
pub(super) struct Written {
    /// Seconds since 1970, as if the text were in UTC.
    seconds: i64,
    nanoseconds: u32,
    /// Seconds ahead of UTC, if the text says so.
    offset: Option<i64>,
    /// Says whether the spelling is one that every `date_time_input_format` reads alike.
    plain: bool,
}

/// The spellings that are accepted under a value of `date_time_input_format`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimeSpelling {
    /// `YYYY-MM-DD hh:mm:ss` with a fraction where the type has one.
    Basic,
    BestEffort,
}

/// Returns the days since 1970 of `YYYY-MM-DD`.
#[inline]
pub(super) fn read_date(text: &[u8]) -> Option<i64> {
    let &[a, b, c, d, b'-', e, f, b'-', g, h] = text else { return None };
    let [a, b, c, d, e, f, g, h] = digits([a, b, c, d, e, f, g, h])?;
    let year = a * 1000 + b * 100 + c * 10 + d;
    let (month, day) = (e * 10 + f, g * 10 + h);
    if !(1..=12).contains(&month) || day == 0 || day > days_of_month(year, month) {
        return None;
    }
    Some(days_from_civil(year, month, day))
}

/// Returns the values of digits, if all bytes are digits.
#[inline]
fn digits<const N: usize>(text: [u8; N]) -> Option<[u32; N]> {
    let values = text.map(|byte| u32::from(byte.wrapping_sub(b'0')));
    // Without a branch for each.
    let all_digits = values.iter().fold(true, |so_far, value| so_far & (*value < 10));
    all_digits.then_some(values)
}

pub(super) fn two_digits(tens: u8, ones: u8) -> Option<u32> {
    (tens.is_ascii_digit() && ones.is_ascii_digit()).then(|| u32::from(tens - b'0') * 10 + u32::from(ones - b'0'))
}

#[inline]
fn days_of_month(year: u32, month: u32) -> u32 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => 29,
        2 => 28,
        _ => 31,
    }
}

/// Returns the days since 1970 of a date. Years are counted from March, so that the leap day ends the year.
#[inline]
fn days_from_civil(year: u32, month: u32, day: u32) -> i64 {
    // 400 years later, where nothing is negative: their days are always the same number.
    let year = year + 400 - u32::from(month <= 2);
    let month_from_march = (month + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    let days = year * 365 + year / 4 - year / 100 + year / 400 + day_of_year;
    // 719,468 days lie between 0000-03-01 and 1970-01-01.
    i64::from(days) - 146_097 - 719_468
}

#[inline]
fn read_time_of_day(text: &[u8]) -> Option<i64> {
    let &[a, b, b':', c, d, b':', e, f] = text else { return None };
    let [a, b, c, d, e, f] = digits([a, b, c, d, e, f])?;
    let (hour, minute, second) = (a * 10 + b, c * 10 + d, e * 10 + f);
    (hour < 24 && minute < 60 && second < 60).then(|| i64::from(hour * 3600 + minute * 60 + second))
}

#[inline]
pub(super) fn read_written(text: &[u8]) -> Option<Written> {
    if text.len() == 10 && text[4] != b'-' {
        return read_unix_time(text);
    }
    let (date, rest) = text.split_at_checked(10)?;
    let midnight = read_date(date)? * SECONDS_PER_DAY;
    let Some((separator, rest)) = rest.split_first() else {
        return Some(Written { seconds: midnight, nanoseconds: 0, offset: None, plain: false });
    };
    if !matches!(separator, b' ' | b'T') {
        return None;
    }
    let (time, rest) = rest.split_at_checked(8)?;
    let seconds = midnight + read_time_of_day(time)?;
    let mut written = Written { seconds, nanoseconds: 0, offset: None, plain: *separator == b' ' };
    if !rest.is_empty() {
        let rest = read_fraction(rest, &mut written)?;
        read_offset(rest, &mut written)?;
    }
    Some(written)
}

fn read_unix_time(text: &[u8]) -> Option<Written> {
    let mut seconds = 0;
    for byte in text {
        seconds = seconds * 10 + i64::from(byte.is_ascii_digit().then(|| byte - b'0')?);
    }
    Some(Written { seconds, nanoseconds: 0, offset: Some(0), plain: false })
}

fn read_fraction<'a>(text: &'a [u8], written: &mut Written) -> Option<&'a [u8]> {
    let Some((b'.', digits)) = text.split_first() else { return Some(text) };
    let length = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if !(1..=9).contains(&length) {
        return None;
    }
    let (digits, rest) = digits.split_at(length);
    let zeros = std::iter::repeat(&b'0');
    written.nanoseconds =
        digits.iter().chain(zeros).take(9).fold(0, |value, digit| value * 10 + u32::from(digit - b'0'));
    Some(rest)
}

fn read_offset(text: &[u8], written: &mut Written) -> Option<()> {
    let offset = match *text {
        [] => return Some(()),
        [b'Z'] => 0,
        [sign @ (b'+' | b'-'), a, b, b':', c, d] | [sign @ (b'+' | b'-'), a, b, c, d] => {
            let (hours, minutes) = (two_digits(a, b)?, two_digits(c, d)?);
            if hours > 14 || minutes > 59 {
                return None;
            }
            let seconds = i64::from(hours * 3600 + minutes * 60);
            if sign == b'-' {
                -seconds
            } else {
                seconds
            }
        }
        _ => return None,
    };
    written.offset = Some(offset);
    written.plain = false;
    Some(())
}

impl Written {
    /// Returns the seconds since 1970 in UTC.
    #[inline]
    fn moment(&self, zone: &Zone) -> Result<i64, NotParsedReason> {
        match self.offset {
            Some(offset) => Ok(self.seconds - offset),
            None => zone.moment(self.seconds).ok_or(NotParsedReason::TimeZone),
        }
    }

    fn check_spelling(&self, spelling: TimeSpelling) -> Result<(), NotParsedReason> {
        if spelling == TimeSpelling::Basic && !self.plain {
            return Err(NotParsedReason::Setting);
        }
        Ok(())
    }

    /// Returns a DateTime. A fraction is dropped, as ClickHouse does; the basic spelling may not have one.
    #[inline]
    pub(super) fn date_time(&self, zone: &Zone, spelling: TimeSpelling) -> Result<u32, NotParsedReason> {
        self.check_spelling(spelling)?;
        if spelling == TimeSpelling::Basic && self.nanoseconds != 0 {
            return Err(NotParsedReason::Setting);
        }
        u32::try_from(self.moment(zone)?).map_err(|_| NotParsedReason::Value)
    }

    /// Returns a DateTime64 of `precision` digits; further digits are dropped, as ClickHouse does.
    pub(super) fn date_time64(
        &self,
        precision: u8,
        zone: &Zone,
        settings: &ReadSettings,
    ) -> Result<i64, NotParsedReason> {
        // Years 1900 to 2299, the documented range.
        const SECONDS: std::ops::Range<i64> = -2_208_988_800..10_413_792_000;
        self.check_spelling(settings.time_spelling)?;
        let moment = self.moment(zone)?;
        if !settings.is_for_sql() && (!SECONDS.contains(&moment) || !SECONDS.contains(&self.seconds)) {
            return Err(NotParsedReason::Value);
        }
        let ticks = 10i64.pow(precision.into());
        let fraction = i64::from(self.nanoseconds) / 10i64.pow(9 - u32::from(precision));
        moment.checked_mul(ticks).and_then(|value| value.checked_add(fraction)).ok_or(NotParsedReason::Value)
    }
}

/// Returns a Date: days since 1970 in 16 bits.
pub(super) fn date(days: i64) -> Result<u16, NotParsedReason> {
    u16::try_from(days).map_err(|_| NotParsedReason::Value)
}

/// Returns a Date32: from 1900-01-01 to 2299-12-31 for ClickHouse, any for a database that takes SQL.
pub(super) fn date32(days: i64, settings: &ReadSettings) -> Result<i32, NotParsedReason> {
    match i32::try_from(days) {
        Ok(days @ -25_567..=120_529) => Ok(days),
        Ok(days) if settings.is_for_sql() => Ok(days),
        _ => Err(NotParsedReason::Value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_counted_through_leap_years() {
        assert_eq!(read_date(b"1970-01-01"), Some(0));
        assert_eq!(read_date(b"2000-02-29"), Some(11_016));
        assert_eq!(read_date(b"2000-03-01"), Some(11_017));
        assert_eq!(read_date(b"1900-01-01"), Some(-25_567));
        assert_eq!(read_date(b"2299-12-31"), Some(120_529));
        assert_eq!(read_date(b"2149-06-06"), Some(65_535));
        for text in ["1900-02-29", "2023-02-29", "2024-04-31", "2024-00-01", "2024-13-01", "2024-1-01", "2024-01-00"] {
            assert_eq!(read_date(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn every_day_of_four_centuries_has_its_number() {
        let mut days = read_date(b"1900-01-01").unwrap();
        for year in 1900..2300 {
            for month in 1..=12 {
                for day in 1..=days_of_month(year, month) {
                    let text = format!("{year:04}-{month:02}-{day:02}");
                    assert_eq!(read_date(text.as_bytes()), Some(days), "{text}");
                    days += 1;
                }
            }
        }
    }
}
