//! The reason why a value wasn't taken, and the `windrow.exceptions.DataError` that says so.

use std::fmt::{self, Display, Formatter};

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

/// The number of characters that a value's `repr` is cut to: it may be a whole document.
const MAX_VALUE_CHARS: usize = 100;

/// The failure of one conversion; its place is added by callers that know it. Boxed, so that success costs
/// nothing.
pub(super) enum Problem {
    Reason(Box<str>),
    /// An error that Python raised: in a conversion, or in a method of an object.
    Raised(Box<PyErr>),
}

impl Problem {
    pub(super) fn said(reason: impl Into<String>) -> Self {
        Problem::Reason(reason.into().into_boxed_str())
    }

    #[cold]
    pub(super) fn none() -> Self {
        Problem::said("None in a column that isn't Nullable")
    }
}

impl From<PyErr> for Problem {
    fn from(error: PyErr) -> Self {
        Problem::Raised(Box::new(error))
    }
}

/// A value that doesn't fit its column.
pub struct ValueError {
    /// The column. None when the row as a whole is to blame.
    pub column: Option<String>,
    pub type_name: Option<String>,
    /// The number of the row, counted from 0, within the rows of the call. None for a single row.
    pub row: Option<usize>,
    /// The value's `repr`, cut.
    pub value: Option<String>,
    pub reason: String,
    cause: Option<PyErr>,
}

impl ValueError {
    pub(super) fn new(py: Python<'_>, problem: Problem) -> Box<Self> {
        let (reason, cause) = match problem {
            Problem::Reason(reason) => (reason.into(), None),
            Problem::Raised(error) => (described(py, &error), Some(*error)),
        };
        Box::new(ValueError { column: None, type_name: None, row: None, value: None, reason, cause })
    }

    pub(super) fn of_column(mut self: Box<Self>, column: &str, type_name: &str) -> Box<Self> {
        self.column = Some(column.to_string());
        self.type_name = Some(type_name.to_string());
        self
    }

    pub(super) fn of_value(self: Box<Self>, column: &str, type_name: &str, value: &Bound<'_, PyAny>) -> Box<Self> {
        self.with_value(value).of_column(column, type_name)
    }

    pub(super) fn with_value(mut self: Box<Self>, value: &Bound<'_, PyAny>) -> Box<Self> {
        self.value = Some(shown(value));
        self
    }

    pub fn at_row(mut self: Box<Self>, row: usize) -> Box<Self> {
        self.row = Some(row);
        self
    }

    /// Adds to the row's number, when rows were counted from that of `first`.
    pub(super) fn counted_from(mut self: Box<Self>, first: usize) -> Box<Self> {
        self.row = self.row.map(|row| row + first);
        self
    }

    /// Makes a `windrow.exceptions.DataError` with the same fields as attributes; an error that Python raised
    /// is its `__cause__`.
    pub fn into_pyerr(self: Box<Self>, py: Python<'_>) -> PyErr {
        // An interrupt or an exhausted memory is not the value's fault.
        match &self.cause {
            Some(cause) if !cause.is_instance_of::<pyo3::exceptions::PyException>(py) => return cause.clone_ref(py),
            // It has said all that there is to say.
            Some(cause) if cause.get_type(py).name().is_ok_and(|name| name == "DataError") => {
                return cause.clone_ref(py)
            }
            _ => {}
        }
        match self.data_error(py) {
            Ok(error) => error,
            Err(error) => error,
        }
    }

    fn data_error(self: Box<Self>, py: Python<'_>) -> PyResult<PyErr> {
        static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
        let instance = CLASS.import(py, "windrow.exceptions", "DataError")?.call1((self.to_string(),))?;
        instance.setattr("column", self.column)?;
        instance.setattr("type_name", self.type_name)?;
        instance.setattr("row", self.row)?;
        instance.setattr("value", self.value)?;
        let error = PyErr::from_value(instance);
        error.set_cause(py, self.cause);
        Ok(error)
    }
}

impl Display for ValueError {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match (&self.column, &self.type_name) {
            (Some(column), Some(type_name)) => write!(out, "column `{column}` ({type_name})")?,
            _ => write!(out, "insert")?,
        }
        if let Some(row) = self.row {
            write!(out, ", row {row}")?;
        }
        write!(out, ": {}", self.reason)?;
        match &self.value {
            Some(value) => write!(out, "; the value is {value}"),
            None => Ok(()),
        }
    }
}

fn described(py: Python<'_>, error: &PyErr) -> String {
    let class = error.get_type(py).name().map_or_else(|_| "an error".to_string(), |name| name.to_string());
    match error.value(py).str() {
        Ok(text) => cut(&format!("{class}: {}", text.to_string_lossy()), 2 * MAX_VALUE_CHARS),
        Err(_) => class,
    }
}

/// Returns the value's `repr`, cut. `repr` may run the value's own code, and that may fail.
pub(super) fn shown(value: &Bound<'_, PyAny>) -> String {
    match value.repr() {
        Ok(text) => cut(&text.to_string_lossy(), MAX_VALUE_CHARS),
        Err(_) => {
            let class = value.get_type().name().map_or_else(|_| "?".to_string(), |name| name.to_string());
            format!("<{class} whose repr fails>")
        }
    }
}

fn cut(text: &str, max_chars: usize) -> String {
    match text.char_indices().nth(max_chars) {
        Some(_) => text.chars().take(max_chars - 3).chain("...".chars()).collect(),
        None => text.to_string(),
    }
}
