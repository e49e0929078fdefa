//! A Python value, looked at without running any Python code, and held before some is run.
//!
//! Values are read out of lists and tuples as borrowed references. That is sound as long as no Python code runs:
//! code may change the list and so free the value. A function that runs code (`__int__`, `utcoffset`, a codec, a
//! `repr`) therefore works on a [`Value::held`] reference, and the list is asked anew for the next value.

use std::ffi::c_char;

use pyo3::ffi;
use pyo3::prelude::*;

/// A borrowed reference to one value.
#[derive(Clone, Copy)]
pub(super) struct Value<'py> {
    pub(super) py: Python<'py>,
    pointer: *mut ffi::PyObject,
}

impl<'py> Value<'py> {
    /// Takes a borrowed reference.
    ///
    /// # Safety
    /// The pointer is a valid object, and remains so until Python code runs.
    pub(super) unsafe fn borrowed(py: Python<'py>, pointer: *mut ffi::PyObject) -> Self {
        Value { py, pointer }
    }

    /// Borrows a reference. The value stays valid as long as the reference it was made from.
    pub(super) fn of(value: &Bound<'py, PyAny>) -> Self {
        Value { py: value.py(), pointer: value.as_ptr() }
    }

    /// Returns a reference of our own, for calls that may run Python code.
    pub(super) fn held(self) -> Bound<'py, PyAny> {
        // Safety: the pointer is valid, as promised to `borrowed` or by the reference it came from.
        unsafe { Bound::from_borrowed_ptr(self.py, self.pointer) }
    }

    pub(super) fn as_ptr(self) -> *mut ffi::PyObject {
        self.pointer
    }

    #[inline]
    fn is_exactly(self, class: *mut ffi::PyTypeObject) -> bool {
        // Safety: the pointer is a valid object.
        unsafe { ffi::Py_TYPE(self.pointer) == class }
    }

    #[inline]
    pub(super) fn class(self) -> *mut ffi::PyTypeObject {
        // Safety: the pointer is a valid object.
        unsafe { ffi::Py_TYPE(self.pointer) }
    }

    #[inline]
    pub(super) fn is_none(self) -> bool {
        // Safety: None lives as long as the interpreter.
        unsafe { self.pointer == ffi::Py_None() }
    }

    #[inline]
    pub(super) fn is_int(self) -> bool {
        self.is_exactly(&raw mut ffi::PyLong_Type)
    }

    #[inline]
    pub(super) fn is_float(self) -> bool {
        self.is_exactly(&raw mut ffi::PyFloat_Type)
    }

    #[inline]
    pub(super) fn is_str(self) -> bool {
        // Safety: the pointer is a valid object.
        self.is_exactly(&raw mut ffi::PyUnicode_Type) || unsafe { ffi::PyUnicode_Check(self.pointer) != 0 }
    }

    #[inline]
    pub(super) fn is_bytes(self) -> bool {
        // Safety: the pointer is a valid object.
        self.is_exactly(&raw mut ffi::PyBytes_Type) || unsafe { ffi::PyBytes_Check(self.pointer) != 0 }
    }

    pub(super) fn is_bytearray(self) -> bool {
        // Safety: the pointer is a valid object.
        unsafe { ffi::PyByteArray_Check(self.pointer) != 0 }
    }

    #[inline]
    pub(super) fn is_list(self) -> bool {
        // Safety: the pointer is a valid object.
        self.is_exactly(&raw mut ffi::PyList_Type) || unsafe { ffi::PyList_Check(self.pointer) != 0 }
    }

    #[inline]
    pub(super) fn is_tuple(self) -> bool {
        // Safety: the pointer is a valid object.
        self.is_exactly(&raw mut ffi::PyTuple_Type) || unsafe { ffi::PyTuple_Check(self.pointer) != 0 }
    }

    pub(super) fn is_dict(self) -> bool {
        // Safety: the pointer is a valid object.
        unsafe { ffi::PyDict_Check(self.pointer) != 0 }
    }

    /// Returns the number of an `int` (bool and other subclasses too) that 64 bits hold, signed or not.
    /// Returns `None` for anything else.
    #[inline]
    pub(super) fn small_int(self) -> Option<i128> {
        // Safety: the pointer is a valid object, and the functions are given an int.
        unsafe {
            if !self.is_int() && ffi::PyLong_Check(self.pointer) == 0 {
                return None;
            }
            let mut overflow = 0;
            let number = ffi::PyLong_AsLongLongAndOverflow(self.pointer, &mut overflow);
            match overflow {
                0 => Some(number.into()),
                1 => self.unsigned_64(),
                _ => None,
            }
        }
    }

    #[cold]
    unsafe fn unsigned_64(self) -> Option<i128> {
        // Safety: the caller has seen that this is an int.
        unsafe {
            let number = ffi::PyLong_AsUnsignedLongLong(self.pointer);
            if number == u64::MAX && !ffi::PyErr_Occurred().is_null() {
                ffi::PyErr_Clear();
                return None;
            }
            Some(number.into())
        }
    }

    /// Returns the number of a `float`; `None` for anything else.
    #[inline]
    pub(super) fn float(self) -> Option<f64> {
        // Safety: the pointer is a valid object, and the function is given a float.
        unsafe { self.is_float().then(|| ffi::PyFloat_AsDouble(self.pointer)) }
    }

    /// Returns the UTF-8 of a `str`, which the object keeps. Returns `None` for anything else, and for a text
    /// with lone surrogates.
    ///
    /// # Safety
    /// The slice is valid as long as the value is: until Python code runs.
    #[inline]
    pub(super) unsafe fn utf8<'a>(self) -> Option<&'a [u8]> {
        if !self.is_str() {
            return None;
        }
        let mut length: ffi::Py_ssize_t = 0;
        // Safety: the pointer is a str; what comes back are `length` bytes that the object owns.
        unsafe {
            let start: *const c_char = ffi::PyUnicode_AsUTF8AndSize(self.pointer, &mut length);
            if start.is_null() {
                ffi::PyErr_Clear();
                return None;
            }
            Some(std::slice::from_raw_parts(start.cast(), length as usize))
        }
    }

    /// Returns the content of `bytes` or a `bytearray`; `None` for anything else.
    ///
    /// # Safety
    /// The slice is valid as long as the value is and isn't changed: until Python code runs.
    #[inline]
    pub(super) unsafe fn raw_bytes<'a>(self) -> Option<&'a [u8]> {
        // Safety: the functions are given what they are for.
        unsafe {
            let (start, length) = if self.is_bytes() {
                (ffi::PyBytes_AsString(self.pointer), ffi::PyBytes_Size(self.pointer))
            } else if self.is_bytearray() {
                (ffi::PyByteArray_AsString(self.pointer), ffi::PyByteArray_Size(self.pointer))
            } else {
                return None;
            };
            Some(std::slice::from_raw_parts(start.cast(), length as usize))
        }
    }

    /// Returns the name of the value's class, for telling apart classes of packages that aren't imported here.
    pub(super) fn class_name(self) -> String {
        self.held().get_type().name().map_or_else(|_| String::new(), |name| name.to_string())
    }
}
