//! Numbers, in the shortest form that means them.

use std::fmt;

use super::append;

pub fn integer(out: &mut Vec<u8>, value: i64) {
    if value < 0 {
        out.push(b'-');
    }
    unsigned(out, value.unsigned_abs());
}

pub fn unsigned(out: &mut Vec<u8>, mut value: u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 {
            return out.extend_from_slice(&digits[at..]);
        }
    }
}

/// Writes a float. `scientific` is the shortest form that means the number, as Rust writes it with an
/// exponent.
pub fn float(out: &mut Vec<u8>, scientific: &str) {
    let (sign, magnitude) = match scientific.strip_prefix('-') {
        Some(magnitude) => ("-", magnitude),
        None => ("", scientific),
    };
    let Some((digits, exponent)) = magnitude.split_once('e') else {
        let sign = if magnitude == "NaN" { "" } else { sign };
        return append(out, format_args!("{sign}{}", magnitude.to_ascii_lowercase()));
    };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    out.extend_from_slice(sign.as_bytes());
    if !(-6..21).contains(&exponent) {
        return append(out, format_args!("{digits}e{exponent}"));
    }
    let digits: String = digits.chars().filter(|digit| *digit != '.').collect();
    let whole = exponent + 1;
    if whole <= 0 {
        append(out, format_args!("0.{}{digits}", "0".repeat(whole.unsigned_abs() as usize)));
    } else if digits.len() <= whole as usize {
        append(out, format_args!("{digits}{}", "0".repeat(whole as usize - digits.len())));
    } else {
        append(out, format_args!("{}.{}", &digits[..whole as usize], &digits[whole as usize..]));
    }
}

/// Writes a decimal without the zeros at the end of its fraction.
pub fn decimal(out: &mut Vec<u8>, value: i128, scale: usize) {
    decimal_of(out, value < 0, value.unsigned_abs(), scale);
}

/// Writes a decimal of any size, given its sign and all of its digits.
pub fn decimal_of(out: &mut Vec<u8>, negative: bool, digits: impl fmt::Display, scale: usize) {
    if negative {
        out.push(b'-');
    }
    let digits = format!("{digits:0>width$}", width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    let fraction = fraction.trim_end_matches('0');
    let point = if fraction.is_empty() { "" } else { "." };
    append(out, format_args!("{whole}{point}{fraction}"));
}

#[cfg(test)]
mod tests {
    fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn integers_have_all_their_digits() {
        for value in [0, 1, -1, 10, i64::MAX, i64::MIN] {
            assert_eq!(written(|out| super::integer(out, value)), value.to_string());
        }
        assert_eq!(written(|out| super::unsigned(out, u64::MAX)), u64::MAX.to_string());
    }

    #[test]
    fn floats_look_as_in_clickhouse() {
        let float = |value: f64| written(|out| super::float(out, &format!("{value:e}")));
        let pairs = [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.5, "1.5"),
            (1e20, "100000000000000000000"),
            (1e21, "1e21"),
            (1e-6, "0.000001"),
            (1.25e-7, "1.25e-7"),
            (123456789012345680.0, "123456789012345680"),
            (f64::NAN, "nan"),
            (f64::NEG_INFINITY, "-inf"),
        ];
        for (value, text) in pairs {
            assert_eq!(float(value), text);
        }
    }

    #[test]
    fn decimals_lose_the_zeros_at_their_end() {
        let decimal = |value, scale| written(|out| super::decimal(out, value, scale));
        assert_eq!(decimal(1500, 3), "1.5");
        assert_eq!(decimal(-5, 2), "-0.05");
        assert_eq!(decimal(0, 4), "0");
        assert_eq!(decimal(700, 0), "700");
        assert_eq!(decimal(i128::MIN, 38), "-1.70141183460469231731687303715884105728");
    }
}
