//! `windrow._core`: the compiled part of the Python package. It is private; the package over it is typed and
//! documented.

pub mod append;
pub mod arrow;
pub mod http;
pub mod read;
pub mod write;
pub mod writer;

use pyo3::prelude::*;

#[pymodule]
mod _core {
    use super::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        append::register(module)?;
        arrow::register(module)?;
        http::register(module)?;
        read::register(module)?;
        write::register(module)?;
        writer::register(module)
    }
}
