//! Time and Time64: an amount of hours, minutes and seconds, of up to 999 hours in both directions.
//!
//! The spelling that is read is `[-]h:mm:ss`, with one to three digits of hours, and a fraction for a Time64.
//! ClickHouse takes others, too. A minute or second beyond 59, which ClickHouse would carry over, is left to
//! ClickHouse.

use super::time::two_digits;

const LAST_SECOND: i64 = 999 * 3600 + 59 * 60 + 59;

struct Written {
    negative: bool,
    seconds: i64,
    nanoseconds: i64,
}

/// Returns the seconds of a Time.
pub(super) fn time(text: &[u8]) -> Option<i32> {
    let written = read_written(text)?;
    let has_fraction = text.contains(&b'.');
    seconds(if written.negative { -written.seconds } else { written.seconds }).filter(|_| !has_fraction)
}

/// Returns the ticks of a Time64 of `precision` digits; further digits are dropped, as ClickHouse does.
pub(super) fn time64(text: &[u8], precision: u8) -> Option<i64> {
    let written = read_written(text)?;
    let fraction = written.nanoseconds / 10i64.pow(9 - u32::from(precision));
    let ticks = written.seconds * 10i64.pow(precision.into()) + fraction;
    Some(if written.negative { -ticks } else { ticks })
}

/// Returns a Time from its number of seconds.
pub(super) fn seconds(seconds: i64) -> Option<i32> {
    i32::try_from(seconds).ok().filter(|_| seconds.abs() <= LAST_SECOND)
}

/// Returns a Time64 from its number of ticks.
pub(super) fn ticks(ticks: i64, precision: u8) -> Option<i64> {
    let end = (LAST_SECOND + 1) * 10i64.pow(precision.into());
    (-end < ticks && ticks < end).then_some(ticks)
}

fn read_written(text: &[u8]) -> Option<Written> {
    let (negative, text) = match text.split_first()? {
        (b'-', rest) => (true, rest),
        _ => (false, text),
    };
    let hour_digits = text.iter().position(|byte| *byte == b':').filter(|digits| (1..=3).contains(digits))?;
    let mut hours = 0;
    for byte in &text[..hour_digits] {
        hours = hours * 10 + i64::from(byte.is_ascii_digit().then(|| byte - b'0')?);
    }
    let &[b':', a, b, b':', c, d, ref fraction @ ..] = &text[hour_digits..] else { return None };
    let (minute, second) = (two_digits(a, b)?, two_digits(c, d)?);
    if minute > 59 || second > 59 {
        return None;
    }
    let seconds = hours * 3600 + i64::from(minute * 60 + second);
    Some(Written { negative, seconds, nanoseconds: read_fraction(fraction)? })
}

fn read_fraction(text: &[u8]) -> Option<i64> {
    let Some((b'.', digits)) = text.split_first() else { return text.is_empty().then_some(0) };
    if !(1..=9).contains(&digits.len()) || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let zeros = std::iter::repeat(&b'0');
    Some(digits.iter().chain(zeros).take(9).fold(0, |value, digit| value * 10 + i64::from(digit - b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_of_time_in_both_directions() {
        let cases = [
            ("12:34:56", Some(45_296)),
            ("1:02:03", Some(3_723)),
            ("999:59:59", Some(3_599_999)),
            ("-999:59:59", Some(-3_599_999)),
            ("-00:00:01", Some(-1)),
            ("1000:00:00", None),
            ("12:60:00", None),
            ("12:00:60", None),
            ("12:00", None),
            (":00:00", None),
            ("12:00:00.5", None),
            ("+1:00:00", None),
            ("", None),
            ("-", None),
        ];
        for (text, expected) in cases {
            assert_eq!(time(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn fractions_are_cut_towards_zero() {
        assert_eq!(time64(b"-1:00:00.0009", 3), Some(-3_600_000));
        assert_eq!(time64(b"-0:00:00.5", 0), Some(0));
        assert_eq!(time64(b"999:59:59.999999999", 9), Some(3_599_999_999_999_999));
        assert_eq!(time64(b"0:00:01.", 3), None);
        assert_eq!(time64(b"0:00:01.1234567891", 3), None);
    }
}
