//! Values as DuckDB writes them, of types that ClickHouse lacks or keeps in another order of bytes.

use arrow_buffer::IntervalMonthDayNano;
use windrow_columns::value_text::time::clock;

use super::append;

const NANOS_A_SECOND: u64 = 1_000_000_000;

/// Writes a UUID from 16 bytes in the order in which they are written.
pub(super) fn uuid(out: &mut Vec<u8>, bytes: &[u8]) {
    for (at, byte) in bytes.iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            out.push(b'-');
        }
        append(out, format_args!("{byte:02x}"));
    }
}

/// Writes an interval as `1 year 2 months 3 days -01:02:03.5`. Parts that are zero are left out; an interval
/// of zero is `00:00:00`.
pub(super) fn interval(out: &mut Vec<u8>, value: IntervalMonthDayNano) {
    let start = out.len();
    part(out, start, i64::from(value.months / 12), "year");
    part(out, start, i64::from(value.months % 12), "month");
    part(out, start, i64::from(value.days), "day");
    if value.nanoseconds != 0 || out.len() == start {
        if out.len() > start {
            out.push(b' ');
        }
        if value.nanoseconds < 0 {
            out.push(b'-');
        }
        let nanos = value.nanoseconds.unsigned_abs();
        clock(out, (nanos / NANOS_A_SECOND) as i64);
        // DuckDB keeps microseconds.
        fraction(out, nanos % NANOS_A_SECOND / 1000);
    }
}

fn part(out: &mut Vec<u8>, start: usize, value: i64, unit: &str) {
    if value != 0 {
        let space = if out.len() > start { " " } else { "" };
        let plural = if value.abs() == 1 { "" } else { "s" };
        append(out, format_args!("{space}{value} {unit}{plural}"));
    }
}

fn fraction(out: &mut Vec<u8>, micros: u64) {
    if micros > 0 {
        let digits = format!("{micros:06}");
        append(out, format_args!(".{}", digits.trim_end_matches('0')));
    }
}

/// Writes a time with its zone, from a number of 64 bits: 40 of microseconds, and 24 of the difference
/// between the zone's offset and the largest offset.
pub(super) fn time_with_zone(out: &mut Vec<u8>, bytes: &[u8]) {
    const MICROS_A_SECOND: u64 = 1_000_000;
    const LARGEST_OFFSET_SECONDS: i64 = 16 * 3600 - 1;
    let bits = bytes.try_into().map_or(0, u64::from_le_bytes);
    let micros = bits >> 24;
    clock(out, (micros / MICROS_A_SECOND) as i64);
    fraction(out, micros % MICROS_A_SECOND);
    let offset = LARGEST_OFFSET_SECONDS - (bits & 0xFF_FFFF) as i64;
    let sign = if offset < 0 { '-' } else { '+' };
    let offset = offset.abs();
    append(out, format_args!("{sign}{:02}", offset / 3600));
    if offset % 3600 != 0 {
        append(out, format_args!(":{:02}", offset / 60 % 60));
    }
    if offset % 60 != 0 {
        append(out, format_args!(":{:02}", offset % 60));
    }
}

/// Writes bits as digits. The first byte says how many bits of the second byte don't count.
pub(super) fn bits(out: &mut Vec<u8>, bytes: &[u8]) {
    let Some((&unused, bytes)) = bytes.split_first() else { return };
    let digits = bytes.iter().flat_map(|byte| (0..8).rev().map(move |bit| b'0' + (byte >> bit & 1)));
    out.extend(digits.skip(usize::from(unused)));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn intervals_look_as_in_duckdb() {
        let text = |months, days, nanos| written(|out| interval(out, IntervalMonthDayNano::new(months, days, nanos)));
        assert_eq!(text(14, 3, -3_723_500_000_000), "1 year 2 months 3 days -01:02:03.5");
        assert_eq!(text(0, 0, 0), "00:00:00");
        assert_eq!(text(-15, 0, 0), "-1 year -3 months");
        assert_eq!(text(0, 0, 360_000_000_000_000), "100:00:00");
        text(i32::MIN, i32::MIN, i64::MIN);
    }

    #[test]
    fn what_duckdb_keeps_in_bits_is_taken_apart() {
        let zoned = |bytes: &[u8]| written(|out| time_with_zone(out, bytes));
        assert_eq!(zoned(&[0xe7, 0xcb, 0x00, 0xe0, 0x19, 0xf0, 0xdd, 0x00]), "01:02:03.5+01:30");
        assert_eq!(written(|out| bits(out, &[3, 0xf7])), "10111");
        assert_eq!(written(|out| bits(out, &[6, 0xfe, 0xe1])), "1011100001");
        assert_eq!(written(|out| bits(out, &[])), "");
        let uuid_bytes: Vec<u8> = (0..16).collect();
        assert_eq!(written(|out| uuid(out, &uuid_bytes)), "00010203-0405-0607-0809-0a0b0c0d0e0f");
    }
}
