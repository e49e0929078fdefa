//! The clock of a time zone: converts seconds since 1970 in UTC to what the zone's clock shows.
//!
//! A question to Python costs about a microsecond a value. A zone's offset stays the same for months, so it
//! is asked for at both ends of a span of six hours; where both answers are equal they hold for all that lies
//! between. Only the spans in which the clock is changed (or shows an hour for the second time) are asked for
//! value by value.

use std::collections::HashMap;

use pyo3::intern;
use pyo3::prelude::*;

use super::calendar::{Calendar, Instant, SECONDS_PER_DAY};
use super::cells::Cells;

const SPAN_SECONDS: i64 = 6 * 3600;
/// The number of spans whose answer is kept: 11 years of them.
const SPANS_KEPT: usize = 16_384;

#[derive(Clone, Copy, PartialEq, Eq)]
struct Clock {
    offset_seconds: i64,
    fold: bool,
}

/// A zone that values of a column are shown in, with what is known of its clock so far.
pub struct Zone {
    tzinfo: Py<PyAny>,
    /// True for Python's own classes of zones. Others may do in `datetime.fromtimestamp` what they like, and
    /// are always asked.
    own_class: bool,
    spans: HashMap<i64, Option<Clock>>,
    last_span: i64,
    last_clock: Option<Clock>,
}

impl Zone {
    pub fn new(py: Python<'_>, tzinfo: Py<PyAny>) -> PyResult<Zone> {
        let class = tzinfo.bind(py).get_type();
        let module = class.module()?;
        let own_class = match class.name()?.to_str()? {
            "ZoneInfo" => module == "zoneinfo",
            "timezone" => module == "datetime",
            _ => false,
        };
        Ok(Zone { tzinfo, own_class, spans: HashMap::new(), last_span: i64::MIN, last_clock: None })
    }

    pub fn push(&mut self, py: Python<'_>, seconds: i64, microseconds: u32, out: &mut Cells) -> PyResult<()> {
        let calendar = Calendar::get(py)?;
        if let Some(clock) = self.clock(py, calendar, seconds)? {
            let zone = Some(&self.tzinfo);
            let seconds = seconds + clock.offset_seconds;
            return calendar.push_datetime(py, Instant { seconds, microseconds, zone, fold: clock.fold }, out);
        }
        let mut value = self.ask(py, calendar, seconds)?;
        if microseconds != 0 {
            let arguments = pyo3::types::PyDict::new(py);
            arguments.set_item(intern!(py, "microsecond"), microseconds)?;
            value = value.call_method(intern!(py, "replace"), (), Some(&arguments))?;
        }
        out.push(value);
        Ok(())
    }

    fn ask<'py>(&self, py: Python<'py>, calendar: &Calendar, seconds: i64) -> PyResult<Bound<'py, PyAny>> {
        calendar.datetime.bind(py).call_method1(intern!(py, "fromtimestamp"), (seconds, self.tzinfo.bind(py)))
    }

    fn clock(&mut self, py: Python<'_>, calendar: &Calendar, seconds: i64) -> PyResult<Option<Clock>> {
        // Near the ends of Python's calendar an end of the span may lie outside of it.
        if !self.own_class || seconds.unsigned_abs() > (100_000 * SECONDS_PER_DAY) as u64 {
            return Ok(None);
        }
        let span = seconds.div_euclid(SPAN_SECONDS);
        if span == self.last_span {
            return Ok(self.last_clock);
        }
        let clock = match self.spans.get(&span) {
            Some(clock) => *clock,
            None => {
                let first = self.clock_at(py, calendar, span * SPAN_SECONDS)?;
                let last = self.clock_at(py, calendar, (span + 1) * SPAN_SECONDS - 1)?;
                let clock = (first == last).then_some(first);
                if self.spans.len() >= SPANS_KEPT {
                    self.spans.clear();
                }
                self.spans.insert(span, clock);
                clock
            }
        };
        (self.last_span, self.last_clock) = (span, clock);
        Ok(clock)
    }

    fn clock_at(&self, py: Python<'_>, calendar: &Calendar, seconds: i64) -> PyResult<Clock> {
        let value = self.ask(py, calendar, seconds)?;
        let offset = value.call_method0(intern!(py, "utcoffset"))?;
        let days: i64 = offset.getattr(intern!(py, "days"))?.extract()?;
        let rest: i64 = offset.getattr(intern!(py, "seconds"))?.extract()?;
        let fold: u8 = value.getattr(intern!(py, "fold"))?.extract()?;
        Ok(Clock { offset_seconds: days * SECONDS_PER_DAY + rest, fold: fold == 1 })
    }
}
