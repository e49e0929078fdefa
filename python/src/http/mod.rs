//! The part of HTTP/1.1 that doesn't concern the network: answers are parsed as their bytes come, and their
//! bodies wait in a bounded queue until somebody decodes them.

mod body;
mod compressor;
mod exception_tail;
mod exchange;
mod queue;

pub use body::Body;
pub use queue::{BodyError, BodyQueue, Taken};

use pyo3::prelude::*;

/// Adds the classes and exceptions of this module to `_core`.
///
/// # Errors
/// Fails where Python can't add one of them.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("ProtocolError", py.get_type::<exchange::ProtocolError>())?;
    module.add("BodyError", py.get_type::<queue::raised::BodyError>())?;
    module.add_class::<Body>()?;
    module.add_class::<exchange::Exchange>()?;
    module.add_class::<compressor::Compressor>()
}
