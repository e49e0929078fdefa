//! Conversion to strings: text by the insert's encoding, bytes as they are.

use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use windrow_columns::wire::write_varint;

use super::context::Context;
use super::problem::Problem;
use super::value::Value;

#[inline]
pub(super) fn put_sized(bytes: &[u8], out: &mut Vec<u8>) {
    write_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

#[inline]
pub(super) fn put_string<'py>(context: &Context<'py>, value: Value<'py>, out: &mut Vec<u8>) -> Result<(), Problem> {
    // Safety: the slices are copied before any Python code runs.
    unsafe {
        if context.options.encoding.is_none() {
            if let Some(text) = value.utf8() {
                put_sized(text, out);
                return Ok(());
            }
        }
        if let Some(bytes) = value.raw_bytes() {
            put_sized(bytes, out);
            return Ok(());
        }
    }
    put_sized(slow_bytes(context, value)?.as_bytes(), out);
    Ok(())
}

pub(super) fn put_fixed_string<'py>(
    context: &Context<'py>,
    value: Value<'py>,
    width: usize,
    out: &mut Vec<u8>,
) -> Result<(), Problem> {
    let is_text = value.is_str();
    // Safety: the slices are copied before any Python code runs.
    let (utf8, raw) = unsafe { (value.utf8(), value.raw_bytes()) };
    match (utf8, raw) {
        (Some(text), _) if context.options.encoding.is_none() => put_padded(text, is_text, width, out),
        (_, Some(bytes)) => put_padded(bytes, is_text, width, out),
        _ => put_padded(slow_bytes(context, value)?.as_bytes(), is_text, width, out),
    }
}

/// Writes text filled up with zeros. Bytes have to be whole or empty: where some are missing, something was cut.
fn put_padded(bytes: &[u8], is_text: bool, width: usize, out: &mut Vec<u8>) -> Result<(), Problem> {
    let fits = if is_text { bytes.len() <= width } else { bytes.len() == width || bytes.is_empty() };
    if !fits {
        return Err(Problem::said(match is_text {
            true => format!("text of {} bytes in a column of {width}", bytes.len()),
            false => format!("{} bytes in a column of {width}: bytes are not filled up", bytes.len()),
        }));
    }
    out.extend_from_slice(bytes);
    out.resize(out.len() + width - bytes.len(), 0);
    Ok(())
}

/// Returns the bytes of text in the insert's encoding, of text that is no UTF-8 (an error, in Python's
/// words), and of a memoryview.
#[cold]
fn slow_bytes<'py>(context: &Context<'py>, value: Value<'py>) -> Result<Bound<'py, PyBytes>, Problem> {
    let held = value.held();
    if value.is_str() {
        let encoding = context.options.encoding.as_ref().map_or(c"utf-8".as_ptr(), |name| name.as_ptr());
        // Safety: given a str and the name of a codec; what comes back is a new reference or an error.
        let encoded = unsafe {
            let encoded = ffi::PyUnicode_AsEncodedString(held.as_ptr(), encoding, std::ptr::null());
            Bound::from_owned_ptr_or_err(value.py, encoded)
        }?;
        return Ok(encoded.cast_into::<PyBytes>().map_err(PyErr::from)?);
    }
    if held.get_type().name()? == "memoryview" {
        return Ok(held.call_method0(intern!(held.py(), "tobytes"))?.cast_into::<PyBytes>().map_err(PyErr::from)?);
    }
    Err(Problem::said(format!("expected str or bytes, not {}", held.get_type().name()?)))
}
