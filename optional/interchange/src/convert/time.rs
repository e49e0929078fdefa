//! Converts dates and points in time. A point in time needs no zone: it is UTC on both sides.

use windrow_columns::{ColumnData, DataType};

use super::number::cleaned;

/// The days of 1900-01-01 and 2299-12-31, the limits of Date32.
const FIRST_DATE32: i32 = -25_567;
const LAST_DATE32: i32 = 120_529;
/// The seconds of 1900-01-01 and of the end of 2299, the limits of DateTime64 in every version.
const FIRST_SECOND: i64 = -2_208_988_800;
const LAST_SECOND: i64 = 10_413_791_999;

/// Converts dates. With `any_year`, years outside of ClickHouse's range are accepted too.
pub(super) fn from_dates(days: &[u8], nulls: Option<&[u8]>, wanted: &DataType, any_year: bool) -> Option<ColumnData> {
    let data = cleaned(days, 4, nulls);
    let mut days = data.chunks_exact(4).map(|bytes| i32::from_le_bytes(bytes.try_into().expect("four bytes")));
    match wanted {
        DataType::Date32 => {
            if !any_year && !days.all(|day| (FIRST_DATE32..=LAST_DATE32).contains(&day)) {
                return None;
            }
            drop(days);
            Some(ColumnData::Fixed(data.into_owned()))
        }
        DataType::Date => {
            let mut out = Vec::with_capacity(data.len() / 2);
            days.try_for_each(|day| {
                out.extend_from_slice(&u16::try_from(day).ok()?.to_le_bytes());
                Some(())
            })?;
            Some(ColumnData::Fixed(out))
        }
        _ => None,
    }
}

/// Converts points in time. With `exact`, no digit may be lost.
pub(super) fn from_timestamps(
    power: u32,
    data: &[u8],
    nulls: Option<&[u8]>,
    wanted: &DataType,
    exact: bool,
    any_year: bool,
) -> Option<ColumnData> {
    let data = cleaned(data, 8, nulls);
    let mut ticks = data.chunks_exact(8).map(|bytes| i64::from_le_bytes(bytes.try_into().expect("eight bytes")));
    let per_second = 10i64.checked_pow(power)?;
    let mut out = Vec::with_capacity(data.len());
    match wanted {
        DataType::DateTime { .. } => ticks.try_for_each(|tick| {
            // Before 1970 it would matter which way fractions are rounded; nothing of it fits anyway.
            let second = if tick < 0 || exact && tick % per_second != 0 { return None } else { tick / per_second };
            out.extend_from_slice(&u32::try_from(second).ok()?.to_le_bytes());
            Some(())
        })?,
        DataType::DateTime64 { precision, .. } => {
            let wanted_power = u32::from(*precision);
            ticks.try_for_each(|tick| {
                if !any_year && !(FIRST_SECOND..=LAST_SECOND).contains(&tick.div_euclid(per_second)) {
                    return None;
                }
                let converted = if wanted_power >= power {
                    tick.checked_mul(10i64.checked_pow(wanted_power - power)?)?
                } else {
                    let divisor = 10i64.pow(power - wanted_power);
                    if (exact || tick < 0) && tick % divisor != 0 {
                        return None;
                    }
                    tick / divisor
                };
                out.extend_from_slice(&converted.to_le_bytes());
                Some(())
            })?;
        }
        _ => return None,
    }
    Some(ColumnData::Fixed(out))
}

/// Converts times of day, where no digit is lost.
pub(super) fn from_times_of_day(
    power: u32,
    data: &[u8],
    nulls: Option<&[u8]>,
    wanted: &DataType,
) -> Option<ColumnData> {
    let DataType::Time64 { precision } = wanted else { return None };
    let (from, to) = (10i64.checked_pow(power)?, 10i64.checked_pow(u32::from(*precision))?);
    let data = cleaned(data, 8, nulls);
    let mut out = Vec::with_capacity(data.len());
    for ticks in data.chunks_exact(8) {
        let scaled = i128::from(i64::from_le_bytes(ticks.try_into().expect("eight bytes"))) * i128::from(to);
        if scaled % i128::from(from) != 0 {
            return None;
        }
        out.extend_from_slice(&i64::try_from(scaled / i128::from(from)).ok()?.to_le_bytes());
    }
    Some(ColumnData::Fixed(out))
}
