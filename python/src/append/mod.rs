//! Rows that a program appends, cut into numbered batches and encoded. Sending them is Python's own.

mod cut;
mod cutter;
mod errors;
mod import;

use pyo3::prelude::*;

/// Adds the classes of this module to `_core`.
///
/// # Errors
/// Fails where Python can't add a class.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<cutter::AppendCutter>()?;
    module.add_class::<cut::AppendCut>()?;
    module.add_class::<cut::EncodedBatch>()
}
