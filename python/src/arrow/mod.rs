//! Results as Arrow, and Arrow as columns to insert: capsules of Arrow's C data interface, which pyarrow,
//! polars, pandas and DuckDB hand to each other without a Python object per value.

mod capsules;
mod errors;
mod import;
mod stream;

pub use capsules::{block_array, block_schema, block_stream};
pub(crate) use capsules::{ARRAY, SCHEMA, STREAM};
pub use import::{columns_of, ArrowColumns};

use pyo3::prelude::*;

/// Adds the classes of this module to `_core`.
///
/// # Errors
/// Fails where Python can't add a class.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<import::ArrowColumns>()?;
    module.add_class::<stream::ArrowStream>()
}
