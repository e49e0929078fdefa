//! The classes and functions of Python's standard library that values are told apart and converted by, looked up once.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use super::layout::Layout;

pub(super) struct PythonNames {
    pub(super) date: Py<PyAny>,
    pub(super) datetime: Py<PyAny>,
    pub(super) time: Py<PyAny>,
    pub(super) timedelta: Py<PyAny>,
    /// The object `timezone.utc`: most aware values have it, and it is always the same object.
    pub(super) utc: Py<PyAny>,
    pub(super) decimal: Py<PyAny>,
    pub(super) uuid: Py<PyAny>,
    pub(super) ipv4: Py<PyAny>,
    pub(super) ipv6: Py<PyAny>,
    pub(super) ip_address: Py<PyAny>,
    pub(super) json_dumps: Py<PyAny>,
    pub(super) layout: Option<Layout>,
}

impl PythonNames {
    pub(super) fn get(py: Python<'_>) -> PyResult<&'static PythonNames> {
        static NAMES: PyOnceLock<PythonNames> = PyOnceLock::new();
        NAMES.get_or_try_init(py, || PythonNames::look_up(py))
    }

    fn look_up(py: Python<'_>) -> PyResult<Self> {
        let datetime = py.import("datetime")?;
        let ipaddress = py.import("ipaddress")?;
        let of = |name: &str| datetime.getattr(name).map(Bound::unbind);
        let utc = datetime.getattr("timezone")?.getattr(intern!(py, "utc"))?;
        Ok(PythonNames {
            date: of("date")?,
            datetime: of("datetime")?,
            time: of("time")?,
            timedelta: of("timedelta")?,
            layout: Layout::found(&datetime, &utc)?,
            utc: utc.unbind(),
            decimal: py.import("decimal")?.getattr("Decimal")?.unbind(),
            uuid: py.import("uuid")?.getattr("UUID")?.unbind(),
            ipv4: ipaddress.getattr("IPv4Address")?.unbind(),
            ipv6: ipaddress.getattr("IPv6Address")?.unbind(),
            ip_address: ipaddress.getattr("ip_address")?.unbind(),
            json_dumps: py.import("json")?.getattr("dumps")?.unbind(),
        })
    }
}
