//! A NumPy array of numbers, read in place by `__array_interface__`.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::calendar::TimeUnit;
use super::problem::Problem;

/// The type of an array's elements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Element {
    Int8,
    Int16,
    Int32,
    Int64,
    UInt8,
    UInt16,
    UInt32,
    UInt64,
    Float32,
    Float64,
    Bool,
    /// Counts of a unit since 1970.
    Moment(TimeUnit),
    /// Counts of a unit.
    Duration(TimeUnit),
}

/// The value of one element.
#[derive(Clone, Copy)]
pub(super) enum Number {
    Int(i128),
    Float(f64),
}

/// An array of one dimension, with any stride; keeps NumPy's array alive.
pub(super) struct NumberArray<'py> {
    _owner: Bound<'py, PyAny>,
    start: *const u8,
    stride_bytes: isize,
    pub(super) length: usize,
    pub(super) element: Element,
}

impl<'py> NumberArray<'py> {
    /// Opens an array. Returns `None` for an array of something else, or of more than one dimension.
    pub(super) fn of(array: &Bound<'py, PyAny>) -> Result<Option<Self>, Problem> {
        let py = array.py();
        let Ok(interface) = array.getattr(intern!(py, "__array_interface__")) else { return Ok(None) };
        let interface = interface.cast_into::<PyDict>().map_err(PyErr::from)?;
        let Some(parts) = Parts::of(&interface)? else { return Ok(None) };
        let Some(element) = parts.element() else { return Ok(None) };
        Ok(Some(NumberArray {
            // The interface's dict holds what the array itself may not: a buffer made for it.
            _owner: (array.clone(), interface).into_pyobject(py)?.into_any(),
            start: parts.address as *const u8,
            stride_bytes: parts.stride_bytes,
            length: parts.length,
            element,
        }))
    }

    /// Returns the elements' own bytes, if they lie one behind the other.
    pub(super) fn contiguous(&self, first: usize, count: usize) -> Option<&[u8]> {
        let width = self.element.bytes();
        if self.stride_bytes != width as isize || first.checked_add(count)? > self.length {
            return None;
        }
        // Safety: the array says that `length` elements of this width lie from `start` on, and it is kept alive.
        Some(unsafe { std::slice::from_raw_parts(self.start.add(first * width), count * width) })
    }

    #[inline]
    pub(super) fn get(&self, index: usize) -> Number {
        assert!(index < self.length, "an index inside of the array");
        // Safety: the index is inside, and the element has as many bytes as its kind says.
        unsafe {
            let at = self.start.offset(index as isize * self.stride_bytes);
            match self.element {
                Element::Int8 => Number::Int(at.cast::<i8>().read().into()),
                Element::Int16 => Number::Int(at.cast::<i16>().read_unaligned().into()),
                Element::Int32 => Number::Int(at.cast::<i32>().read_unaligned().into()),
                Element::Int64 | Element::Moment(_) | Element::Duration(_) => {
                    Number::Int(at.cast::<i64>().read_unaligned().into())
                }
                Element::UInt8 | Element::Bool => Number::Int(at.read().into()),
                Element::UInt16 => Number::Int(at.cast::<u16>().read_unaligned().into()),
                Element::UInt32 => Number::Int(at.cast::<u32>().read_unaligned().into()),
                Element::UInt64 => Number::Int(at.cast::<u64>().read_unaligned().into()),
                Element::Float32 => Number::Float(at.cast::<f32>().read_unaligned().into()),
                Element::Float64 => Number::Float(at.cast::<f64>().read_unaligned()),
            }
        }
    }
}

impl Element {
    fn bytes(self) -> usize {
        match self {
            Element::Int8 | Element::UInt8 | Element::Bool => 1,
            Element::Int16 | Element::UInt16 => 2,
            Element::Int32 | Element::UInt32 | Element::Float32 => 4,
            Element::Int64 | Element::UInt64 | Element::Float64 | Element::Moment(_) | Element::Duration(_) => 8,
        }
    }
}

struct Parts {
    address: usize,
    stride_bytes: isize,
    length: usize,
    type_text: String,
}

impl Parts {
    fn of(interface: &Bound<'_, PyDict>) -> Result<Option<Self>, Problem> {
        let wanted = |name: &str| {
            interface.get_item(name)?.ok_or_else(|| Problem::said("an array without a whole __array_interface__"))
        };
        let shape: Vec<usize> = wanted("shape")?.extract()?;
        let type_text: String = wanted("typestr")?.extract()?;
        let (address, _read_only): (usize, bool) = wanted("data")?.extract()?;
        let [length] = shape[..] else { return Ok(None) };
        let strides = match interface.get_item(intern!(interface.py(), "strides"))? {
            Some(strides) => strides.extract::<Option<Vec<isize>>>()?,
            None => None,
        };
        let stride_bytes = match strides.as_deref() {
            Some([stride]) => *stride,
            Some(_) => return Ok(None),
            None => type_text.get(2..).and_then(|width| width.split('[').next()?.parse().ok()).unwrap_or(0),
        };
        Ok(Some(Parts { address, stride_bytes, length, type_text }))
    }

    /// Reads texts like `<i8`, `|b1`, `<M8[ms]`. Returns `None` for other byte orders as well.
    fn element(&self) -> Option<Element> {
        let (order, kind) = (self.type_text.get(..1)?, self.type_text.get(1..)?);
        if !matches!(order, "<" | "|" | "=") || cfg!(target_endian = "big") {
            return None;
        }
        Some(match kind {
            "i1" => Element::Int8,
            "i2" => Element::Int16,
            "i4" => Element::Int32,
            "i8" => Element::Int64,
            "u1" => Element::UInt8,
            "u2" => Element::UInt16,
            "u4" => Element::UInt32,
            "u8" => Element::UInt64,
            "f4" => Element::Float32,
            "f8" => Element::Float64,
            "b1" => Element::Bool,
            _ if kind.starts_with("M8") => Element::Moment(TimeUnit::of_dtype(kind)?),
            _ if kind.starts_with("m8") => Element::Duration(TimeUnit::of_dtype(kind)?),
            _ => return None,
        })
    }
}
