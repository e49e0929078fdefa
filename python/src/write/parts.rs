//! Access to the members of containers: rows, arrays, tuples, maps. Lengths and members are asked for again
//! and again, because a list may be changed by the very values that are read from it.

use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use super::plan::TupleNode;
use super::problem::Problem;
use super::value::Value;

/// A list or tuple, held.
pub(super) struct Items<'py> {
    sequence: Bound<'py, PyAny>,
    is_list: bool,
    length: usize,
}

impl<'py> Items<'py> {
    /// Takes the members of anything with a length that can be iterated.
    pub(super) fn of(value: Value<'py>) -> Result<Self, Problem> {
        let (is_list, is_tuple) = (value.is_list(), value.is_tuple());
        let sequence = value.held();
        if is_list || is_tuple {
            return Ok(Items { length: length_of(&sequence, is_list), sequence, is_list });
        }
        let list = copied(&sequence)?;
        Ok(Items { length: list.len(), sequence: list.into_any(), is_list: true })
    }

    fn of_list(list: Bound<'py, PyList>) -> Self {
        Items { length: list.len(), sequence: list.into_any(), is_list: true }
    }

    pub(super) fn len(&self) -> usize {
        self.length
    }

    /// Returns a member, borrowed: valid until Python code runs.
    #[inline]
    pub(super) fn get(&self, index: usize) -> Result<Value<'py>, Problem> {
        // Safety: the sequence is a list or a tuple, as remembered, and the functions check the index.
        unsafe { member(self.sequence.py(), self.sequence.as_ptr(), self.is_list, index) }
    }
}

/// Returns a member of a list or tuple, borrowed.
///
/// # Safety
/// `sequence` is a list if `is_list` says so, else a tuple.
#[inline]
pub(super) unsafe fn member<'py>(
    py: Python<'py>,
    sequence: *mut ffi::PyObject,
    is_list: bool,
    index: usize,
) -> Result<Value<'py>, Problem> {
    // Safety: the caller's promise; an index that is too large is answered with null and an IndexError.
    unsafe {
        let index = index as ffi::Py_ssize_t;
        let pointer =
            if is_list { ffi::PyList_GetItem(sequence, index) } else { ffi::PyTuple_GetItem(sequence, index) };
        if pointer.is_null() {
            return Err(shrunk());
        }
        Ok(Value::borrowed(py, pointer))
    }
}

#[cold]
fn shrunk() -> Problem {
    // Safety: it is only the error of the call before.
    unsafe { ffi::PyErr_Clear() };
    Problem::said("the list became shorter while it was read")
}

pub(super) fn length_of(sequence: &Bound<'_, PyAny>, is_list: bool) -> usize {
    // Safety: the sequence is a list if said so, else a tuple; a negative length is an error that can't occur then.
    let length = unsafe {
        if is_list {
            ffi::PyList_Size(sequence.as_ptr())
        } else {
            ffi::PyTuple_Size(sequence.as_ptr())
        }
    };
    usize::try_from(length).unwrap_or(0)
}

/// Copies as many members as the value says to have: an iterator that doesn't end is not followed.
pub(super) fn copied<'py>(value: &Bound<'py, PyAny>) -> Result<Bound<'py, PyList>, Problem> {
    let length = value.len()?;
    if value.get_type().name()? == "ndarray" && !holds_moments(value)? {
        let list = value.call_method0(intern!(value.py(), "tolist"))?;
        return Ok(list.cast_into::<PyList>().map_err(PyErr::from)?);
    }
    let list = PyList::empty(value.py());
    for item in value.try_iter()? {
        if list.len() == length {
            return Err(Problem::said("it has more members than its length"));
        }
        list.append(item?)?;
    }
    if list.len() != length {
        return Err(Problem::said("it has fewer members than its length"));
    }
    Ok(list)
}

/// Says whether an array holds moments or durations. NumPy's own lists of them are of plain numbers for some
/// units.
fn holds_moments(array: &Bound<'_, PyAny>) -> PyResult<bool> {
    let kind = array.getattr(intern!(array.py(), "dtype"))?.getattr(intern!(array.py(), "kind"))?;
    let kind: String = kind.extract()?;
    Ok(kind == "M" || kind == "m")
}

/// Keys and values of a map, as many of each.
pub(super) struct Pairs<'py> {
    pub(super) keys: Items<'py>,
    pub(super) values: Items<'py>,
}

impl<'py> Pairs<'py> {
    pub(super) fn of(value: Value<'py>) -> Result<Self, Problem> {
        let held = value.held();
        let py = held.py();
        if let Ok(dict) = held.cast_exact::<PyDict>() {
            // Copies of the same moment: what the values do later doesn't matter.
            return Ok(Pairs { keys: Items::of_list(dict.keys()), values: Items::of_list(dict.values()) });
        }
        let Ok(items) = held.getattr(intern!(py, "items")) else {
            return Err(Problem::said(format!("a Map needs a dict, not a {}", held.get_type().name()?)));
        };
        let (keys, values) = (PyList::empty(py), PyList::empty(py));
        let length = held.len()?;
        for item in items.call0()?.try_iter()? {
            let pair = item?.cast_into::<PyTuple>().map_err(PyErr::from)?;
            if pair.len() != 2 || keys.len() == length {
                return Err(Problem::said("items() gave something else than as many pairs as it has"));
            }
            keys.append(pair.get_item(0)?)?;
            values.append(pair.get_item(1)?)?;
        }
        Ok(Pairs { keys: Items::of_list(keys), values: Items::of_list(values) })
    }
}

impl TupleNode {
    /// Returns the elements in the type's order: of a sequence of that length, or of a dict by their names
    /// (None for those that it lacks).
    pub(super) fn elements_of<'py>(&self, value: Value<'py>) -> Result<Items<'py>, Problem> {
        if value.is_dict() {
            let Some(names) = &self.names else {
                return Err(Problem::said("a dict needs a Tuple whose elements have names"));
            };
            let dict = value.held().cast_into::<PyDict>().map_err(PyErr::from)?;
            let list = PyList::empty(dict.py());
            for name in names {
                list.append(dict.get_item(name.bind(dict.py()))?)?;
            }
            return Ok(Items::of_list(list));
        }
        let items = Items::of(value)?;
        if items.len() != self.elements.len() {
            return Err(Problem::said(format!("{} elements, not {}", self.elements.len(), items.len())));
        }
        Ok(items)
    }
}
