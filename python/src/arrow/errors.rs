//! The error for results that can't be Arrow, as the package's own exception with ClickHouse's code.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use windrow_clickhouse::{ErrorCode, Exception};
use windrow_results::ArrowError;

pub fn refused(py: Python<'_>, error: ArrowError) -> PyErr {
    let made = || {
        let code = match error {
            ArrowError::NotSupported(_) => ErrorCode::NOT_IMPLEMENTED,
            ArrowError::OtherColumns => ErrorCode::SIZES_OF_COLUMNS_DOESNT_MATCH,
        };
        let exception = Exception::new(code, &error.to_string(), "");
        let fields = PyDict::new(py);
        fields.set_item("code", code.number())?;
        fields.set_item("name", code.name())?;
        py.import("windrow.exceptions")?.getattr("DatabaseError")?.call((exception.line,), Some(&fields))
    };
    match made() {
        Ok(error) => PyErr::from_value(error),
        Err(error) => error,
    }
}
