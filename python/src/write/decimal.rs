//! Conversion to Decimals, out of any value that prints as a number, cut to the column's scale as
//! clickhouse-connect does.

use pyo3::prelude::*;
use windrow_columns::DataType;

use super::number::negate;
use super::problem::Problem;
use super::value::Value;

/// The number of digits that a u128 surely holds.
const U128_DIGITS: usize = 38;
/// The most bytes of a number's text: longer than any Decimal, and short enough that no arithmetic on lengths
/// overflows.
const MAX_TEXT_BYTES: usize = 1 << 20;

/// A number as digits: `digits × 10^exponent`.
struct Digits {
    negative: bool,
    /// The digits without leading zeros.
    digits: Vec<u8>,
    exponent: i64,
}

pub(super) fn put_decimal(value: Value<'_>, precision: u8, scale: u8, out: &mut Vec<u8>) -> Result<(), Problem> {
    if value.is_int() {
        if let Some(number) = value.small_int() {
            if let Some(scaled) = number.checked_mul(10_i128.pow(u32::from(scale.min(18)))).filter(|_| scale <= 18) {
                return put_scaled(scaled.unsigned_abs(), scaled < 0, precision, out);
            }
        }
    }
    let text = value.held().str()?;
    // Safety: the slice is read before any Python code runs.
    let text = unsafe { Value::of(text.as_any()).utf8() }.ok_or_else(not_a_number)?;
    let digits = parsed(text).ok_or_else(not_a_number)?;
    put_digits(digits, precision, scale, out)
}

fn not_a_number() -> Problem {
    Problem::said("not a decimal number")
}

fn too_large(precision: u8) -> Problem {
    Problem::said(format!("the number has more digits than the {precision} of the column"))
}

/// Reads `-12.5e+3`, `.5`, `5.`, `1_000`; neither NaN nor infinity.
fn parsed(text: &[u8]) -> Option<Digits> {
    let text = text.trim_ascii();
    if text.len() > MAX_TEXT_BYTES {
        return None;
    }
    let (negative, rest) = match text.first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let mantissa_end = rest.iter().position(|byte| matches!(byte, b'e' | b'E')).unwrap_or(rest.len());
    let mut exponent: i64 = match rest.get(mantissa_end + 1..) {
        Some(digits) => std::str::from_utf8(digits).ok()?.parse::<i32>().ok()?.into(),
        None => 0,
    };
    let mut digits = Vec::with_capacity(mantissa_end);
    let (mut seen_point, mut seen_digit) = (false, false);
    for byte in &rest[..mantissa_end] {
        match byte {
            b'0'..=b'9' => {
                seen_digit = true;
                exponent -= i64::from(seen_point);
                if *byte != b'0' || !digits.is_empty() {
                    digits.push(byte - b'0');
                }
            }
            b'.' if !seen_point => seen_point = true,
            b'_' if seen_digit => {}
            _ => return None,
        }
    }
    seen_digit.then_some(Digits { negative, digits, exponent })
}

fn put_digits(mut number: Digits, precision: u8, scale: u8, out: &mut Vec<u8>) -> Result<(), Problem> {
    round_to(&mut number, precision.into());
    let shift = number.exponent + i64::from(scale);
    if number.digits.is_empty() {
        return put_scaled(0, false, precision, out);
    }
    let whole = number.digits.len() as i64 + shift;
    if whole > i64::from(precision) {
        return Err(too_large(precision));
    }
    let kept = whole.clamp(0, number.digits.len() as i64) as usize;
    number.digits.truncate(kept);
    number.digits.resize(whole.max(0) as usize, 0);
    if number.digits.len() <= U128_DIGITS {
        let magnitude = number.digits.iter().fold(0_u128, |sum, digit| sum * 10 + u128::from(*digit));
        return put_scaled(magnitude, number.negative, precision, out);
    }
    let mut little = wide(&number.digits);
    if number.negative {
        negate(&mut little);
    }
    out.extend_from_slice(&little[..DataType::decimal_width(precision)]);
    Ok(())
}

/// Rounds to the precision, half to even, as Python's arithmetic on Decimals does before the rest is cut.
fn round_to(number: &mut Digits, precision: usize) {
    if number.digits.len() <= precision {
        return;
    }
    let rest = number.digits.split_off(precision);
    number.exponent += rest.len() as i64;
    let is_half = rest[0] == 5 && rest[1..].iter().all(|digit| *digit == 0);
    let last_is_odd = number.digits.last().is_some_and(|digit| digit % 2 == 1);
    if rest[0] > 5 || rest[0] == 5 && (!is_half || last_is_odd) {
        let mut place = number.digits.len();
        loop {
            if place == 0 {
                number.digits.insert(0, 1);
                return;
            }
            place -= 1;
            if number.digits[place] < 9 {
                number.digits[place] += 1;
                return;
            }
            number.digits[place] = 0;
        }
    }
}

fn put_scaled(magnitude: u128, negative: bool, precision: u8, out: &mut Vec<u8>) -> Result<(), Problem> {
    if precision as usize <= U128_DIGITS && magnitude >= 10_u128.pow(precision.into()) {
        return Err(too_large(precision));
    }
    let mut little = [0_u8; 32];
    little[..16].copy_from_slice(&magnitude.to_le_bytes());
    if negative {
        negate(&mut little);
    }
    out.extend_from_slice(&little[..DataType::decimal_width(precision)]);
    Ok(())
}

/// Returns the number of at most 76 digits, which 256 bits hold.
fn wide(digits: &[u8]) -> [u8; 32] {
    let mut little = [0_u8; 32];
    for digit in digits {
        let mut carry = u32::from(*digit);
        for byte in &mut little {
            let sum = u32::from(*byte) * 10 + carry;
            *byte = sum as u8;
            carry = sum >> 8;
        }
    }
    little
}
