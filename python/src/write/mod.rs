//! Conversion of Python values for ClickHouse: Native blocks for inserts, RowBinary rows for the writer.
//!
//! A column's type is worked out once, as a tree of [`plan::Node`]s. Values without parts have the same bytes in both
//! formats and are written by the same code (`scalar`, and the files it calls by kind of value); only containers differ:
//! RowBinary nests them row by row (`row`), Native takes them apart into columns (`column`).
//!
//! Each type takes the values that clickhouse-connect takes for it, value by value instead of judged by a column's
//! first one; where clickhouse-connect would store something else than what was given (a name that an Enum doesn't
//! have), the value is refused. Every error is a `windrow.exceptions.DataError` with column, type, row and value.
//!
//! Values are hostile: their methods may raise, change the list they are in, or be slow. `value` has the rule that keeps
//! that sound.

mod address;
mod array;
mod calendar;
mod clock;
mod column;
mod context;
mod decimal;
mod dictionary;
mod encoder;
mod interpreter_yield;
mod json;
mod layout;
mod local_time;
mod moment;
mod number;
mod numbers;
mod parts;
mod plan;
mod problem;
mod python;
mod qbit;
mod row;
mod rows;
mod scalar;
mod source;
mod text;
mod value;
mod variant;

use pyo3::prelude::*;
use pyo3::types::PyBytes;

pub use context::WriteOptions;
pub use problem::ValueError;
pub use row::RowEncoder;

/// Adds the classes of this module to `_core`.
///
/// # Errors
/// Fails where Python can't add a class.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<WriteOptions>()?;
    module.add_class::<encoder::Encoder>()?;
    module.add_class::<RowBinary>()
}

/// An encoder of rows to RowBinary, for programs that send them by themselves.
#[pyclass(frozen, module = "windrow._core")]
struct RowBinary {
    encoder: RowEncoder,
}

#[pymethods]
impl RowBinary {
    #[new]
    #[pyo3(signature = (names, type_names, options=None))]
    fn new(
        py: Python<'_>,
        names: Vec<String>,
        type_names: Vec<String>,
        options: Option<&Bound<'_, WriteOptions>>,
    ) -> PyResult<Self> {
        let options = options.map_or_else(WriteOptions::default, |options| options.get().clone_ref(py));
        Ok(RowBinary { encoder: RowEncoder::new(py, &names, &type_names, options)? })
    }

    /// Returns the bytes of these rows.
    fn encode<'py>(&self, py: Python<'py>, rows: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
        let mut out = Vec::new();
        for (index, row) in rows.try_iter()?.enumerate() {
            self.encoder.encode_row(py, &row?, &mut out).map_err(|error| error.at_row(index).into_pyerr(py))?;
        }
        Ok(PyBytes::new(py, &out))
    }
}
