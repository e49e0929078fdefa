//! Results as Python values: a column of ClickHouse's Native format becomes objects, rows, or memory that
//! NumPy and Arrow look into.

mod block;
mod calendar;
mod cells;
mod containers;
mod dates;
mod decimals;
mod decoder;
mod errors;
mod names;
mod network;
mod numbers;
mod options;
mod pace;
mod reader;
mod rows;
mod text;
mod variants;
mod wrappers;
mod zones;

pub use block::Block;
pub(crate) use pace::Pace;

use pyo3::prelude::*;

/// Adds the classes and functions of this module to `_core`.
///
/// # Errors
/// Fails where Python can't add one of them.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<options::ReadOptions>()?;
    module.add_class::<decoder::Decoder>()?;
    module.add_class::<block::Block>()?;
    module.add_class::<block::Parts>()?;
    module.add_class::<block::Buffer>()?;
    module.add_function(wrap_pyfunction!(rows::join_lists, module)?)
}
