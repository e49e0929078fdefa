//! Errors of data that can't be appended, as the package's own exception.

use pyo3::prelude::*;
use windrow_appender::SourceError;

pub(super) fn data_error(py: Python<'_>, text: &str) -> PyErr {
    let made = py.import("windrow.exceptions").and_then(|module| module.getattr("DataError")?.call1((text,)));
    match made {
        Ok(error) => PyErr::from_value(error),
        Err(error) => error,
    }
}

pub(super) fn source_error(py: Python<'_>, error: &SourceError) -> PyErr {
    data_error(py, &error.to_string())
}
