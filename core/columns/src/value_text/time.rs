//! Days and times, in the Gregorian calendar and in UTC.

use super::append;

const SECONDS_A_DAY: i64 = 86_400;

/// Writes a day, which is counted from 1970-01-01.
pub fn day(out: &mut Vec<u8>, day: i64) {
    // Eras of 400 years begin on the first of March, so that leap days come last.
    let shifted = day + 719_468;
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    append(out, format_args!("{year:04}-{month:02}-{day_of_month:02}"));
}

/// Writes a moment in ticks since 1970, each of `10^-precision` seconds.
pub fn moment(out: &mut Vec<u8>, ticks: i64, precision: u8) {
    let per_second = ticks_per_second(precision);
    moment_of(out, ticks.div_euclid(per_second), ticks.rem_euclid(per_second), precision);
}

/// Writes a moment in whole seconds since 1970 and the ticks above them.
pub fn moment_of(out: &mut Vec<u8>, second: i64, fraction: i64, precision: u8) {
    day(out, second.div_euclid(SECONDS_A_DAY));
    out.push(b' ');
    clock(out, second.rem_euclid(SECONDS_A_DAY));
    write_fraction(out, fraction, precision);
}

pub fn of_day(out: &mut Vec<u8>, ticks: i64, precision: u8) {
    if ticks < 0 {
        out.push(b'-');
    }
    let (ticks, per_second) = (ticks.unsigned_abs(), ticks_per_second(precision).unsigned_abs());
    clock(out, (ticks / per_second) as i64);
    write_fraction(out, (ticks % per_second) as i64, precision);
}

/// Writes seconds as hours, minutes and seconds; hours go on past 24.
pub fn clock(out: &mut Vec<u8>, second: i64) {
    append(out, format_args!("{:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60));
}

fn write_fraction(out: &mut Vec<u8>, fraction: i64, precision: u8) {
    if precision > 0 {
        append(out, format_args!(".{fraction:0width$}", width = usize::from(precision)));
    }
}

pub fn ticks_per_second(precision: u8) -> i64 {
    10_i64.pow(u32::from(precision.min(9)))
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
    fn times_before_1970_count_backwards() {
        assert_eq!(written(|out| moment(out, -500, 3)), "1969-12-31 23:59:59.500");
        assert_eq!(written(|out| day(out, -719_162)), "0001-01-01");
        assert_eq!(written(|out| of_day(out, -3_723_500_000, 6)), "-01:02:03.500000");
    }

    #[test]
    fn no_value_is_too_large_to_be_written() {
        for ticks in [i64::MIN, i64::MAX] {
            for precision in [0, 3, 6, 9] {
                written(|out| moment(out, ticks, precision));
                written(|out| of_day(out, ticks, precision));
            }
        }
        written(|out| day(out, i64::from(i32::MIN)));
    }
}
