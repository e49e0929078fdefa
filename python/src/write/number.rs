//! Conversion to integers, floats and booleans: what counts as a number, and whether it fits.

use pyo3::ffi;
use pyo3::prelude::*;

use super::problem::Problem;
use super::value::Value;

/// Writes an integer of 1, 2, 4 or 8 bytes.
#[inline]
pub(super) fn put_int(value: Value<'_>, bytes: usize, signed: bool, out: &mut Vec<u8>) -> Result<(), Problem> {
    let number = match value.small_int() {
        Some(number) => number,
        None => slow_int(value)?,
    };
    put_checked(number, bytes, signed, out)
}

#[inline]
pub(super) fn put_checked(number: i128, bytes: usize, signed: bool, out: &mut Vec<u8>) -> Result<(), Problem> {
    let bits = 8 * bytes as u32;
    let (lowest, highest) =
        if signed { (-(1_i128 << (bits - 1)), (1_i128 << (bits - 1)) - 1) } else { (0, (1_i128 << bits) - 1) };
    if number < lowest || number > highest {
        return Err(out_of_range(number, lowest, highest));
    }
    let little = (number as u64).to_le_bytes();
    match bytes {
        // Lengths that are known here are copied without a call.
        1 => out.push(little[0]),
        2 => out.extend_from_slice(&little[..2]),
        4 => out.extend_from_slice(&little[..4]),
        _ => out.extend_from_slice(&little),
    }
    Ok(())
}

#[cold]
fn out_of_range(number: i128, lowest: i128, highest: i128) -> Problem {
    Problem::said(format!("{number} is out of range ({lowest} to {highest})"))
}

/// Takes any value that `int()` takes: floats are cut towards zero, texts are read. NaN and infinities become
/// 0, as with clickhouse-connect.
#[cold]
fn slow_int(value: Value<'_>) -> Result<i128, Problem> {
    if value.float().is_some_and(|number| !number.is_finite()) {
        return Ok(0);
    }
    let number = python_int(value)?;
    Value::of(&number).small_int().ok_or_else(|| Problem::said("the number is out of range"))
}

/// Returns `int(value)`.
pub(super) fn python_int<'py>(value: Value<'py>) -> Result<Bound<'py, PyAny>, Problem> {
    let held = value.held();
    // Safety: given a valid object; what comes back is a new reference or an error.
    let number = unsafe { Bound::from_owned_ptr_or_err(value.py, ffi::PyNumber_Long(held.as_ptr())) }?;
    Ok(number)
}

/// Writes an integer of 16 or 32 bytes.
pub(super) fn put_big_int(value: Value<'_>, bytes: usize, signed: bool, out: &mut Vec<u8>) -> Result<(), Problem> {
    match value.small_int() {
        Some(number) if signed || number >= 0 => {
            out.extend_from_slice(&number.to_le_bytes());
            let sign = if number < 0 { 0xFF } else { 0 };
            out.extend(std::iter::repeat_n(sign, bytes - 16));
            Ok(())
        }
        Some(_) => Err(Problem::said("a negative number in an unsigned column")),
        None => put_wide(&python_int(value)?, bytes, signed, out),
    }
}

/// Writes an integer by way of hexadecimal digits: the stable ABI has nothing else for integers of more than
/// 64 bits.
fn put_wide(number: &Bound<'_, PyAny>, bytes: usize, signed: bool, out: &mut Vec<u8>) -> Result<(), Problem> {
    // Safety: given an int; what comes back is a new reference or an error.
    let text = unsafe { Bound::from_owned_ptr_or_err(number.py(), ffi::PyNumber_ToBase(number.as_ptr(), 16)) }?;
    let text: String = text.extract()?;
    let (negative, digits) = match text.strip_prefix("-0x") {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix("0x").unwrap_or(&text)),
    };
    let does_not_fit = || Problem::said(format!("the number needs more than {} bits", 8 * bytes));
    let mut little = [0_u8; 32];
    if digits.len() > 2 * bytes {
        return Err(does_not_fit());
    }
    for (place, digit) in digits.bytes().rev().enumerate() {
        let digit = (digit as char).to_digit(16).ok_or_else(|| Problem::said("not a number"))? as u8;
        little[place / 2] |= digit << (4 * (place % 2));
    }
    let little = &mut little[..bytes];
    if negative {
        negate(little);
    }
    let is_minus = little[bytes - 1] & 0x80 != 0;
    let is_zero = little.iter().all(|byte| *byte == 0);
    if negative && !signed || signed && !is_zero && is_minus != negative {
        return Err(does_not_fit());
    }
    out.extend_from_slice(little);
    Ok(())
}

/// Negates a number in two's complement.
pub(super) fn negate(little: &mut [u8]) {
    let mut carry = true;
    for byte in little {
        let (sum, overflow) = (!*byte).overflowing_add(u8::from(carry));
        *byte = sum;
        carry = overflow;
    }
}

/// Takes any value that `float()` takes.
#[inline]
pub(super) fn float_of(value: Value<'_>) -> Result<f64, Problem> {
    match value.float() {
        Some(number) => Ok(number),
        None => slow_float(value),
    }
}

#[cold]
fn slow_float(value: Value<'_>) -> Result<f64, Problem> {
    let held = value.held();
    // Safety: given a valid object; what comes back is a new reference or an error.
    let number = unsafe { Bound::from_owned_ptr_or_err(value.py, ffi::PyNumber_Float(held.as_ptr())) }?;
    Ok(number.extract()?)
}

#[inline]
pub(super) fn float32_of(value: Value<'_>) -> Result<f32, Problem> {
    let wide = float_of(value)?;
    let narrow = wide as f32;
    if narrow.is_infinite() && wide.is_finite() {
        return Err(Problem::said(format!("{wide:e} is out of range of a Float32")));
    }
    Ok(narrow)
}

/// Writes the truth of a value, like everything in Python: `"false"` is true.
#[inline]
pub(super) fn put_bool(value: Value<'_>, out: &mut Vec<u8>) -> Result<(), Problem> {
    // Safety: the two booleans live as long as the interpreter.
    let truth = unsafe {
        if value.as_ptr() == ffi::Py_True() {
            true
        } else if value.as_ptr() == ffi::Py_False() {
            false
        } else {
            value.held().is_truthy()?
        }
    };
    out.push(u8::from(truth));
    Ok(())
}
