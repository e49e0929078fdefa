//! Conversion to `Time` and `Time64`: timedelta, time, ticks as they are stored, texts like `-12:30:00.25`.

use pyo3::intern;
use pyo3::prelude::*;

use super::context::Context;
use super::layout::RawDelta;
use super::moment::numpy_ticks;
use super::number::{put_checked, python_int};
use super::problem::Problem;
use super::value::Value;

/// The seconds of 999:59:59, the last time that ClickHouse has.
const MAX_SECONDS: i128 = 999 * 3600 + 59 * 60 + 59;

/// Writes a value as ticks of `10^-precision` seconds; of 4 bytes for `Time` (precision 0), of 8 for `Time64`.
pub(super) fn put_time<'py>(
    context: &Context<'py>,
    value: Value<'py>,
    precision: u8,
    bytes: usize,
    out: &mut Vec<u8>,
) -> Result<(), Problem> {
    put_ticks(ticks_of(context, value, precision)?, precision, bytes, out)
}

/// Writes ticks of `10^-precision` seconds, in so many bytes.
pub(super) fn put_ticks(ticks: i128, precision: u8, bytes: usize, out: &mut Vec<u8>) -> Result<(), Problem> {
    let per_second = 10_i128.pow(precision.into());
    if ticks.abs() > MAX_SECONDS * per_second + per_second - 1 {
        return Err(Problem::said("out of range (-999:59:59 to 999:59:59)"));
    }
    put_checked(ticks, bytes, true, out)
}

fn ticks_of<'py>(context: &Context<'py>, value: Value<'py>, precision: u8) -> Result<i128, Problem> {
    if let Some(ticks) = value.small_int() {
        return Ok(ticks);
    }
    if value.is_float() {
        let ticks = python_int(value)?;
        return Value::of(&ticks).small_int().ok_or_else(|| Problem::said("out of range"));
    }
    // Safety: the slice is read before any Python code runs.
    if let Some(text) = unsafe { value.utf8() } {
        return ticks_of_text(text, precision).ok_or_else(|| Problem::said("not a time like 12:30:00.25"));
    }
    let held = value.held();
    let names = context.names;
    if let Some(scalar) = numpy_ticks(&held)? {
        return scalar.unit.truncated_ticks(scalar.count, precision).ok_or_else(|| Problem::said("out of range"));
    }
    if held.is_instance(names.timedelta.bind(context.py))? {
        return ticks_of_delta(context, &held, precision);
    }
    if held.is_instance(names.time.bind(context.py))? {
        let field = |name| held.getattr(name)?.extract::<i128>();
        let py = context.py;
        let minutes = field(intern!(py, "hour"))? * 60 + field(intern!(py, "minute"))?;
        let micros = (minutes * 60 + field(intern!(py, "second"))?) * 1_000_000 + field(intern!(py, "microsecond"))?;
        return Ok(micros * 10_i128.pow(precision.into()) / 1_000_000);
    }
    Err(Problem::said(format!("a {} is no time", held.get_type().name()?)))
}

fn ticks_of_delta<'py>(context: &Context<'py>, delta: &Bound<'py, PyAny>, precision: u8) -> Result<i128, Problem> {
    // pandas' Timedelta has nanoseconds, and NaT is none.
    if Value::of(delta).class().cast() != context.names.timedelta.as_ptr() {
        if let Ok(exact) = delta.call_method0(intern!(context.py, "to_timedelta64")) {
            return match numpy_ticks(&exact)? {
                Some(scalar) => {
                    let ticks = scalar.unit.truncated_ticks(scalar.count, precision);
                    ticks.ok_or_else(|| Problem::said("out of range"))
                }
                None => Err(Problem::said("NaT is no time")),
            };
        }
    }
    let micros = i128::from(context.delta_micros(delta)?);
    Ok(micros * 10_i128.pow(precision.into()) / 1_000_000)
}

/// Reads `[-]hours:minutes:seconds[.fraction]`; digits beyond the precision are cut.
fn ticks_of_text(text: &[u8], precision: u8) -> Option<i128> {
    let text = std::str::from_utf8(text).ok()?.trim();
    let (negative, text) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let (clock, fraction) = text.split_once('.').unwrap_or((text, ""));
    if text.contains('.') && fraction.is_empty() || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let mut parts = clock.split(':').map(|part| match part.bytes().all(|byte| byte.is_ascii_digit()) {
        true => part.parse::<u16>().ok(),
        false => None,
    });
    let (hours, minutes, seconds) = (parts.next()??, parts.next()??, parts.next()??);
    if parts.next().is_some() || hours > 999 || minutes > 59 || seconds > 59 {
        return None;
    }
    let digits = fraction.bytes().chain(std::iter::repeat(b'0')).take(precision.into());
    let fraction = digits.fold(0_i128, |sum, digit| sum * 10 + i128::from(digit - b'0'));
    let seconds = i128::from(hours) * 3600 + i128::from(minutes) * 60 + i128::from(seconds);
    let ticks = seconds * 10_i128.pow(precision.into()) + fraction;
    Some(if negative { -ticks } else { ticks })
}

impl Context<'_> {
    /// Returns a timedelta in microseconds.
    pub(super) fn delta_micros(&self, delta: &Bound<'_, PyAny>) -> Result<i64, Problem> {
        let raw = self.raw_delta(delta)?;
        let seconds = i64::from(raw.days) * super::calendar::SECONDS_PER_DAY + i64::from(raw.seconds);
        seconds
            .checked_mul(1_000_000)
            .and_then(|micros| micros.checked_add(raw.micros.into()))
            .ok_or_else(|| Problem::said("the timedelta is out of range"))
    }

    fn raw_delta(&self, delta: &Bound<'_, PyAny>) -> Result<RawDelta, Problem> {
        if !delta.is_instance(self.names.timedelta.bind(self.py))? {
            return Err(Problem::said(format!("a {} is no timedelta", delta.get_type().name()?)));
        }
        if let Some(layout) = &self.names.layout {
            // Safety: the class was compared.
            return Ok(unsafe { layout.delta(delta.as_ptr()) });
        }
        Ok(RawDelta {
            days: delta.getattr(intern!(self.py, "days"))?.extract()?,
            seconds: delta.getattr(intern!(self.py, "seconds"))?.extract()?,
            micros: delta.getattr(intern!(self.py, "microseconds"))?.extract()?,
        })
    }
}
