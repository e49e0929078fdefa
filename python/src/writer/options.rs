//! The options of a writer, as they come from Python.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::Arc;

use windrow_writer::{
    Backoff, Buffer, Destination, DiskBuffer, DiskOptions, DiskSync, MemoryBuffer, Options, RedisAddress, RedisBuffer,
    Retry,
};

use super::buffer::PythonBuffer;
use super::errors;
use super::retry::PythonRetry;

/// Reads the writer's part of the options; names and units are those of `windrow._shared.writer_options`.
pub(super) fn read(options: &Bound<'_, PyDict>) -> PyResult<Options> {
    let default = Options::default();
    Ok(Options {
        batch_rows: number(options, "batch_rows")?.unwrap_or(default.batch_rows),
        batch_bytes: number(options, "batch_bytes")?.unwrap_or(default.batch_bytes),
        flush_interval_ms: number(options, "flush_interval_ms")?.unwrap_or(default.flush_interval_ms),
        max_bytes: number(options, "max_bytes")?.unwrap_or(default.max_bytes),
        max_in_flight: number(options, "max_in_flight")?.unwrap_or(default.max_in_flight),
        ordered: number(options, "ordered")?.unwrap_or(false),
        max_errors: number(options, "max_errors")?.unwrap_or(default.max_errors),
        max_error_bytes: number(options, "max_error_bytes")?.unwrap_or(default.max_error_bytes),
        left_overs_interval_ms: number(options, "left_overs_interval_ms")?.unwrap_or(default.left_overs_interval_ms),
        retry: retry(options)?,
    })
}

fn number<'py, T: for<'a> FromPyObject<'a, 'py, Error = PyErr>>(
    options: &Bound<'py, PyDict>,
    name: &str,
) -> PyResult<Option<T>> {
    match options.get_item(name)? {
        Some(value) if !value.is_none() => value.extract().map(Some),
        _ => Ok(None),
    }
}

fn retry(options: &Bound<'_, PyDict>) -> PyResult<Box<dyn Retry>> {
    if let Some(policy) = options.get_item("retry_policy")?.filter(|policy| !policy.is_none()) {
        return Ok(Box::new(PythonRetry::new(policy.unbind())));
    }
    let default = Backoff::default();
    let mut seed = [0; 8];
    getrandom::fill(&mut seed).map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok(Box::new(Backoff {
        first_ms: number(options, "retry_first_ms")?.unwrap_or(default.first_ms),
        max_ms: number(options, "retry_max_ms")?.unwrap_or(default.max_ms),
        max_attempts: number(options, "retry_max_attempts")?,
        max_elapsed_ms: number(options, "retry_max_elapsed_ms")?,
        seed: u64::from_le_bytes(seed),
    }))
}

/// Opens the buffer: `memory`, `disk:<folder>`, `redis://...`, or an object. Opening may wait for a disk or a
/// network.
pub(super) fn open_buffer(
    py: Python<'_>,
    buffer: &Bound<'_, PyAny>,
    destination: &Destination,
    options: &Options,
    more: &Bound<'_, PyDict>,
) -> PyResult<Arc<dyn Buffer>> {
    let Ok(address) = buffer.extract::<String>() else {
        return Ok(Arc::new(PythonBuffer::new(buffer.clone(), options.batch_rows as u64)?));
    };
    let (batch_rows, batch_bytes) = (options.batch_rows, options.batch_bytes);
    if address == "memory" {
        return Ok(Arc::new(MemoryBuffer::new(batch_rows, batch_bytes)));
    }
    let failed = |error: String| errors::of_class(py, "OperationalError", &error);
    if let Some(folder) = address.strip_prefix("disk:") {
        let disk = disk_options(more, options)?;
        let (folder, destination) = (std::path::PathBuf::from(folder), Arc::new(destination.clone()));
        let opened = py.detach(|| DiskBuffer::open(&folder, destination, disk));
        return opened.map(|buffer| Arc::new(buffer) as Arc<dyn Buffer>).map_err(|error| failed(error.to_string()));
    }
    if address.starts_with("redis://") || address.starts_with("rediss://") {
        let address = RedisAddress::parse(&address).map_err(|error| PyValueError::new_err(error.to_string()))?;
        let destination = destination.clone();
        let opened = py.detach(|| RedisBuffer::open(address, destination, batch_rows, batch_bytes));
        return opened.map(|buffer| Arc::new(buffer) as Arc<dyn Buffer>).map_err(|error| failed(error.to_string()));
    }
    Err(PyValueError::new_err(
        "buffer is \"memory\", \"disk:<folder>\", \"redis://host:port/db?bucket=name\" or an object with the methods of windrow.Buffer",
    ))
}

fn disk_options(more: &Bound<'_, PyDict>, options: &Options) -> PyResult<DiskOptions> {
    let default = DiskOptions::default();
    let sync: Option<String> = number(more, "sync")?;
    let interval_ms = number(more, "sync_interval_ms")?.unwrap_or(1000);
    Ok(DiskOptions {
        batch_rows: options.batch_rows,
        batch_bytes: options.batch_bytes,
        max_disk_bytes: number(more, "max_disk_bytes")?.unwrap_or(default.max_disk_bytes),
        segment_bytes: default.segment_bytes,
        sync: match sync.as_deref() {
            None | Some("never") => DiskSync::Never,
            Some("interval") => DiskSync::Interval(interval_ms),
            Some("always") => DiskSync::Always,
            Some(other) => {
                return Err(PyValueError::new_err(format!(
                    "sync is \"never\", \"interval\" or \"always\", not {other:?}"
                )))
            }
        },
    })
}
