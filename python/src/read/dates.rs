//! Readers of `Date`, `DateTime`, `Time` and their wider kinds.

use std::ops::Range;

use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use windrow_columns::DataType;
use windrow_results::Column;

use super::calendar::{Calendar, Instant};
use super::cells::Cells;
use super::options::{ColumnOptions, Format};
use super::reader::fixed;
use super::zones::Zone;

/// The number of days that are kept as objects, by their lowest bits: few for a small result, eleven years
/// without a clash (`DAYS_KEPT`) for a large one.
const DAYS_KEPT_FIRST: usize = 64;
const DAYS_KEPT: usize = 4096;

pub struct DateReader {
    wide: bool,
    numbers: bool,
    days: Vec<Option<(i64, Py<PyAny>)>>,
    misses: usize,
}

impl DateReader {
    pub fn new(scalar: &DataType, options: &ColumnOptions<'_>) -> DateReader {
        let numbers = options.format(scalar.family()) == Format::Int;
        DateReader { wide: matches!(scalar, DataType::Date32), numbers, days: Vec::new(), misses: 0 }
    }

    pub fn read(&mut self, py: Python<'_>, column: &Column, rows: Range<usize>, out: &mut Cells) -> PyResult<()> {
        let calendar = Calendar::get(py)?;
        match self.wide {
            true => fixed::<4>(column, rows)?
                .try_for_each(|day| self.push(py, calendar, i32::from_le_bytes(day).into(), out)),
            false => fixed::<2>(column, rows)?
                .try_for_each(|day| self.push(py, calendar, u16::from_le_bytes(day).into(), out)),
        }
    }

    fn push(&mut self, py: Python<'_>, calendar: &Calendar, day: i64, out: &mut Cells) -> PyResult<()> {
        if self.numbers {
            return out.push_signed(py, day);
        }
        if self.days.is_empty() {
            self.days.resize_with(DAYS_KEPT_FIRST, || None);
        }
        if self.misses > 4 * DAYS_KEPT_FIRST && self.days.len() < DAYS_KEPT {
            self.days.clear();
            self.days.resize_with(DAYS_KEPT, || None);
        }
        let places = self.days.len() as i64;
        let kept = &mut self.days[day.rem_euclid(places) as usize];
        if let Some((kept_day, date)) = kept {
            if *kept_day == day {
                out.push_shared(py, date);
                return Ok(());
            }
        }
        self.misses = self.misses.saturating_add(1);
        calendar.push_date(py, day, out)?;
        *kept = out.object(py, out.len() - 1).map(|date| (day, date.unbind()));
        Ok(())
    }
}

pub struct DateTimeReader {
    /// The precision of `DateTime64`. `None` stands for seconds in 32 bits.
    precision: Option<u8>,
    numbers: bool,
    zone: Option<Zone>,
}

impl DateTimeReader {
    pub fn new(py: Python<'_>, scalar: &DataType, options: &ColumnOptions<'_>) -> PyResult<DateTimeReader> {
        let (precision, zone) = match scalar {
            DataType::DateTime64 { precision, timezone } => (Some(*precision), timezone),
            DataType::DateTime { timezone } => (None, timezone),
            _ => (None, &None),
        };
        let numbers = options.format(scalar.family()) == Format::Int;
        let zone = options.zone(py, zone.as_deref())?.map(|zone| Zone::new(py, zone)).transpose()?;
        Ok(DateTimeReader { precision, numbers, zone })
    }

    pub fn read(&mut self, py: Python<'_>, column: &Column, rows: Range<usize>, out: &mut Cells) -> PyResult<()> {
        let calendar = Calendar::get(py)?;
        let Some(precision) = self.precision else {
            return fixed::<4>(column, rows)?.try_for_each(|seconds| {
                let seconds = u32::from_le_bytes(seconds).into();
                if self.numbers {
                    return out.push_signed(py, seconds);
                }
                self.push(py, calendar, seconds, 0, out)
            });
        };
        let second = power_of_ten(precision);
        fixed::<8>(column, rows)?.try_for_each(|ticks| {
            let ticks = i64::from_le_bytes(ticks);
            if self.numbers {
                return out.push_signed(py, ticks);
            }
            let microseconds = microseconds(ticks.rem_euclid(second), second);
            self.push(py, calendar, ticks.div_euclid(second), microseconds as u32, out)
        })
    }

    fn push(
        &mut self,
        py: Python<'_>,
        calendar: &Calendar,
        seconds: i64,
        microseconds: u32,
        out: &mut Cells,
    ) -> PyResult<()> {
        match &mut self.zone {
            None => calendar.push_datetime(py, Instant { seconds, microseconds, zone: None, fold: false }, out),
            Some(zone) => zone.push(py, seconds, microseconds, out),
        }
    }
}

#[derive(Clone, Copy)]
enum TimeForm {
    Duration,
    OfDay,
    Text,
    Number,
}

pub struct TimeReader {
    /// The precision of `Time64`. `None` stands for seconds in 32 bits.
    precision: Option<u8>,
    form: TimeForm,
}

impl TimeReader {
    pub fn new(scalar: &DataType, options: &ColumnOptions<'_>) -> TimeReader {
        let precision = match scalar {
            DataType::Time64 { precision } => Some(*precision),
            _ => None,
        };
        let form = match options.format(scalar.family()) {
            Format::Int => TimeForm::Number,
            Format::String => TimeForm::Text,
            Format::Time => TimeForm::OfDay,
            _ => TimeForm::Duration,
        };
        TimeReader { precision, form }
    }

    pub fn read(&self, py: Python<'_>, column: &Column, rows: Range<usize>, out: &mut Cells) -> PyResult<()> {
        match self.precision {
            None => {
                fixed::<4>(column, rows)?.try_for_each(|ticks| self.push(py, i32::from_le_bytes(ticks).into(), 0, out))
            }
            Some(precision) => {
                fixed::<8>(column, rows)?.try_for_each(|ticks| self.push(py, i64::from_le_bytes(ticks), precision, out))
            }
        }
    }

    fn push(&self, py: Python<'_>, ticks: i64, precision: u8, out: &mut Cells) -> PyResult<()> {
        let second = power_of_ten(precision);
        let whole = (ticks.unsigned_abs() / second as u64) as i64;
        let rest = (ticks.unsigned_abs() % second as u64) as i64;
        match self.form {
            TimeForm::Number => out.push_signed(py, ticks),
            TimeForm::Duration => {
                let length = whole.saturating_mul(1_000_000).saturating_add(microseconds(rest, second));
                Calendar::get(py)?.push_timedelta(py, if ticks < 0 { -length } else { length }, out)
            }
            TimeForm::OfDay => {
                if ticks < 0 || whole >= super::calendar::SECONDS_PER_DAY {
                    let text = format!("Ticks value {ticks} is outside valid range for datetime.time object.");
                    return Err(PyValueError::new_err(text));
                }
                let class = py.import("datetime")?.getattr(intern!(py, "time"))?;
                let parts = (whole / 3600, whole / 60 % 60, whole % 60, microseconds(rest, second));
                out.push(class.call1(parts)?);
                Ok(())
            }
            TimeForm::Text => {
                let sign = if ticks < 0 { "-" } else { "" };
                let mut text = format!("{sign}{:03}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
                if precision > 0 {
                    text.push_str(&format!(".{rest:0width$}", width = usize::from(precision)));
                }
                out.push_str(py, &text)
            }
        }
    }
}

/// Returns the ticks in a second. ClickHouse has no precision over 9.
fn power_of_ten(precision: u8) -> i64 {
    10_i64.pow(u32::from(precision.min(18)))
}

/// Returns the part of a second that Python keeps, in microseconds; finer parts are cut off.
fn microseconds(ticks: i64, second: i64) -> i64 {
    match second <= 1_000_000 {
        true => ticks * (1_000_000 / second),
        false => ticks / (second / 1_000_000),
    }
}
