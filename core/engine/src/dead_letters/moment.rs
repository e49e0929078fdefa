//! Moments in the forms that people write, and in the form that is shown.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::Timestamp;

/// Reads a moment as microseconds since 1970. It is given as seconds since then (`1767225600`), as an age
/// (`90s`, `15m`, `2h`, `7d`), or as a date, with or without a time, in UTC unless it names another zone
/// (`2026-01-01`, `2026-01-01 12:00:00`, `2026-01-01T12:00:00+02:00`).
///
/// # Errors
/// Fails where the text has none of these forms; the error is a sentence for the user who wrote it.
pub fn parse_moment(text: &str, now_micros: u64) -> Result<u64, String> {
    let text = text.trim();
    let read = if text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        seconds(text)
    } else {
        ago(text, now_micros).or_else(|| date(text))
    };
    read.ok_or_else(|| {
        format!("'{text}' is no moment; write 2h (two hours ago), 2026-01-31 12:00:00 (UTC) or seconds since 1970")
    })
}

/// Returns the moment in the form of RFC 3339, in UTC.
pub fn write_moment(micros: u64) -> String {
    let timestamp = i64::try_from(micros).ok().and_then(|micros| Timestamp::from_microsecond(micros).ok());
    timestamp.map_or_else(|| micros.to_string(), |timestamp| format!("{timestamp:.6}"))
}

fn seconds(text: &str) -> Option<u64> {
    in_micros(text.parse().ok()?, 1e6)
}

fn ago(text: &str, now_micros: u64) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let micros_per_unit = match &text[digits.len()..] {
        "s" => 1e6,
        "m" => 60e6,
        "h" => 3_600e6,
        "d" => 86_400e6,
        _ => return None,
    };
    Some(now_micros.saturating_sub(in_micros(digits.parse().ok()?, micros_per_unit)?))
}

fn in_micros(number: f64, micros_per_unit: f64) -> Option<u64> {
    let micros = number * micros_per_unit;
    // Up to here every whole number is exact.
    (micros.is_finite() && (0.0..9.0e15).contains(&micros)).then_some(micros as u64)
}

fn date(text: &str) -> Option<u64> {
    let in_utc = || text.parse::<DateTime>().ok()?.to_zoned(TimeZone::UTC).ok().map(|zoned| zoned.timestamp());
    let timestamp = text.parse::<Timestamp>().ok().or_else(in_utc)?;
    u64::try_from(timestamp.as_microsecond()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: u64 = 1_767_268_800_000_000;

    #[test]
    fn moments_are_read_in_the_ways_people_write_them() {
        let same = ["1767268800", "2026-01-01 12:00:00", "2026-01-01T12:00", "2026-01-01T12:00:00Z"];
        for text in same.into_iter().chain(["2026-01-01T14:00:00+02:00", "0s", " 1767268800.0 "]) {
            assert_eq!(parse_moment(text, NOON), Ok(NOON), "{text}");
        }
        assert_eq!(parse_moment("2026-01-01", 0), Ok(NOON - 12 * 3_600_000_000));
        assert_eq!(parse_moment("1.5h", NOON), Ok(NOON - 5_400_000_000));
        assert_eq!(parse_moment("99999d", 5), Ok(0), "longer ago than 1970");
        for bad in ["", "h", "-1h", "yesterday", "1e99", "2026-13-01", "9999999999999999999", "1w", "é", "1.2.3"] {
            assert!(parse_moment(bad, NOON).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_moment_that_was_written_is_read_again() {
        for micros in [0, 1, NOON, NOON + 123_456] {
            assert_eq!(parse_moment(&write_moment(micros), 0), Ok(micros), "{}", write_moment(micros));
        }
        assert_eq!(write_moment(NOON + 120_000), "2026-01-01T12:00:00.120000Z");
        assert_eq!(write_moment(u64::MAX), u64::MAX.to_string());
    }
}
