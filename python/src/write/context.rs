//! The state that all conversions of a call share: the options of the insert, and Python's own classes.

use std::cell::OnceCell;
use std::ffi::CString;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::python::PythonNames;

/// Options for values that can be taken in more than one way.
#[pyclass(frozen, module = "windrow._core")]
pub struct WriteOptions {
    /// The codec of `str` in String and FixedString columns; None is UTF-8, which needs no codec.
    pub(super) encoding: Option<CString>,
    pub(super) naive: NaiveMode,
}

/// The meaning of a datetime without a zone.
pub(super) enum NaiveMode {
    /// Local time of this machine.
    Local,
    /// Local time of the column's zone, or else of this one, the server's.
    Server(Py<PyAny>),
}

#[pymethods]
impl WriteOptions {
    /// Makes options. With `server_tz`, a `tzinfo`, datetimes without a zone are taken in the column's zone
    /// or else in this one, and without it in the machine's.
    #[new]
    #[pyo3(signature = (*, encoding=None, server_tz=None))]
    fn new(encoding: Option<&str>, server_tz: Option<Py<PyAny>>) -> PyResult<Self> {
        let encoding = match encoding.map(|name| name.to_ascii_lowercase().replace(['-', '_'], "")) {
            None => None,
            Some(name) if name == "utf8" => None,
            Some(name) => Some(CString::new(name)?),
        };
        Ok(WriteOptions { encoding, naive: server_tz.map_or(NaiveMode::Local, NaiveMode::Server) })
    }
}

impl WriteOptions {
    pub fn clone_ref(&self, py: Python<'_>) -> Self {
        let naive = match &self.naive {
            NaiveMode::Local => NaiveMode::Local,
            NaiveMode::Server(server_tz) => NaiveMode::Server(server_tz.clone_ref(py)),
        };
        WriteOptions { encoding: self.encoding.clone(), naive }
    }
}

impl Default for WriteOptions {
    fn default() -> Self {
        WriteOptions { encoding: None, naive: NaiveMode::Local }
    }
}

pub(super) struct Context<'py> {
    pub(super) py: Python<'py>,
    pub(super) names: &'static PythonNames,
    pub(super) options: &'py WriteOptions,
    /// The cache of `zoneinfo.ZoneInfo` objects by name, for naive datetimes.
    pub(super) zones: OnceCell<Bound<'py, PyDict>>,
}

impl<'py> Context<'py> {
    pub(super) fn new(py: Python<'py>, options: &'py WriteOptions) -> PyResult<Self> {
        Ok(Context { py, names: PythonNames::get(py)?, options, zones: OnceCell::new() })
    }
}

impl<'py> Context<'py> {
    /// Returns the column's own zone, or else the server's.
    pub(super) fn zone(&self, name: Option<&str>, server_tz: &Py<PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let Some(name) = name else {
            return Ok(server_tz.bind(self.py).clone());
        };
        let zones = self.zones.get_or_init(|| PyDict::new(self.py));
        if let Some(zone) = zones.get_item(name)? {
            return Ok(zone);
        }
        let resolve = self.py.import("windrow._shared.timezones")?.getattr("resolve_zone")?;
        let zone = resolve.call1((name,))?;
        zones.set_item(name, &zone)?;
        Ok(zone)
    }

    /// Returns `datetime.replace(tzinfo=zone)`.
    pub(super) fn replaced_zone(
        &self,
        datetime: &Bound<'py, PyAny>,
        zone: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let options = PyDict::new(self.py);
        options.set_item(intern!(self.py, "tzinfo"), zone)?;
        datetime.call_method(intern!(self.py, "replace"), (), Some(&options))
    }
}
