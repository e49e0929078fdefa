//! Conversion to dates and datetimes: objects of `datetime`, NumPy's and pandas' scalars, numbers as they are
//! stored, ISO texts.

use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;

use super::calendar::{CivilDate, ClockTime, Instant, TimeUnit, SECONDS_PER_DAY};
use super::context::{Context, NaiveMode};
use super::layout::{RawDateTime, WallTime};
use super::local_time::local_seconds;
use super::number::put_checked;
use super::problem::Problem;
use super::value::Value;

/// Writes days, of 2 bytes (`Date`) or of 4 (`Date32`).
pub(super) fn put_date<'py>(
    context: &Context<'py>,
    value: Value<'py>,
    bytes: usize,
    out: &mut Vec<u8>,
) -> Result<(), Problem> {
    let signed = bytes == 4;
    if let Some(days) = value.small_int() {
        return put_checked(days, bytes, signed, out);
    }
    put_checked(days_of(context, value)?, bytes, signed, out)
}

fn days_of<'py>(context: &Context<'py>, value: Value<'py>) -> Result<i128, Problem> {
    let names = context.names;
    let is_plain = value.class().cast() == names.date.as_ptr() || value.class().cast() == names.datetime.as_ptr();
    if let (true, Some(layout)) = (is_plain, &names.layout) {
        // Safety: the class was compared.
        return Ok(unsafe { layout.date(value.as_ptr()) }.days().into());
    }
    let held = value.held();
    if value.is_str() {
        let date = names.date.bind(context.py).call_method1(intern!(context.py, "fromisoformat"), (held,))?;
        return days_of(context, Value::of(&date));
    }
    if let Some(days) = numpy_ticks(&held)?.and_then(|scalar| scalar.unit.floor_ticks(scalar.count, 0)) {
        return Ok(days.div_euclid(SECONDS_PER_DAY.into()));
    }
    if !held.is_instance(names.date.bind(context.py))? {
        return Err(Problem::said(format!("a {} is no date", held.get_type().name()?)));
    }
    // NaT says here that it has none.
    let ordinal: i64 = held.call_method0(intern!(context.py, "toordinal"))?.extract()?;
    const ORDINAL_OF_1970: i64 = 719_163;
    Ok((ordinal - ORDINAL_OF_1970).into())
}

/// Writes seconds.
pub(super) fn put_datetime<'py>(
    context: &Context<'py>,
    value: Value<'py>,
    zone: Option<&str>,
    out: &mut Vec<u8>,
) -> Result<(), Problem> {
    if let Some(seconds) = value.small_int() {
        return put_checked(seconds, 4, false, out);
    }
    let instant = instant_of(context, value, zone)?;
    // A fraction of a second before 1970 is cut towards it.
    let seconds = if instant.seconds < 0 && instant.nanos > 0 { instant.seconds + 1 } else { instant.seconds };
    put_checked(seconds.into(), 4, false, out)
}

/// Writes ticks of `10^-precision` seconds.
pub(super) fn put_datetime64<'py>(
    context: &Context<'py>,
    value: Value<'py>,
    precision: u8,
    zone: Option<&str>,
    out: &mut Vec<u8>,
) -> Result<(), Problem> {
    if let Some(ticks) = value.small_int() {
        return put_checked(ticks, 8, true, out);
    }
    let instant = instant_of(context, value, zone)?;
    // Only moments with nanoseconds have so many digits, and whoever made such a column wants them.
    if matches!(precision, 7 | 8) && !instant.is_whole_in(precision) {
        return Err(too_many_digits(precision));
    }
    put_checked(instant.ticks(precision), 8, true, out)
}

pub(super) fn too_many_digits(precision: u8) -> Problem {
    Problem::said(format!(
        "more digits than a DateTime64({precision}) keeps: round it first, or make the column DateTime64(9)"
    ))
}

fn instant_of<'py>(context: &Context<'py>, value: Value<'py>, zone: Option<&str>) -> Result<Instant, Problem> {
    let names = context.names;
    if value.class().cast() == names.datetime.as_ptr() {
        return instant_of_datetime(context, &value.held(), zone);
    }
    let held = value.held();
    if value.is_str() {
        let parsed = names.datetime.bind(context.py).call_method1(intern!(context.py, "fromisoformat"), (held,))?;
        return instant_of_datetime(context, &parsed, zone);
    }
    if let Some(scalar) = numpy_ticks(&held)? {
        let nanos = scalar.unit.floor_ticks(scalar.count, 9).ok_or_else(|| Problem::said("out of range"))?;
        let seconds = i64::try_from(nanos.div_euclid(1_000_000_000)).map_err(|_| Problem::said("out of range"))?;
        return Ok(Instant { seconds, nanos: nanos.rem_euclid(1_000_000_000) as u32 });
    }
    if !held.is_instance(names.datetime.bind(context.py))? || value.class_name() == "NaTType" {
        return Err(Problem::said(format!("a {} is no datetime", held.get_type().name()?)));
    }
    let mut instant = instant_of_datetime(context, &held, zone)?;
    // pandas' Timestamp is a datetime with three more digits.
    if let Ok(more) = held.getattr(intern!(context.py, "nanosecond")) {
        instant.nanos += more.extract::<u32>()?.min(999);
    }
    Ok(instant)
}

fn instant_of_datetime<'py>(
    context: &Context<'py>,
    datetime: &Bound<'py, PyAny>,
    zone: Option<&str>,
) -> Result<Instant, Problem> {
    let RawDateTime { wall, tzinfo } = raw_datetime(context, datetime)?;
    let nanos = wall.clock.micros * 1000;
    let wall_seconds = wall.date.days() * SECONDS_PER_DAY + wall.clock.seconds();
    if tzinfo == context.names.utc.as_ptr() {
        return Ok(Instant { seconds: wall_seconds, nanos });
    }
    if !tzinfo.is_null() {
        if let Some(offset) = offset_of(context, datetime)? {
            return moved(wall_seconds, nanos, offset);
        }
    }
    match &context.options.naive {
        NaiveMode::Local => {
            let seconds = local_seconds(wall).ok_or_else(|| Problem::said("no such local time"))?;
            Ok(Instant { seconds, nanos })
        }
        NaiveMode::Server(server_tz) => {
            let zone = context.zone(zone, server_tz)?;
            let aware = context.replaced_zone(datetime, &zone)?;
            match offset_of(context, &aware)? {
                Some(offset) => moved(wall_seconds, nanos, offset),
                None => Err(Problem::said("the server's time zone has no offset for it")),
            }
        }
    }
}

/// Returns the moment of a wall time. Offsets may have a fraction of a second, in Python if not on Earth.
fn moved(wall_seconds: i64, nanos: u32, offset_micros: i64) -> Result<Instant, Problem> {
    let micros = i128::from(wall_seconds) * 1_000_000 - i128::from(offset_micros);
    let nanos = micros * 1000 + i128::from(nanos);
    let seconds = i64::try_from(nanos.div_euclid(1_000_000_000)).map_err(|_| Problem::said("out of range"))?;
    Ok(Instant { seconds, nanos: nanos.rem_euclid(1_000_000_000) as u32 })
}

/// Returns `utcoffset()` in microseconds.
fn offset_of<'py>(context: &Context<'py>, datetime: &Bound<'py, PyAny>) -> Result<Option<i64>, Problem> {
    let offset = datetime.call_method0(intern!(context.py, "utcoffset"))?;
    if offset.is_none() {
        return Ok(None);
    }
    Ok(Some(context.delta_micros(&offset)?))
}

fn raw_datetime<'py>(context: &Context<'py>, datetime: &Bound<'py, PyAny>) -> Result<RawDateTime, Problem> {
    if let Some(layout) = &context.names.layout {
        // Safety: the callers give a datetime.
        return Ok(unsafe { layout.datetime(datetime.as_ptr()) });
    }
    let py = context.py;
    let date = CivilDate {
        year: datetime.getattr(intern!(py, "year"))?.extract()?,
        month: datetime.getattr(intern!(py, "month"))?.extract()?,
        day: datetime.getattr(intern!(py, "day"))?.extract()?,
    };
    let clock = ClockTime {
        hour: datetime.getattr(intern!(py, "hour"))?.extract()?,
        minute: datetime.getattr(intern!(py, "minute"))?.extract()?,
        second: datetime.getattr(intern!(py, "second"))?.extract()?,
        micros: datetime.getattr(intern!(py, "microsecond"))?.extract()?,
    };
    let fold = datetime.getattr(intern!(py, "fold"))?.extract::<u8>()? != 0;
    let tzinfo = datetime.getattr(intern!(py, "tzinfo"))?;
    let tzinfo: *mut ffi::PyObject = if tzinfo.is_none() { std::ptr::null_mut() } else { tzinfo.as_ptr() };
    Ok(RawDateTime { wall: WallTime { date, clock, fold }, tzinfo })
}

/// A `datetime64` or `timedelta64` of NumPy.
pub(super) struct NumpyTicks {
    pub(super) count: i64,
    pub(super) unit: TimeUnit,
}

/// Returns the ticks of a value of NumPy. Returns `None` for anything else, and for NaT.
pub(super) fn numpy_ticks(value: &Bound<'_, PyAny>) -> Result<Option<NumpyTicks>, Problem> {
    let class = value.get_type();
    let class = class.name()?;
    if class != "datetime64" && class != "timedelta64" {
        return Ok(None);
    }
    let dtype = value.getattr(intern!(value.py(), "dtype"))?.str()?;
    let count: i64 = value.call_method1(intern!(value.py(), "astype"), ("int64",))?.extract()?;
    let Some(unit) = TimeUnit::of_dtype(&dtype.to_string_lossy()) else {
        return Err(Problem::said(format!("{} counts no seconds", dtype.to_string_lossy())));
    };
    Ok((count != i64::MIN).then_some(NumpyTicks { count, unit }))
}
