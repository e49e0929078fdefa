//! Readers of `UUID`, `IPv4` and `IPv6`.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::Range;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyString;
use windrow_columns::DataType;
use windrow_results::Column;

use super::cells::{hexadecimal, Cells, SlotClass};
use super::options::{ColumnOptions, Format};
use super::reader::fixed;

pub struct UuidReader {
    text: bool,
    class: SlotClass,
    number: Py<PyString>,
    safety: Py<PyString>,
    safety_unknown: Py<PyAny>,
}

impl UuidReader {
    pub fn new(py: Python<'_>, options: &ColumnOptions<'_>) -> PyResult<UuidReader> {
        let module = py.import("uuid")?;
        Ok(UuidReader {
            text: options.format("UUID") == Format::String,
            class: SlotClass::new(module.getattr(intern!(py, "UUID"))?)?,
            number: PyString::intern(py, "int").unbind(),
            safety: PyString::intern(py, "is_safe").unbind(),
            safety_unknown: module.getattr(intern!(py, "SafeUUID"))?.getattr(intern!(py, "unknown"))?.unbind(),
        })
    }

    pub fn read(&self, py: Python<'_>, column: &Column, rows: Range<usize>, out: &mut Cells) -> PyResult<()> {
        for value in fixed::<16>(column, rows)? {
            // Two 64-bit halves, each little-endian, the upper one first.
            let mut bytes = value;
            bytes[..8].reverse();
            bytes[8..].reverse();
            if self.text {
                let digits = hexadecimal(&bytes);
                let parts = (&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]);
                out.push_str(py, &format!("{}-{}-{}-{}-{}", parts.0, parts.1, parts.2, parts.3, parts.4))?;
                continue;
            }
            bytes.reverse();
            let instance = self.class.instance(py)?;
            self.class.set(py, &instance, &self.number, &number(py, &bytes)?)?;
            self.class.set(py, &instance, &self.safety, self.safety_unknown.bind(py))?;
            out.push(instance);
        }
        Ok(())
    }
}

/// Makes an `int` of a little-endian number.
fn number<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    let mut cells = Cells::with_capacity(1);
    super::numbers::push_big(py, bytes, false, &mut cells)?;
    cells.object(py, 0).ok_or_else(super::reader::unfit)
}

/// Returns an address as `inet_ntop` writes it: an address that embeds one of IPv4 shows that in dots.
fn ipv6_text(bytes: [u8; 16]) -> String {
    let address = Ipv6Addr::from(bytes);
    let segments = address.segments();
    if segments[..6] == [0; 6] && segments[6] != 0 {
        return format!("::{}", Ipv4Addr::new(bytes[12], bytes[13], bytes[14], bytes[15]));
    }
    address.to_string()
}

pub struct AddressReader {
    wide: bool,
    format: Format,
    class: SlotClass,
    number: Py<PyString>,
    /// The slot of `IPv6Address` that is None in an address without a scope.
    scope: Option<Py<PyString>>,
}

impl AddressReader {
    pub fn new(py: Python<'_>, scalar: &DataType, options: &ColumnOptions<'_>) -> PyResult<AddressReader> {
        let wide = matches!(scalar, DataType::Ipv6);
        let class = py.import("ipaddress")?.getattr(if wide {
            intern!(py, "IPv6Address")
        } else {
            intern!(py, "IPv4Address")
        })?;
        let has_scope = class.hasattr(intern!(py, "_scope_id"))?;
        Ok(AddressReader {
            wide,
            format: options.format(scalar.family()),
            class: SlotClass::new(class)?,
            number: PyString::intern(py, "_ip").unbind(),
            scope: has_scope.then(|| PyString::intern(py, "_scope_id").unbind()),
        })
    }

    pub fn read(&self, py: Python<'_>, column: &Column, rows: Range<usize>, out: &mut Cells) -> PyResult<()> {
        if self.wide {
            return fixed::<16>(column, rows)?.try_for_each(|value| {
                if self.format == Format::String {
                    return out.push_str(py, &ipv6_text(value));
                }
                let mut bytes = value;
                bytes.reverse();
                self.push(py, &number(py, &bytes)?, out)
            });
        }
        fixed::<4>(column, rows)?.try_for_each(|value| {
            let address = u32::from_le_bytes(value);
            match self.format {
                Format::Int => out.push_unsigned(py, address.into()),
                Format::String => out.push_str(py, &Ipv4Addr::from(address).to_string()),
                _ => self.push(py, address.into_pyobject(py)?.as_any(), out),
            }
        })
    }

    fn push(&self, py: Python<'_>, number: &Bound<'_, PyAny>, out: &mut Cells) -> PyResult<()> {
        let instance = self.class.instance(py)?;
        self.class.set(py, &instance, &self.number, number)?;
        if let Some(scope) = &self.scope {
            self.class.set(py, &instance, scope, py.None().bind(py))?;
        }
        out.push(instance);
        Ok(())
    }
}
