//! Single values as ClickHouse writes them into JSON.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::Write;
use std::net::{Ipv4Addr, Ipv6Addr};

use jiff::tz::TimeZone;
use jiff::Timestamp;

use windrow_columns::value_text::{number, time};
use windrow_columns::DataType;

pub(super) struct ScalarText {
    default_timezone: String,
    zones: HashMap<String, TimeZone>,
}

impl ScalarText {
    pub(super) fn new(default_timezone: &str) -> Self {
        ScalarText { default_timezone: default_timezone.to_string(), zones: HashMap::new() }
    }

    /// Writes a value, which has as many bytes as values of the type have.
    pub(super) fn write_fixed(&mut self, out: &mut Vec<u8>, scalar: &DataType, value: &[u8]) {
        use DataType::*;
        match scalar {
            UInt8 | UInt16 | UInt32 | UInt64 | UInt128 | UInt256 => write_unsigned(out, value),
            Int8 | Int16 | Int32 | Int64 | Int128 | Int256 | Interval(_) => write_signed(out, value),
            Float32 => write_float(out, &format!("{:e}", f32::from_bits(bits(value) as u32))),
            Float64 => write_float(out, &format!("{:e}", f64::from_bits(bits(value) as u64))),
            BFloat16 => write_float(out, &format!("{:e}", f32::from_bits((bits(value) as u32) << 16))),
            Bool => out.extend(if value == [0] { b"false".as_slice() } else { b"true" }),
            Date => quoted(out, |out| time::day(out, unsigned(value))),
            Date32 => quoted(out, |out| time::day(out, signed(value))),
            DateTime { timezone } => self.write_moment(out, unsigned(value), 0, timezone.as_deref()),
            DateTime64 { precision, timezone } => {
                self.write_moment(out, signed(value), *precision, timezone.as_deref())
            }
            Time => quoted(out, |out| time::of_day(out, signed(value), 0)),
            Time64 { precision } => quoted(out, |out| time::of_day(out, signed(value), *precision)),
            Decimal { scale, .. } => write_decimal(out, value, usize::from(*scale)),
            Uuid => quoted(out, |out| write_uuid(out, value)),
            Ipv4 => quoted(out, |out| append(out, format_args!("{}", Ipv4Addr::from(bits(value) as u32)))),
            Ipv6 => quoted(out, |out| write_ipv6(out, value)),
            Enum8(names) | Enum16(names) => {
                let number = signed(value);
                let name = names.iter().find(|name| i64::from(name.value) == number);
                write_quoted(out, name.map_or(b"", |name| name.name.as_bytes()));
            }
            String | FixedString(_) => write_quoted(out, value),
            // Types with types inside are never scalars.
            Nullable(_) | LowCardinality(_) | Array(_) | Map(..) | Tuple(_) | Variant(_) | Custom(_) => {}
            Dynamic | Json { .. } | QBit { .. } | Nothing | AggregateFunction(_) => {}
        }
    }

    fn write_moment(&mut self, out: &mut Vec<u8>, ticks: i64, precision: u8, timezone: Option<&str>) {
        let per_second = time::ticks_per_second(precision);
        let (second, fraction) = (ticks.div_euclid(per_second), ticks.rem_euclid(per_second));
        let name = timezone.unwrap_or(&self.default_timezone);
        let zone = match self.zones.get(name) {
            Some(zone) => zone,
            None => {
                let zone = TimeZone::get(name).unwrap_or(TimeZone::UTC);
                self.zones.entry(name.to_string()).or_insert(zone)
            }
        };
        // What lies outside of the calendar has no zone's offset.
        let offset = Timestamp::from_second(second).map_or(0, |moment| zone.to_offset(moment).seconds());
        let local = second.saturating_add(i64::from(offset));
        quoted(out, |out| time::moment_of(out, local, fraction, precision));
    }
}

fn append(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("writing to a vector cannot fail");
}

fn quoted(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    out.push(b'"');
    write(out);
    out.push(b'"');
}

pub(super) fn write_quoted(out: &mut Vec<u8>, text: &[u8]) {
    out.push(b'"');
    for (index, byte) in text.iter().enumerate() {
        match byte {
            b'"' => out.extend(b"\\\""),
            b'\\' => out.extend(b"\\\\"),
            b'/' => out.extend(b"\\/"),
            b'\n' => out.extend(b"\\n"),
            b'\t' => out.extend(b"\\t"),
            b'\r' => out.extend(b"\\r"),
            8 => out.extend(b"\\b"),
            12 => out.extend(b"\\f"),
            control @ 0..=0x1F => append(out, format_args!("\\u{control:04X}")),
            // The line separators that JavaScript does not allow in strings.
            0xA8 | 0xA9 if text[..index].ends_with(b"\xE2\x80") => {
                out.truncate(out.len() - 2);
                append(out, format_args!("\\u20{:02x}", byte - 0x80));
            }
            other => out.push(*other),
        }
    }
    out.push(b'"');
}

/// Reads up to 16 bytes, little-endian.
fn bits(value: &[u8]) -> u128 {
    let mut bytes = [0; 16];
    bytes[..value.len()].copy_from_slice(value);
    u128::from_le_bytes(bytes)
}

/// Reads up to 8 bytes, little-endian, of which the highest bit is the sign.
fn signed(value: &[u8]) -> i64 {
    let unused = 64 - 8 * value.len() as u32;
    ((bits(value) as i64) << unused) >> unused
}

/// Reads up to 4 bytes, little-endian.
fn unsigned(value: &[u8]) -> i64 {
    bits(value) as i64
}

fn write_unsigned(out: &mut Vec<u8>, value: &[u8]) {
    match value.len() {
        ..=16 => append(out, format_args!("{}", bits(value))),
        _ => write_wide(out, value),
    }
}

fn write_signed(out: &mut Vec<u8>, value: &[u8]) {
    let (negative, magnitude) = magnitude(value);
    if negative {
        out.push(b'-');
    }
    write_unsigned(out, &magnitude);
}

/// Says whether the number is negative, and returns its bytes without the sign.
fn magnitude(value: &[u8]) -> (bool, Cow<'_, [u8]>) {
    match value.last().is_some_and(|byte| byte & 0x80 != 0) {
        true => (true, Cow::Owned(negated(value))),
        false => (false, Cow::Borrowed(value)),
    }
}

/// Returns the two's complement.
fn negated(value: &[u8]) -> Vec<u8> {
    let mut carry = true;
    let negate = |byte: &u8| {
        let (negated, overflow) = (!byte).overflowing_add(u8::from(carry));
        carry = overflow;
        negated
    };
    value.iter().map(negate).collect()
}

/// Writes a number of 256 bits, nine digits at a time.
fn write_wide(out: &mut Vec<u8>, value: &[u8]) {
    const STEP: u64 = 1_000_000_000;
    let mut limbs: Vec<u32> = value
        .chunks_exact(4)
        .map(|limb| u32::from_le_bytes(limb.try_into().expect("chunks of 4 bytes")))
        .rev()
        .collect();
    let mut groups = Vec::new();
    while limbs.iter().any(|limb| *limb != 0) {
        let mut rest = 0_u64;
        for limb in &mut limbs {
            let current = (rest << 32) | u64::from(*limb);
            *limb = (current / STEP) as u32;
            rest = current % STEP;
        }
        groups.push(rest);
    }
    append(out, format_args!("{}", groups.pop().unwrap_or(0)));
    for group in groups.iter().rev() {
        append(out, format_args!("{group:09}"));
    }
}

/// Writes a float. Infinities and NaN are quoted: JSON has no such numbers.
fn write_float(out: &mut Vec<u8>, scientific: &str) {
    match scientific.contains('e') {
        true => number::float(out, scientific),
        false => quoted(out, |out| number::float(out, scientific)),
    }
}

fn write_decimal(out: &mut Vec<u8>, value: &[u8], scale: usize) {
    let (negative, magnitude) = magnitude(value);
    let mut digits = Vec::new();
    write_unsigned(&mut digits, &magnitude);
    number::decimal_of(out, negative, String::from_utf8_lossy(&digits), scale);
}

/// Writes a UUID, which is two halves of 64 bits.
fn write_uuid(out: &mut Vec<u8>, value: &[u8]) {
    let (high, low) = (bits(&value[..8]), bits(&value[8..]));
    append(
        out,
        format_args!(
            "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
            high >> 32,
            high >> 16 & 0xFFFF,
            high & 0xFFFF,
            low >> 48,
            low & 0xFFFF_FFFF_FFFF
        ),
    );
}

fn write_ipv6(out: &mut Vec<u8>, value: &[u8]) {
    let octets: [u8; 16] = value.try_into().unwrap_or_default();
    let address = Ipv6Addr::from(octets);
    let [.., a, b, c, d] = octets;
    if octets[..12] == [0; 12] && (a, b) != (0, 0) {
        append(out, format_args!("::{a}.{b}.{c}.{d}"));
    } else {
        append(out, format_args!("{address}"));
    }
}
