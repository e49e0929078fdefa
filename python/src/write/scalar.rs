//! One value of a type without parts, as the bytes that it has in Native and in RowBinary alike.

use pyo3::prelude::*;

use super::address::{put_ipv4, put_ipv6, put_uuid};
use super::clock::put_time;
use super::context::Context;
use super::decimal::put_decimal;
use super::json::put_json;
use super::moment::{put_date, put_datetime, put_datetime64};
use super::number::{float32_of, float_of, put_big_int, put_bool, put_checked, put_int, python_int};
use super::plan::Scalar;
use super::problem::Problem;
use super::text::{put_fixed_string, put_sized, put_string};
use super::value::Value;

impl Scalar {
    /// Appends the value, or fails. Bytes that were appended before a failure are the caller's to take back.
    #[inline]
    pub(super) fn put<'py>(&self, context: &Context<'py>, value: Value<'py>, out: &mut Vec<u8>) -> Result<(), Problem> {
        match self {
            Scalar::Int { bytes, signed } => put_int(value, *bytes, *signed, out),
            Scalar::String => put_string(context, value, out),
            Scalar::Float64 => {
                out.extend_from_slice(&float_of(value)?.to_le_bytes());
                Ok(())
            }
            Scalar::DateTime { zone } => put_datetime(context, value, zone.as_deref(), out),
            other => other.put_rarer(context, value, out),
        }
    }

    fn put_rarer<'py>(&self, context: &Context<'py>, value: Value<'py>, out: &mut Vec<u8>) -> Result<(), Problem> {
        match self {
            Scalar::Float32 => out.extend_from_slice(&float32_of(value)?.to_le_bytes()),
            // The upper half of a Float32.
            Scalar::BFloat16 => out.extend_from_slice(&float32_of(value)?.to_le_bytes()[2..]),
            Scalar::Bool => put_bool(value, out)?,
            Scalar::FixedString(width) => put_fixed_string(context, value, *width, out)?,
            Scalar::Date => put_date(context, value, 2, out)?,
            Scalar::Date32 => put_date(context, value, 4, out)?,
            Scalar::DateTime64 { precision, zone } => {
                put_datetime64(context, value, *precision, zone.as_deref(), out)?;
            }
            Scalar::Time => put_time(context, value, 0, 4, out)?,
            Scalar::Time64 { precision } => put_time(context, value, *precision, 8, out)?,
            Scalar::Decimal { precision, scale } => put_decimal(value, *precision, *scale, out)?,
            Scalar::BigInt { bytes, signed } => put_big_int(value, *bytes, *signed, out)?,
            Scalar::Uuid => put_uuid(context, value, out)?,
            Scalar::Ipv4 => put_ipv4(context, value, out)?,
            Scalar::Ipv6 => put_ipv6(context, value, out)?,
            Scalar::Enum { bytes, by_name } => {
                // Safety: the slice is read before any Python code runs.
                let number = match unsafe { value.utf8() }.and_then(|name| std::str::from_utf8(name).ok()) {
                    Some(name) => match by_name.get(name) {
                        Some(number) => (*number).into(),
                        None => return Err(Problem::said("not a name of the Enum")),
                    },
                    None => enum_number(value)?,
                };
                if !by_name.values().any(|known| i128::from(*known) == number) {
                    return Err(Problem::said(format!("{number} is not a number of the Enum")));
                }
                put_checked(number, *bytes, true, out)?;
            }
            Scalar::Json => put_json(context, value, out)?,
            Scalar::Dynamic if value.is_none() => put_sized(b"NULL", out),
            Scalar::Dynamic if value.is_str() => put_string(context, value, out)?,
            Scalar::Dynamic => put_string(context, Value::of(value.held().str()?.as_any()), out)?,
            // ClickHouse writes this character for a value that can't be.
            Scalar::Nothing => out.push(b'0'),
            Scalar::Int { .. } | Scalar::String | Scalar::Float64 | Scalar::DateTime { .. } => {
                return self.put(context, value, out);
            }
        }
        Ok(())
    }

    /// Says whether clickhouse-connect takes a None for the type, as false, zeros or no document.
    pub(super) fn takes_none(&self) -> bool {
        matches!(self, Scalar::Bool | Scalar::Uuid | Scalar::Ipv6 | Scalar::Json | Scalar::Dynamic | Scalar::Nothing)
    }

    pub(super) fn is_json(&self) -> bool {
        matches!(self, Scalar::Json)
    }

    /// Appends the value that stands in the place of a NULL.
    pub(super) fn put_default(&self, out: &mut Vec<u8>) {
        match self {
            Scalar::Json => put_sized(b"{}", out),
            Scalar::Nothing => out.push(b'0'),
            other => out.resize(out.len() + other.width().unwrap_or(1), 0),
        }
    }
}

fn enum_number(value: Value<'_>) -> Result<i128, Problem> {
    match value.small_int() {
        Some(number) => Ok(number),
        None if value.float().is_some_and(|number| number.fract() != 0.0) => {
            Err(Problem::said("a number of the Enum is whole"))
        }
        None => {
            let number = python_int(value)?;
            Value::of(&number).small_int().ok_or_else(|| Problem::said("not a number of the Enum"))
        }
    }
}

/// The meaning of a value that was refused in a Nullable column.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum StandIn {
    Null,
    /// Zero, as clickhouse-connect takes an empty text among numbers or times.
    Default,
}

/// Returns the meaning of a refused value; `None` says that it is wrong. NULL are pandas' `NA` and `NaT`,
/// NumPy's `NaT`, and a NaN where it isn't a number.
#[cold]
pub(super) fn stand_in(value: Value<'_>) -> Option<StandIn> {
    if let Some(number) = value.float() {
        return number.is_nan().then_some(StandIn::Null);
    }
    // Safety: only its length is looked at.
    if let Some(text) = unsafe { value.utf8() } {
        return text.is_empty().then_some(StandIn::Default);
    }
    let is_null = match value.class_name().as_str() {
        "NAType" | "NaTType" => true,
        "datetime64" | "timedelta64" => value.held().str().is_ok_and(|text| text.to_string_lossy() == "NaT"),
        _ => false,
    };
    is_null.then_some(StandIn::Null)
}
