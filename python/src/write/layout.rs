//! The places where the objects of Python's `datetime` keep their fields.
//!
//! The stable ABI has no access to the fields but by attributes, seven look-ups for a datetime. The layout
//! has been the same from Python 3.7 on; all the same it isn't promised, so it is tried at the first use with
//! objects whose fields are known, and when anything differs the attributes are asked instead (`None`
//! everywhere here). Sizes are compared before a byte is read.

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::calendar::{CivilDate, ClockTime};

const HEAD: usize = size_of::<ffi::PyObject>();
const HAS_TZINFO: usize = HEAD + size_of::<ffi::Py_hash_t>();
const DATA: usize = HAS_TZINFO + 1;
const DATETIME_FOLD: usize = DATA + 10;
const DATETIME_TZINFO: usize = (DATETIME_FOLD + 1).next_multiple_of(align_of::<*mut ffi::PyObject>());
const DATE_SIZE: usize = (DATA + 4).next_multiple_of(align_of::<ffi::Py_hash_t>());
const DATETIME_SIZE: usize = DATETIME_TZINFO + size_of::<*mut ffi::PyObject>();
const DELTA_DAYS: usize = HAS_TZINFO;
const DELTA_SIZE: usize = (DELTA_DAYS + 12).next_multiple_of(align_of::<ffi::Py_hash_t>());

/// A proof that the layout was tried and found as expected.
pub(super) struct Layout {
    _tried: (),
}

/// The fields of a datetime, before its zone is asked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct WallTime {
    pub(super) date: CivilDate,
    pub(super) clock: ClockTime,
    pub(super) fold: bool,
}

/// A datetime's wall time and the zone object it carries, null for a naive one.
#[derive(Clone, Copy)]
pub(super) struct RawDateTime {
    pub(super) wall: WallTime,
    pub(super) tzinfo: *mut ffi::PyObject,
}

/// The three numbers of a timedelta, as Python normalises them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct RawDelta {
    pub(super) days: i32,
    pub(super) seconds: i32,
    pub(super) micros: i32,
}

impl Layout {
    pub(super) fn found(datetime: &Bound<'_, PyModule>, utc: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        for (name, size) in [("date", DATE_SIZE), ("datetime", DATETIME_SIZE), ("timedelta", DELTA_SIZE)] {
            if datetime.getattr(name)?.getattr("__basicsize__")?.extract::<usize>()? != size {
                return Ok(None);
            }
        }
        let layout = Layout { _tried: () };
        Ok(layout.reads_known_values(datetime, utc)?.then_some(layout))
    }

    fn reads_known_values(&self, datetime: &Bound<'_, PyModule>, utc: &Bound<'_, PyAny>) -> PyResult<bool> {
        let date = CivilDate { year: 2023, month: 11, day: 29 };
        let clock = ClockTime { hour: 23, minute: 58, second: 57, micros: 654_321 };
        let options = PyDict::new(datetime.py());
        options.set_item("fold", 1)?;
        let fields = (2023, 11, 29, 23, 58, 57, 654_321);
        let naive = datetime.getattr("datetime")?.call(fields, Some(&options))?;
        options.set_item("tzinfo", utc)?;
        let aware = datetime.getattr("datetime")?.call(fields, Some(&options))?;
        let plain = datetime.getattr("date")?.call1((2023, 11, 29))?;
        let delta = datetime.getattr("timedelta")?.call1((-3, 4567, 89))?;
        let wall = WallTime { date, clock, fold: true };
        // Safety: the objects are of the classes named, whose sizes were compared with what is read.
        unsafe {
            let (naive, aware) = (self.datetime(naive.as_ptr()), self.datetime(aware.as_ptr()));
            Ok(naive.wall == wall
                && naive.tzinfo.is_null()
                && aware.wall == wall
                && aware.tzinfo == utc.as_ptr()
                && self.date(plain.as_ptr()) == date
                && self.delta(delta.as_ptr()) == RawDelta { days: -3, seconds: 4567, micros: 89 })
        }
    }

    /// Reads the fields of a date.
    ///
    /// # Safety
    /// `object` is a `datetime.date` or of a class derived from it.
    #[inline]
    pub(super) unsafe fn date(&self, object: *mut ffi::PyObject) -> CivilDate {
        // Safety: the caller's promise, and the layout was tried.
        let data: [u8; 4] = unsafe { object.cast::<u8>().add(DATA).cast::<[u8; 4]>().read() };
        CivilDate { year: i32::from(u16::from_be_bytes([data[0], data[1]])), month: data[2], day: data[3] }
    }

    /// Reads the fields of a datetime.
    ///
    /// # Safety
    /// `object` is a `datetime.datetime` or of a class derived from it.
    #[inline]
    pub(super) unsafe fn datetime(&self, object: *mut ffi::PyObject) -> RawDateTime {
        // Safety: the caller's promise, and the layout was tried. A naive datetime ends before the zone, which isn't read.
        unsafe {
            let start = object.cast::<u8>();
            let data: [u8; 6] = start.add(DATA + 4).cast::<[u8; 6]>().read();
            let clock = ClockTime {
                hour: data[0],
                minute: data[1],
                second: data[2],
                micros: u32::from_be_bytes([0, data[3], data[4], data[5]]),
            };
            let wall = WallTime { date: self.date(object), clock, fold: *start.add(DATETIME_FOLD) != 0 };
            let tzinfo = match *start.add(HAS_TZINFO) {
                0 => std::ptr::null_mut(),
                _ => start.add(DATETIME_TZINFO).cast::<*mut ffi::PyObject>().read(),
            };
            RawDateTime { wall, tzinfo }
        }
    }

    /// Reads the fields of a timedelta.
    ///
    /// # Safety
    /// `object` is a `datetime.timedelta` or of a class derived from it.
    #[inline]
    pub(super) unsafe fn delta(&self, object: *mut ffi::PyObject) -> RawDelta {
        // Safety: the caller's promise, and the layout was tried.
        let fields: [i32; 3] = unsafe { object.cast::<u8>().add(DELTA_DAYS).cast::<[i32; 3]>().read() };
        RawDelta { days: fields[0], seconds: fields[1], micros: fields[2] }
    }
}
