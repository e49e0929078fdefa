//! What ClickHouse refuses as Arrow, as the package's own exception with ClickHouse's code.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use windrow_columns::results::ArrowError;

pub fn refused(py: Python<'_>, error: ArrowError) -> PyErr {
    let made = || {
        let code = PyDict::new(py);
        code.set_item("code", error.code)?;
        code.set_item("name", error.name)?;
        let text = format!("Code: {}. DB::Exception: {}. ({})", error.code, error.message, error.name);
        py.import("windrow.exceptions")?.getattr("DatabaseError")?.call((text,), Some(&code))
    };
    match made() {
        Ok(error) => PyErr::from_value(error),
        Err(error) => error,
    }
}
