//! Conversion of days and seconds since 1970 to `date`, `datetime` and `timedelta`.
//!
//! The stable ABI has no functions for dates. Python offers all of them in one capsule, `datetime.datetime_CAPI`, which every
//! extension outside the stable ABI uses; its layout is the same in all the versions named in [`KNOWN_MINORS`]. On any other
//! version of Python the classes are called as Python code does, which costs about five times as much.

use std::ffi::{c_int, c_void};

use pyo3::exceptions::PyValueError;
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::IntoPyDict;

use super::cells::Cells;

const KNOWN_MINORS: std::ops::RangeInclusive<u8> = 10..=15;

pub const SECONDS_PER_DAY: i64 = 86_400;
/// The first day that Python knows, 0001-01-01; `LAST_DAY` is the last, 9999-12-31. In days since 1970-01-01.
const FIRST_DAY: i64 = -719_162;
const LAST_DAY: i64 = 2_932_896;

/// The start of the capsule's contents, as far as it is used here.
#[repr(C)]
struct Capsule {
    date_type: *mut c_void,
    datetime_type: *mut c_void,
    time_type: *mut c_void,
    delta_type: *mut c_void,
    tzinfo_type: *mut c_void,
    timezone_utc: *mut c_void,
    date: unsafe extern "C" fn(c_int, c_int, c_int, *mut c_void) -> *mut ffi::PyObject,
    datetime: unsafe extern "C" fn(
        c_int,
        c_int,
        c_int,
        c_int,
        c_int,
        c_int,
        c_int,
        *mut ffi::PyObject,
        *mut c_void,
    ) -> *mut ffi::PyObject,
    time: *mut c_void,
    delta: unsafe extern "C" fn(c_int, c_int, c_int, c_int, *mut c_void) -> *mut ffi::PyObject,
    timezone: *mut c_void,
    datetime_from_timestamp: *mut c_void,
    date_from_timestamp: *mut c_void,
    datetime_with_fold: unsafe extern "C" fn(
        c_int,
        c_int,
        c_int,
        c_int,
        c_int,
        c_int,
        c_int,
        *mut ffi::PyObject,
        c_int,
        *mut c_void,
    ) -> *mut ffi::PyObject,
}

/// Python's classes of dates, and the fast way to make their instances if there is one.
pub struct Calendar {
    pub date: Py<PyAny>,
    pub datetime: Py<PyAny>,
    pub timedelta: Py<PyAny>,
    capsule: Option<&'static Capsule>,
}

// SAFETY: the capsule is read-only and lives as long as the interpreter; its functions are called attached.
unsafe impl Send for Calendar {}
// SAFETY: as above.
unsafe impl Sync for Calendar {}

static CALENDAR: PyOnceLock<Calendar> = PyOnceLock::new();

impl Calendar {
    pub fn get(py: Python<'_>) -> PyResult<&'static Calendar> {
        CALENDAR.get_or_try_init(py, || {
            let module = py.import("datetime")?;
            let (date, datetime, timedelta) =
                (module.getattr("date")?, module.getattr("datetime")?, module.getattr("timedelta")?);
            let capsule = Self::capsule(py, &date, &datetime);
            Ok(Calendar { date: date.unbind(), datetime: datetime.unbind(), timedelta: timedelta.unbind(), capsule })
        })
    }

    fn capsule(py: Python<'_>, date: &Bound<'_, PyAny>, datetime: &Bound<'_, PyAny>) -> Option<&'static Capsule> {
        let version = py.version_info();
        if version.major != 3 || !KNOWN_MINORS.contains(&version.minor) {
            return None;
        }
        // SAFETY: attached. The capsule holds Python's own table, which is never freed; its layout is known for this version.
        let capsule =
            unsafe { ffi::PyCapsule_Import(c"datetime.datetime_CAPI".as_ptr(), 0).cast::<Capsule>().as_ref() };
        let Some(capsule) = capsule else {
            drop(PyErr::take(py));
            return None;
        };
        // Another implementation of Python might have something else under this name.
        let same = capsule.date_type == date.as_ptr().cast() && capsule.datetime_type == datetime.as_ptr().cast();
        same.then_some(capsule)
    }

    pub fn push_date(&self, py: Python<'_>, day: i64, out: &mut Cells) -> PyResult<()> {
        let date = Day::of(day)?;
        match self.capsule {
            // SAFETY: attached; a new reference or null.
            Some(capsule) => unsafe {
                out.push_owned(py, (capsule.date)(date.year, date.month, date.day, capsule.date_type))
            },
            None => {
                out.push(self.date.bind(py).call1((date.year, date.month, date.day))?);
                Ok(())
            }
        }
    }

    /// Makes a `datetime` at these seconds since 1970 on the clock of its zone, or of none.
    pub fn push_datetime(&self, py: Python<'_>, at: Instant<'_>, out: &mut Cells) -> PyResult<()> {
        let date = Day::of(at.seconds.div_euclid(SECONDS_PER_DAY))?;
        let second = at.seconds.rem_euclid(SECONDS_PER_DAY) as c_int;
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        let microsecond = at.microseconds as c_int;
        let Some(capsule) = self.capsule else {
            let class = self.datetime.bind(py);
            let made = class.call1((date.year, date.month, date.day, hour, minute, second, microsecond, at.zone))?;
            out.push(match at.fold {
                false => made,
                true => made.call_method(intern!(py, "replace"), (), Some(&[("fold", 1)].into_py_dict(py)?))?,
            });
            return Ok(());
        };
        // SAFETY: attached, the zone is held by the caller; a new reference or null.
        unsafe {
            let zone = at.zone.map_or(ffi::Py_None(), |zone| zone.as_ptr());
            let Day { year, month, day } = date;
            let class = capsule.datetime_type;
            let made = match at.fold {
                false => (capsule.datetime)(year, month, day, hour, minute, second, microsecond, zone, class),
                true => {
                    (capsule.datetime_with_fold)(year, month, day, hour, minute, second, microsecond, zone, 1, class)
                }
            };
            out.push_owned(py, made)
        }
    }

    pub fn push_timedelta(&self, py: Python<'_>, microseconds: i64, out: &mut Cells) -> PyResult<()> {
        let seconds = microseconds.div_euclid(1_000_000);
        let microseconds = microseconds.rem_euclid(1_000_000) as c_int;
        let (days, seconds) = (seconds.div_euclid(SECONDS_PER_DAY), seconds.rem_euclid(SECONDS_PER_DAY) as c_int);
        let days =
            c_int::try_from(days).map_err(|_| PyValueError::new_err("a time is out of the range of timedelta"))?;
        match self.capsule {
            // SAFETY: attached; a new reference or null.
            Some(capsule) => unsafe {
                out.push_owned(py, (capsule.delta)(days, seconds, microseconds, 1, capsule.delta_type))
            },
            None => {
                out.push(self.timedelta.bind(py).call1((days, seconds, microseconds))?);
                Ok(())
            }
        }
    }
}

/// The moment that a `datetime` shows. `seconds` since 1970 count on the clock of `zone`, not in UTC.
#[derive(Clone, Copy)]
pub struct Instant<'a> {
    pub seconds: i64,
    pub microseconds: u32,
    pub zone: Option<&'a Py<PyAny>>,
    /// True for the second of two passes of the clock over the same hour.
    pub fold: bool,
}

#[derive(Clone, Copy)]
struct Day {
    year: c_int,
    month: c_int,
    day: c_int,
}

impl Day {
    /// Returns the day so many days after 1970-01-01, by the calendar of years that begin in March.
    fn of(days: i64) -> PyResult<Day> {
        if !(FIRST_DAY..=LAST_DAY).contains(&days) {
            return Err(PyValueError::new_err(format!(
                "day {days} is out of Python's range, 0001-01-01 to 9999-12-31"
            )));
        }
        // Days since 0000-03-01 fit 32 bits, where division is cheap.
        let days = (days + 719_468) as u32;
        let era = days / 146_097;
        let day_of_era = days % 146_097;
        let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let shifted_month = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
        let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
        let year = year_of_era + era * 400 + u32::from(month <= 2);
        Ok(Day { year: year as c_int, month: month as c_int, day: day as c_int })
    }
}
