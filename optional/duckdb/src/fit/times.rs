//! Dates, times of day, points in time and intervals.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Date64Type, DurationMicrosecondType, DurationMillisecondType,
    DurationNanosecondType, DurationSecondType, IntervalMonthDayNanoType, Time32MillisecondType, Time32SecondType,
    Time64MicrosecondType, Time64NanosecondType, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType,
};
use arrow_array::{Array, ArrayRef, PrimitiveArray};
use arrow_buffer::IntervalMonthDayNano;
use arrow_schema::{DataType, IntervalUnit, TimeUnit};

use super::CannotStoreValue;

const DAY_MS: i64 = 86_400_000;

pub(super) fn date(array: &ArrayRef) -> Result<ArrayRef, CannotStoreValue> {
    match array.data_type() {
        DataType::Date32 => Ok(array.clone()),
        DataType::Date64 => {
            let millis = array.as_primitive::<Date64Type>();
            each::<_, Date32Type>(millis, |value| {
                (value % DAY_MS == 0).then(|| i32::try_from(value / DAY_MS).ok()).flatten()
            })
            .map_err(|row| CannotStoreValue::lossy(row, shown(array, row), "DATE"))
        }
        other => Err(CannotStoreValue::of_type(other, "DATE")),
    }
}

/// Fits times within a day, up to 24:00:00. DuckDB crashes when it writes other times.
pub(super) fn time(array: &ArrayRef, to: &DataType) -> Result<ArrayRef, CannotStoreValue> {
    let (name, per_second) = match to {
        DataType::Time64(TimeUnit::Nanosecond) => ("TIME_NS", 1_000_000_000),
        _ => ("TIME", 1_000_000),
    };
    let (ticks, unit) = ticks_of_day(array).ok_or_else(|| CannotStoreValue::of_type(array.data_type(), name))?;
    let made = each_tick(&ticks, |value| {
        rescaled(value, unit, per_second).filter(|value| (0..=86_400 * per_second).contains(value))
    });
    let made = made.map_err(|row| CannotStoreValue::lossy(row, shown(array, row), name))?;
    Ok(match name {
        "TIME_NS" => Arc::new(made.reinterpret_cast::<Time64NanosecondType>()),
        _ => Arc::new(made.reinterpret_cast::<Time64MicrosecondType>()),
    })
}

type Ticks = PrimitiveArray<arrow_array::types::Int64Type>;

/// Returns times of day as plain numbers, and how many of these units a second has.
fn ticks_of_day(array: &ArrayRef) -> Option<(Ticks, i64)> {
    use TimeUnit::*;
    Some(match array.data_type() {
        DataType::Time32(Second) => (array.as_primitive::<Time32SecondType>().unary(i64::from), 1),
        DataType::Time32(Millisecond) => (array.as_primitive::<Time32MillisecondType>().unary(i64::from), 1_000),
        DataType::Time64(Microsecond) => (array.as_primitive::<Time64MicrosecondType>().reinterpret_cast(), 1_000_000),
        DataType::Time64(Nanosecond) => {
            (array.as_primitive::<Time64NanosecondType>().reinterpret_cast(), 1_000_000_000)
        }
        _ => return None,
    })
}

/// Fits points in time. A point without a time zone is in UTC.
pub(super) fn timestamp(array: &ArrayRef, to: &DataType) -> Result<ArrayRef, CannotStoreValue> {
    let DataType::Timestamp(unit, zone) = to else { return Err(CannotStoreValue::of_type(array.data_type(), to)) };
    let (ticks, from) = points(array).ok_or_else(|| CannotStoreValue::of_type(array.data_type(), to))?;
    let per_second = per_second(unit);
    let range = range(unit);
    let made = each_tick(&ticks, |value| match value {
        // DuckDB's infinity, in every unit.
        i64::MAX if from == per_second => Some(value),
        value if value == -i64::MAX && from == per_second => Some(value),
        value => rescaled(value, from, per_second).filter(|value| range.contains(value)),
    });
    let made = made.map_err(|row| CannotStoreValue::lossy(row, shown(array, row), to))?;
    Ok(match unit {
        TimeUnit::Second => zoned::<TimestampSecondType>(made, zone),
        TimeUnit::Millisecond => zoned::<TimestampMillisecondType>(made, zone),
        TimeUnit::Microsecond => zoned::<TimestampMicrosecondType>(made, zone),
        TimeUnit::Nanosecond => zoned::<TimestampNanosecondType>(made, zone),
    })
}

fn zoned<T: arrow_array::types::ArrowTimestampType>(ticks: Ticks, zone: &Option<Arc<str>>) -> ArrayRef {
    Arc::new(ticks.reinterpret_cast::<T>().with_timezone_opt(zone.clone()))
}

/// Returns points in time as plain numbers, and how many of these units a second has. Days become seconds.
fn points(array: &ArrayRef) -> Option<(Ticks, i64)> {
    use TimeUnit::*;
    Some(match array.data_type() {
        DataType::Timestamp(Second, _) => (array.as_primitive::<TimestampSecondType>().reinterpret_cast(), 1),
        DataType::Timestamp(Millisecond, _) => {
            (array.as_primitive::<TimestampMillisecondType>().reinterpret_cast(), 1_000)
        }
        DataType::Timestamp(Microsecond, _) => {
            (array.as_primitive::<TimestampMicrosecondType>().reinterpret_cast(), 1_000_000)
        }
        DataType::Timestamp(Nanosecond, _) => {
            (array.as_primitive::<TimestampNanosecondType>().reinterpret_cast(), 1_000_000_000)
        }
        DataType::Date32 => (array.as_primitive::<Date32Type>().unary(|days| i64::from(days) * 86_400), 1),
        DataType::Date64 => (array.as_primitive::<Date64Type>().reinterpret_cast(), 1_000),
        _ => return None,
    })
}

fn per_second(unit: &TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    }
}

/// Returns the range of points in time that DuckDB can read back. It stores others too, and then fails to read them.
fn range(unit: &TimeUnit) -> std::ops::RangeInclusive<i64> {
    const FIRST_S: i64 = -9_223_372_022_400;
    const LAST_US: i64 = i64::MAX - 1;
    match unit {
        TimeUnit::Second => FIRST_S..=LAST_US / 1_000_000,
        TimeUnit::Millisecond => FIRST_S * 1_000..=LAST_US / 1_000,
        TimeUnit::Microsecond => FIRST_S * 1_000_000..=LAST_US,
        // 1677-09-22.
        TimeUnit::Nanosecond => -9_223_286_400_000_000_000..=i64::MAX - 1,
    }
}

/// Converts a value to another unit. Returns `None` where that would lose something.
fn rescaled(value: i64, from: i64, to: i64) -> Option<i64> {
    match from <= to {
        true => value.checked_mul(to / from),
        false => (value % (from / to) == 0).then_some(value / (from / to)),
    }
}

/// Fits intervals, whose smallest unit is the microsecond.
pub(super) fn interval(array: &ArrayRef) -> Result<ArrayRef, CannotStoreValue> {
    let fitted = match array.data_type() {
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            let parts = array.as_primitive::<IntervalMonthDayNanoType>();
            let fits = |value: IntervalMonthDayNano| (value.nanoseconds % 1_000 == 0).then_some(value);
            each::<_, IntervalMonthDayNanoType>(parts, fits)
        }
        DataType::Duration(unit) => {
            let ticks: Ticks = match unit {
                TimeUnit::Second => array.as_primitive::<DurationSecondType>().reinterpret_cast(),
                TimeUnit::Millisecond => array.as_primitive::<DurationMillisecondType>().reinterpret_cast(),
                TimeUnit::Microsecond => array.as_primitive::<DurationMicrosecondType>().reinterpret_cast(),
                TimeUnit::Nanosecond => array.as_primitive::<DurationNanosecondType>().reinterpret_cast(),
            };
            let of_duration = |value: i64| {
                let nanoseconds = rescaled(value, per_second(unit), 1_000_000_000)?;
                (nanoseconds % 1_000 == 0).then(|| IntervalMonthDayNano::new(0, 0, nanoseconds))
            };
            each::<_, IntervalMonthDayNanoType>(&ticks, of_duration)
        }
        other => return Err(CannotStoreValue::of_type(other, "INTERVAL")),
    };
    fitted.map_err(|row| CannotStoreValue::lossy(row, shown(array, row), "INTERVAL"))
}

/// Changes all values. `Err` is the row of the first value that can't be changed.
fn each<S: ArrowPrimitiveType, T: ArrowPrimitiveType>(
    array: &PrimitiveArray<S>,
    change: impl Fn(S::Native) -> Option<T::Native>,
) -> Result<ArrayRef, usize> {
    changed::<S, T>(array, change).map(|made| Arc::new(made) as ArrayRef)
}

fn each_tick(array: &Ticks, change: impl Fn(i64) -> Option<i64>) -> Result<Ticks, usize> {
    changed(array, change)
}

fn changed<S: ArrowPrimitiveType, T: ArrowPrimitiveType>(
    array: &PrimitiveArray<S>,
    change: impl Fn(S::Native) -> Option<T::Native>,
) -> Result<PrimitiveArray<T>, usize> {
    let made: Result<PrimitiveArray<T>, ()> = array.try_unary(|value| change(value).ok_or(()));
    made.map_err(|()| {
        let misfit = |&row: &usize| array.is_valid(row) && change(array.value(row)).is_none();
        (0..array.len()).find(misfit).unwrap_or_default()
    })
}

fn shown(array: &ArrayRef, row: usize) -> String {
    arrow_cast::display::array_value_to_string(array, row).unwrap_or_default()
}
