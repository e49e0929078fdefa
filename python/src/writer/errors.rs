//! Errors of a writer as Python sees them.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use windrow_clickhouse::ErrorCode;
use windrow_writer::{Reason, WriteError};

/// Rows that were not stored, which a `windrow.WriteError` is made from.
#[pyclass(frozen, module = "windrow._core")]
pub(super) struct FailedRows {
    error: Arc<WriteError>,
}

impl FailedRows {
    pub(super) fn new(error: Arc<WriteError>) -> FailedRows {
        FailedRows { error }
    }
}

#[pymethods]
impl FailedRows {
    #[getter]
    fn batch_id(&self) -> String {
        self.error.batch_id.to_string()
    }

    /// Returns ClickHouse's code, if ClickHouse refused the rows.
    #[getter]
    fn code(&self) -> Option<i32> {
        self.error.code.map(ErrorCode::number)
    }

    #[getter]
    fn message(&self) -> String {
        self.error.to_string()
    }

    /// Returns the reason: `values`, `refused`, `maybe_stored`, `gave_up`, `closed` or `lost`.
    #[getter]
    fn reason(&self) -> &'static str {
        match self.error.reason {
            Reason::Values => "values",
            Reason::Refused => "refused",
            Reason::MaybeStored => "maybe_stored",
            Reason::GaveUp => "gave_up",
            Reason::Closed => "closed",
            Reason::Lost => "lost",
        }
    }

    #[getter]
    fn row_count(&self) -> usize {
        self.error.rows.count()
    }

    #[getter]
    fn database(&self) -> String {
        self.error.destination.database.clone()
    }

    #[getter]
    fn table(&self) -> String {
        self.error.destination.table.clone()
    }

    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.error.destination.columns.clone()
    }

    #[getter]
    fn type_names(&self) -> Vec<String> {
        self.error.destination.types.clone()
    }

    /// Returns each row in FORMAT RowBinary.
    fn encoded_rows<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let rows = PyList::empty(py);
        for row in self.error.rows.each_row() {
            rows.append(PyBytes::new(py, row))?;
        }
        Ok(rows)
    }

    /// Returns the rows as one Native block; None when a type of theirs is not read here.
    fn native<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        let block = py.detach(|| super::decode::native_block(&self.error.destination, self.error.rows.rows()));
        block.map(|block| PyBytes::new(py, &block))
    }
}

/// Makes a `windrow.WriteError` with these rows.
pub(super) fn of_rows(py: Python<'_>, error: &Arc<WriteError>) -> PyErr {
    let made = || -> PyResult<PyErr> {
        let class = py.import("windrow._shared.write_errors")?.getattr("WriteError")?;
        let rows = Py::new(py, FailedRows::new(error.clone()))?;
        Ok(PyErr::from_value(class.call1((rows,))?))
    };
    made().unwrap_or_else(|error| error)
}

/// Makes an exception of `windrow.exceptions`.
pub(super) fn of_class(py: Python<'_>, class: &str, message: &str) -> PyErr {
    let made = || -> PyResult<PyErr> {
        let class = py.import("windrow.exceptions")?.getattr(class)?;
        Ok(PyErr::from_value(class.call1((message,))?))
    };
    made().unwrap_or_else(|error| error)
}
