//! The few unsafe calls by which Python objects are made in bulk: numbers, texts, lists and tuples, by
//! functions of the stable ABI alone.
//!
//! A value costs one or two of these calls, so nothing stands between them and the loops over a column: no
//! `Bound`, no check of a type that is known. The rules are written here once: the interpreter is attached (a
//! `Python` token is asked for wherever objects are made), every pointer that is kept is a reference of our
//! own, and each of them is given away exactly once.

use std::ffi::{c_char, c_int};
use std::ptr;

use pyo3::ffi;
use pyo3::prelude::*;

/// Objects in the order of the rows they belong to; each is a reference of our own until it is taken.
pub struct Cells {
    objects: Vec<*mut ffi::PyObject>,
}

impl Cells {
    pub fn with_capacity(capacity: usize) -> Cells {
        Cells { objects: Vec::with_capacity(capacity) }
    }

    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// Takes a new reference as a function of the interpreter gave it back; a null pointer means that an
    /// exception waits.
    fn push_new(&mut self, py: Python<'_>, object: *mut ffi::PyObject) -> PyResult<()> {
        if object.is_null() {
            return Err(PyErr::fetch(py));
        }
        self.objects.push(object);
        Ok(())
    }

    pub fn push(&mut self, object: Bound<'_, PyAny>) {
        self.objects.push(object.into_ptr());
    }

    pub fn push_shared(&mut self, py: Python<'_>, object: &Py<PyAny>) {
        self.objects.push(object.clone_ref(py).into_ptr());
    }

    pub fn push_bool(&mut self, py: Python<'_>, value: bool) {
        self.push(pyo3::types::PyBool::new(py, value).to_owned().into_any());
    }

    pub fn push_signed(&mut self, py: Python<'_>, value: i64) -> PyResult<()> {
        // SAFETY: attached; gives a new reference or null.
        let object = unsafe { ffi::PyLong_FromLongLong(value) };
        self.push_new(py, object)
    }

    pub fn push_unsigned(&mut self, py: Python<'_>, value: u64) -> PyResult<()> {
        // SAFETY: as above.
        let object = unsafe { ffi::PyLong_FromUnsignedLongLong(value) };
        self.push_new(py, object)
    }

    pub fn push_float(&mut self, py: Python<'_>, value: f64) -> PyResult<()> {
        // SAFETY: as above.
        let object = unsafe { ffi::PyFloat_FromDouble(value) };
        self.push_new(py, object)
    }

    /// Makes a `str` of text that is known to be UTF-8.
    pub fn push_str(&mut self, py: Python<'_>, text: &str) -> PyResult<()> {
        // SAFETY: the pointer and the length are those of a slice.
        let object =
            unsafe { ffi::PyUnicode_FromStringAndSize(text.as_ptr().cast::<c_char>(), text.len() as ffi::Py_ssize_t) };
        self.push_new(py, object)
    }

    pub fn push_bytes(&mut self, py: Python<'_>, bytes: &[u8]) -> PyResult<()> {
        // SAFETY: the pointer and the length are those of a slice.
        let object =
            unsafe { ffi::PyBytes_FromStringAndSize(bytes.as_ptr().cast::<c_char>(), bytes.len() as ffi::Py_ssize_t) };
        self.push_new(py, object)
    }

    /// Makes a `str` of text in UTF-8 or `encoding`; bytes that are no text in it are shown in hexadecimal digits.
    pub fn push_text(&mut self, py: Python<'_>, bytes: &[u8], encoding: Option<&std::ffi::CStr>) -> PyResult<()> {
        let start = bytes.as_ptr().cast::<c_char>();
        let length = bytes.len() as ffi::Py_ssize_t;
        // SAFETY: the pointer and the length are those of a slice, `encoding` ends in a zero.
        let object = unsafe {
            match encoding {
                None => ffi::PyUnicode_DecodeUTF8(start, length, ptr::null()),
                Some(encoding) => ffi::PyUnicode_Decode(start, length, encoding.as_ptr(), ptr::null()),
            }
        };
        if !object.is_null() {
            self.objects.push(object);
            return Ok(());
        }
        let error = PyErr::fetch(py);
        if !error.is_instance_of::<pyo3::exceptions::PyUnicodeDecodeError>(py) {
            return Err(error);
        }
        self.push_str(py, &hexadecimal(bytes))
    }

    /// Makes an `int` of a whole number in hexadecimal digits, with a sign if it is negative.
    pub fn push_hexadecimal(&mut self, py: Python<'_>, digits: &std::ffi::CStr) -> PyResult<()> {
        // SAFETY: the text ends in a zero.
        let object = unsafe { ffi::PyLong_FromString(digits.as_ptr(), ptr::null_mut(), 16) };
        self.push_new(py, object)
    }

    /// Takes an object that was made by a C function that gives back a new reference.
    ///
    /// # Safety
    /// `object` is a reference that nobody else will give back, or null with an exception set.
    pub unsafe fn push_owned(&mut self, py: Python<'_>, object: *mut ffi::PyObject) -> PyResult<()> {
        self.push_new(py, object)
    }

    /// Returns all objects in a list.
    pub fn into_list(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        let length = self.objects.len();
        let mut objects = self.take_from(0);
        list_of(py, &mut objects, length)
    }

    /// Returns the objects from position `start` on, one after the other; those not asked for are given back.
    pub fn take_from(mut self, start: usize) -> Taken {
        let objects = std::mem::take(&mut self.objects);
        for object in &objects[..start.min(objects.len())] {
            // SAFETY: a reference of our own, out of reach from here on.
            unsafe { ffi::Py_DecRef(*object) };
        }
        Taken { objects, next: start }
    }

    pub fn object<'py>(&self, py: Python<'py>, row: usize) -> Option<Bound<'py, PyAny>> {
        let object = *self.objects.get(row)?;
        // SAFETY: a reference of our own, a second one is taken here.
        Some(unsafe { Bound::from_borrowed_ptr(py, object) })
    }
}

impl Drop for Cells {
    fn drop(&mut self) {
        for object in &self.objects {
            // SAFETY: references of our own; cells live only while the interpreter is attached.
            unsafe { ffi::Py_DecRef(*object) };
        }
    }
}

/// The objects of [`Cells`] whose references are being given away in order.
pub struct Taken {
    objects: Vec<*mut ffi::PyObject>,
    next: usize,
}

impl Taken {
    fn next(&mut self) -> Option<*mut ffi::PyObject> {
        let object = *self.objects.get(self.next)?;
        self.next += 1;
        Some(object)
    }

    pub fn next_object<'py>(&mut self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        // SAFETY: a reference of our own, given away here.
        self.next().map(|object| unsafe { Bound::from_owned_ptr(py, object) })
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        for object in self.objects.iter().skip(self.next) {
            // SAFETY: references of our own that nobody took.
            unsafe { ffi::Py_DecRef(*object) };
        }
    }
}

/// Makes a list of the next `length` objects.
pub fn list_of<'py>(py: Python<'py>, objects: &mut Taken, length: usize) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: a new list whose places are all filled, each with a reference that the list takes over.
    unsafe {
        let list = Bound::from_owned_ptr_or_err(py, ffi::PyList_New(length as ffi::Py_ssize_t))?;
        for place in 0..length {
            let object = objects.next().ok_or_else(too_few)?;
            ffi::PyList_SetItem(list.as_ptr(), place as ffi::Py_ssize_t, object);
        }
        Ok(list)
    }
}

/// Rows of a result under construction: tuples of equal length that are filled column by column.
///
/// The garbage collector knows nothing of them meanwhile. Tuples of atomic values can't be part of a cycle,
/// so they stay unknown to the collector: a million rows cost it nothing, then or later. The others are shown
/// to it when they are whole.
pub struct Tuples {
    tuples: Vec<*mut ffi::PyObject>,
    places: usize,
}

impl Tuples {
    pub fn new(py: Python<'_>, rows: usize, places: usize) -> PyResult<Tuples> {
        let mut tuples = Tuples { tuples: Vec::with_capacity(rows), places };
        for _ in 0..rows {
            // SAFETY: attached; a new tuple with empty places, which only we know of.
            let tuple = unsafe { ffi::PyTuple_New(places as ffi::Py_ssize_t) };
            if tuple.is_null() {
                return Err(PyErr::fetch(py));
            }
            if places > 0 {
                // SAFETY: a tuple that is not empty is known to the collector from its making on.
                unsafe { ffi::PyObject_GC_UnTrack(tuple.cast()) };
            }
            tuples.tuples.push(tuple);
        }
        Ok(tuples)
    }

    /// Puts an object for each of the tuples into their `place`.
    pub fn fill(&mut self, place: usize, cells: Cells) -> PyResult<()> {
        if cells.len() != self.tuples.len() || place >= self.places {
            return Err(too_few());
        }
        let mut cells = cells.take_from(0);
        for tuple in &self.tuples {
            let Some(object) = cells.next() else { return Err(too_few()) };
            // SAFETY: the tuple has the place and no one else has the tuple; it takes over the reference.
            let result: c_int = unsafe { ffi::PyTuple_SetItem(*tuple, place as ffi::Py_ssize_t, object) };
            debug_assert_eq!(result, 0);
        }
        Ok(())
    }

    /// Gives out the tuples, all of whose places were filled. `atomic` says that nothing in them can refer to
    /// anything else.
    pub fn finish(mut self, atomic: bool, into: &mut Cells) {
        let tuples = std::mem::take(&mut self.tuples);
        if !atomic && self.places > 0 {
            for tuple in &tuples {
                // SAFETY: was taken out of the collector's sight in `new`.
                unsafe { ffi::PyObject_GC_Track(tuple.cast()) };
            }
        }
        into.objects.extend_from_slice(&tuples);
    }
}

impl Drop for Tuples {
    fn drop(&mut self) {
        for tuple in &self.tuples {
            // SAFETY: ours alone; a tuple with empty places may be given back.
            unsafe { ffi::Py_DecRef(*tuple) };
        }
    }
}

/// A class whose instances are made without running its `__init__`, by writing their slots.
///
/// The classes `UUID` and those of `ipaddress` check and convert what a column has already in the right form;
/// this leaves that out.
pub struct SlotClass {
    class: Py<PyAny>,
}

impl SlotClass {
    pub fn new(class: Bound<'_, PyAny>) -> PyResult<SlotClass> {
        if !class.is_instance_of::<pyo3::types::PyType>() {
            return Err(pyo3::exceptions::PyTypeError::new_err("not a class"));
        }
        Ok(SlotClass { class: class.unbind() })
    }

    /// Makes a new instance with every slot empty.
    pub fn instance<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        // SAFETY: `class` is a type (checked in `new`) of the interpreter's own libraries, whose instances are plain objects with slots.
        unsafe {
            let instance = Bound::from_owned_ptr_or_err(py, ffi::PyType_GenericAlloc(self.class.as_ptr().cast(), 0))?;
            // Its slots hold numbers and constants: no cycle can go through it, so the collector need not visit it.
            ffi::PyObject_GC_UnTrack(instance.as_ptr().cast());
            Ok(instance)
        }
    }

    /// Writes a slot, past a `__setattr__` that forbids it.
    pub fn set(
        &self,
        py: Python<'_>,
        instance: &Bound<'_, PyAny>,
        name: &Py<pyo3::types::PyString>,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        // SAFETY: three references that are held during the call.
        let result = unsafe { ffi::PyObject_GenericSetAttr(instance.as_ptr(), name.as_ptr(), value.as_ptr()) };
        if result != 0 {
            return Err(PyErr::fetch(py));
        }
        Ok(())
    }
}

pub fn hexadecimal(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    text
}

/// Makes the error of a column with too few values. The decoder promises columns of equal length; this is
/// raised instead of reading past an end.
pub fn too_few() -> PyErr {
    pyo3::exceptions::PyRuntimeError::new_err("a column of the result has fewer values than the block has rows")
}
