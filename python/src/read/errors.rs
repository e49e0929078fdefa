//! Errors of the package's own classes.

use pyo3::prelude::*;

pub fn not_supported(py: Python<'_>, text: String) -> PyErr {
    of_class(py, "NotSupportedError", text)
}

fn of_class(py: Python<'_>, class: &str, text: String) -> PyErr {
    let made = py.import("windrow.exceptions").and_then(|module| module.getattr(class)?.call1((text,)));
    match made {
        Ok(error) => PyErr::from_value(error),
        Err(error) => error,
    }
}

pub fn stream_failure(py: Python<'_>, text: String) -> PyErr {
    of_class(py, "StreamFailureError", text)
}
