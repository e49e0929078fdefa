//! Documents as JSON text: a str as it is, anything else by Python's own writer.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::context::Context;
use super::problem::Problem;
use super::text::{put_sized, put_string};
use super::value::Value;

pub(super) fn put_json<'py>(context: &Context<'py>, value: Value<'py>, out: &mut Vec<u8>) -> Result<(), Problem> {
    if value.is_none() {
        put_sized(b"null", out);
        return Ok(());
    }
    if value.is_str() {
        return put_string(context, value, out);
    }
    let py = context.py;
    let options = PyDict::new(py);
    options.set_item(intern!(py, "separators"), (",", ":"))?;
    let text = context.names.json_dumps.bind(py).call((value.held(),), Some(&options))?;
    put_string(context, Value::of(&text), out)
}
