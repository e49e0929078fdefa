//! Integers and floats in their plain spelling. Everything lenient (leading zeros, `+`, `1_000`, values that would wrap
//! around) is refused.

use super::cursor::Cursor;
use super::outcome::NotParsedReason;

/// The largest exact mantissa: 2^53 and below are exact as a double, so are the powers of ten up to 22: one
/// division rounds once, correctly.
const EXACT_MANTISSA: u64 = 1 << 53;
const EXACT_POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20,
    1e21, 1e22,
];
/// The longest text of a float: a double has no more than 767 significant digits; longer ones are somebody's
/// mistake.
const MAX_FLOAT_BYTES: usize = 800;

pub(super) struct Digits<'a> {
    pub(super) negative: bool,
    pub(super) digits: &'a [u8],
}

/// Reads an integer's sign and digits, with no leading zero and no `-0`.
pub(super) fn read_digits<'a>(cursor: &mut Cursor<'a>) -> Result<Digits<'a>, NotParsedReason> {
    let negative = cursor.eat(b'-');
    let rest = cursor.rest();
    let length = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let digits = &rest[..length];
    if length == 0 || (digits[0] == b'0' && (length > 1 || negative)) {
        return Err(NotParsedReason::Value);
    }
    cursor.at += length;
    Ok(Digits { negative, digits })
}

/// Reads an integer that fits into 64 bits with its sign aside.
#[inline]
pub(super) fn read_magnitude(cursor: &mut Cursor<'_>) -> Result<u64, NotParsedReason> {
    let rest = cursor.rest();
    let mut value = 0u64;
    let mut length = 0;
    while let Some(byte @ b'0'..=b'9') = rest.get(length) {
        let digit = u64::from(byte - b'0');
        // So many digits always fit.
        if length < 19 {
            value = value * 10 + digit;
        } else {
            value = value.checked_mul(10).and_then(|value| value.checked_add(digit)).ok_or(NotParsedReason::Value)?;
        }
        length += 1;
    }
    if length == 0 || (length > 1 && rest[0] == b'0') {
        return Err(NotParsedReason::Value);
    }
    cursor.at += length;
    Ok(value)
}

/// Reads an integer of 64 bits, except for the lowest one.
pub(super) fn read_signed(cursor: &mut Cursor<'_>) -> Result<i64, NotParsedReason> {
    let negative = cursor.eat(b'-');
    let magnitude = i64::try_from(read_magnitude(cursor)?).map_err(|_| NotParsedReason::Value)?;
    match (negative, magnitude) {
        (true, 0) => Err(NotParsedReason::Value),
        (true, magnitude) => Ok(-magnitude),
        (false, magnitude) => Ok(magnitude),
    }
}

/// Appends an integer of up to 64 bits.
#[inline]
pub(super) fn push_integer(
    cursor: &mut Cursor<'_>,
    width: usize,
    signed: bool,
    out: &mut Vec<u8>,
) -> Result<(), NotParsedReason> {
    let negative = signed && cursor.eat(b'-');
    let magnitude = read_magnitude(cursor)?;
    let bits = 8 * width as u32 - u32::from(signed);
    let highest = u64::MAX >> (64 - bits);
    let value = if negative {
        if magnitude == 0 || magnitude > highest + 1 {
            return Err(NotParsedReason::Value);
        }
        magnitude.wrapping_neg()
    } else {
        if magnitude > highest {
            return Err(NotParsedReason::Value);
        }
        magnitude
    };
    match width {
        1 => out.push(value as u8),
        2 => out.extend_from_slice(&(value as u16).to_le_bytes()),
        4 => out.extend_from_slice(&(value as u32).to_le_bytes()),
        _ => out.extend_from_slice(&value.to_le_bytes()),
    }
    Ok(())
}

/// Appends an integer of 128 or 256 bits.
pub(super) fn push_wide_integer(
    cursor: &mut Cursor<'_>,
    width: usize,
    signed: bool,
    out: &mut Vec<u8>,
) -> Result<(), NotParsedReason> {
    let Digits { negative, digits } = read_digits(cursor)?;
    if negative && !signed {
        return Err(NotParsedReason::Value);
    }
    let value = Wide::from_digits(digits.iter().copied()).ok_or(NotParsedReason::Value)?;
    let bits = 8 * width as u32 - u32::from(signed);
    let is_lowest = negative && value == Wide::power_of_two(bits);
    if value.bits() > bits && !is_lowest {
        return Err(NotParsedReason::Value);
    }
    out.extend_from_slice(&value.signed(negative).to_le_bytes()[..width]);
    Ok(())
}

/// An unsigned integer of 256 bits, lowest word first: just what decimal texts need.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Wide([u64; 4]);

impl Wide {
    pub(super) fn from_digits(digits: impl Iterator<Item = u8>) -> Option<Self> {
        let mut value = Wide::default();
        for digit in digits {
            value = value.times_ten_plus(digit - b'0')?;
        }
        Some(value)
    }

    pub(super) fn times_ten_plus(self, digit: u8) -> Option<Self> {
        let mut carry = u128::from(digit);
        let mut words = self.0;
        for word in &mut words {
            let product = u128::from(*word) * 10 + carry;
            *word = product as u64;
            carry = product >> 64;
        }
        (carry == 0).then_some(Wide(words))
    }

    /// Returns a power of two. `exponent` is below 256.
    fn power_of_two(exponent: u32) -> Self {
        let mut words = [0; 4];
        words[exponent as usize / 64] = 1 << (exponent % 64);
        Wide(words)
    }

    fn bits(&self) -> u32 {
        let top = (0..4).rev().find(|word| self.0[*word] != 0);
        top.map_or(0, |word| 64 * word as u32 + 64 - self.0[word].leading_zeros())
    }

    /// Returns the two's complement of the value with its sign.
    pub(super) fn signed(self, negative: bool) -> Self {
        if !negative {
            return self;
        }
        let mut words = self.0.map(|word| !word);
        for word in &mut words {
            let (sum, overflow) = word.overflowing_add(1);
            *word = sum;
            if !overflow {
                break;
            }
        }
        Wide(words)
    }

    pub(super) fn to_le_bytes(self) -> [u8; 32] {
        let mut bytes = [0; 32];
        for (chunk, word) in bytes.chunks_exact_mut(8).zip(self.0) {
            chunk.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }
}

/// Reads a number in JSON's grammar, as text.
pub(super) fn read_number_text<'a>(cursor: &mut Cursor<'a>) -> Result<&'a [u8], NotParsedReason> {
    let start = cursor.at;
    cursor.eat(b'-');
    let whole = eat_digits(cursor);
    if whole == 0 || (whole > 1 && cursor.bytes[cursor.at - whole] == b'0') {
        return Err(NotParsedReason::Value);
    }
    if cursor.eat(b'.') && eat_digits(cursor) == 0 {
        return Err(NotParsedReason::Value);
    }
    if cursor.eat(b'e') || cursor.eat(b'E') {
        let _sign = cursor.eat(b'-') || cursor.eat(b'+');
        if eat_digits(cursor) == 0 {
            return Err(NotParsedReason::Value);
        }
    }
    let text = &cursor.bytes[start..cursor.at];
    if text.len() > MAX_FLOAT_BYTES {
        return Err(NotParsedReason::Value);
    }
    Ok(text)
}

fn eat_digits(cursor: &mut Cursor<'_>) -> usize {
    let start = cursor.at;
    while let Some(b'0'..=b'9') = cursor.peek() {
        cursor.at += 1;
    }
    cursor.at - start
}

/// Appends a Float64, rounded correctly, as `precise_float_parsing` asks for.
#[inline]
pub(super) fn push_float64(cursor: &mut Cursor<'_>, out: &mut Vec<u8>) -> Result<(), NotParsedReason> {
    let value = match read_short_decimal(cursor) {
        Some(value) => value,
        None => {
            let text = read_number_text(cursor)?;
            parse_text::<f64>(text).filter(|value| value.is_finite()).ok_or(NotParsedReason::Value)?
        }
    };
    out.extend_from_slice(&value.to_le_bytes());
    Ok(())
}

/// Appends a Float32, rounded once from the decimal text.
pub(super) fn push_float32(cursor: &mut Cursor<'_>, out: &mut Vec<u8>) -> Result<(), NotParsedReason> {
    out.extend_from_slice(&read_float32(cursor)?.to_le_bytes());
    Ok(())
}

/// Appends a BFloat16: a Float32 whose lower half is cut off.
pub(super) fn push_bfloat16(cursor: &mut Cursor<'_>, out: &mut Vec<u8>) -> Result<(), NotParsedReason> {
    out.extend_from_slice(&read_float32(cursor)?.to_le_bytes()[2..]);
    Ok(())
}

fn read_float32(cursor: &mut Cursor<'_>) -> Result<f32, NotParsedReason> {
    let text = read_number_text(cursor)?;
    parse_text::<f32>(text).filter(|value| value.is_finite()).ok_or(NotParsedReason::Value)
}

fn parse_text<T: std::str::FromStr>(text: &[u8]) -> Option<T> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Reads a number of few digits and no exponent, as most numbers are. In front of any other number the cursor
/// stays where it is.
#[inline]
fn read_short_decimal(cursor: &mut Cursor<'_>) -> Option<f64> {
    let rest = cursor.rest();
    let start = usize::from(rest.first() == Some(&b'-'));
    let mut mantissa = 0u64;
    let mut at = start;
    let mut eat_digits = |mut at: usize| {
        let first = at;
        while let Some(byte @ b'0'..=b'9') = rest.get(at) {
            // With too many digits it wraps around, and is not looked at.
            mantissa = mantissa.wrapping_mul(10).wrapping_add(u64::from(byte - b'0'));
            at += 1;
        }
        at - first
    };
    let whole = eat_digits(at);
    at += whole;
    let mut fraction = 0;
    if rest.get(at) == Some(&b'.') {
        fraction = eat_digits(at + 1);
        at += 1 + fraction;
        if fraction == 0 {
            return None;
        }
    }
    let has_leading_zero = whole > 1 && rest[start] == b'0';
    if whole == 0 || has_leading_zero || whole + fraction > 18 || mantissa > EXACT_MANTISSA {
        return None;
    }
    if matches!(rest.get(at), Some(b'e' | b'E')) {
        return None;
    }
    cursor.at += at;
    let value = mantissa as f64 / EXACT_POWERS[fraction];
    Some(if start == 1 { -value } else { value })
}

/// The most digits of an exponent: longer exponents are somebody's mistake.
const MAX_EXPONENT_DIGITS: usize = 6;

/// Appends a Decimal. Digits beyond the scale are cut off, as ClickHouse does.
pub(super) fn push_decimal(
    cursor: &mut Cursor<'_>,
    precision: u8,
    scale: u8,
    width: usize,
    out: &mut Vec<u8>,
) -> Result<(), NotParsedReason> {
    let text = read_number_text(cursor)?;
    let (negative, text) = match text.split_first() {
        Some((b'-', text)) => (true, text),
        _ => (false, text),
    };
    let mantissa_length = text.iter().position(|byte| matches!(byte, b'e' | b'E'));
    let (mantissa, exponent) = text.split_at(mantissa_length.unwrap_or(text.len()));
    let point = mantissa.iter().position(|byte| *byte == b'.').unwrap_or(mantissa.len());
    let (whole, fraction) = (&mantissa[..point], mantissa.get(point + 1..).unwrap_or(&[]));
    // ClickHouse counts a zero in front of the point among the digits, but only of a number with an exponent.
    let whole = if whole == b"0" && exponent.is_empty() { &[] } else { whole };
    let whole_digits = whole.len() as i64 + read_exponent(exponent)?;
    if whole.len() > usize::from(precision) || whole_digits > i64::from(precision - scale) {
        return Err(NotParsedReason::Value);
    }
    let zeros = std::iter::repeat(b'0');
    // The digits from the mantissa's first one up to the last that the scale has room for; none if all are behind it.
    let kept = usize::try_from(whole_digits + i64::from(scale)).unwrap_or(0);
    let digits = whole.iter().chain(fraction).copied().chain(zeros).take(kept);
    let value = Wide::from_digits(digits).ok_or(NotParsedReason::Value)?;
    out.extend_from_slice(&value.signed(negative).to_le_bytes()[..width]);
    Ok(())
}

/// Reads the exponent behind a mantissa: nothing, or `e-7`.
fn read_exponent(text: &[u8]) -> Result<i64, NotParsedReason> {
    let Some((_, text)) = text.split_first() else { return Ok(0) };
    let digits = text.strip_prefix(b"-").or(text.strip_prefix(b"+")).unwrap_or(text);
    if digits.len() > MAX_EXPONENT_DIGITS {
        return Err(NotParsedReason::Value);
    }
    let magnitude = digits.iter().fold(0, |value, digit| value * 10 + i64::from(digit - b'0'));
    Ok(if text.starts_with(b"-") { -magnitude } else { magnitude })
}
