//! Rows of an insert as they are given: lists and tuples are read in place, other kinds of rows are copied first.

use std::ops::Range;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

use super::parts::{copied, length_of, member};
use super::problem::{Problem, ValueError};
use super::value::Value;

/// Some rows, each of them a list or a tuple when it was looked at, and of the right length.
pub(super) struct Rows<'py> {
    rows: Bound<'py, PyAny>,
    is_list: bool,
    /// The number of the first one in `rows`: 0 if they were not copied.
    offset: usize,
}

impl<'py> Rows<'py> {
    /// Takes rows `range` of `data`, which is a list or a tuple.
    pub(super) fn of(
        data: &Bound<'py, PyAny>,
        range: Range<usize>,
        names: &[Py<PyString>],
    ) -> Result<Self, Box<ValueError>> {
        let py = data.py();
        let is_list = Value::of(data).is_list();
        let whole = |problem| ValueError::new(py, problem);
        if range.end > length_of(data, is_list) {
            return Err(whole(Problem::said("there are fewer rows than were to be inserted")));
        }
        let mut all_plain = true;
        for row in range.clone() {
            // Safety: `data` is what `is_list` says.
            let value = unsafe { member(py, data.as_ptr(), is_list, row) }.map_err(whole)?;
            match length_of_plain(value) {
                Some(length) if length == names.len() => {}
                Some(length) => return Err(wrong_length(py, names.len(), length).at_row(row)),
                None => all_plain = false,
            }
        }
        if all_plain {
            return Ok(Rows { rows: data.clone(), is_list, offset: 0 });
        }
        let copies = PyList::empty(py);
        for row in range.clone() {
            // Safety: as above.
            let value = unsafe { member(py, data.as_ptr(), is_list, row) }.map_err(whole)?;
            let copy = plain_row(value, names).map_err(|problem| ValueError::new(py, problem).at_row(row))?;
            copies.append(copy).map_err(|error| whole(error.into()))?;
        }
        Ok(Rows { rows: copies.into_any(), is_list: true, offset: range.start })
    }

    /// Returns a value of a row, borrowed: valid until Python code runs.
    #[inline]
    pub(super) fn value(&self, row: usize, column: usize) -> Result<Value<'py>, Problem> {
        let py = self.rows.py();
        // Safety: `rows` is what `is_list` says; what is taken out of it is looked at before it is read, for the list may
        // have been changed.
        unsafe {
            let row = member(py, self.rows.as_ptr(), self.is_list, row - self.offset)?;
            let is_list = row.is_list();
            if !is_list && !row.is_tuple() {
                return Err(Problem::said("the row was changed while it was read"));
            }
            member(py, row.as_ptr(), is_list, column)
        }
    }
}

fn wrong_length(py: Python<'_>, columns: usize, length: usize) -> Box<ValueError> {
    ValueError::new(py, Problem::said(format!("the row has {length} values, and {columns} columns are written")))
}

#[inline]
fn length_of_plain(row: Value<'_>) -> Option<usize> {
    // Safety: each function is given what it is for.
    let length = unsafe {
        if row.is_tuple() {
            ffi::PyTuple_Size(row.as_ptr())
        } else if row.is_list() {
            ffi::PyList_Size(row.as_ptr())
        } else {
            return None;
        }
    };
    usize::try_from(length).ok()
}

/// Returns a row as a list or a tuple of as many values as there are columns.
pub(super) fn plain_row<'py>(row: Value<'py>, names: &[Py<PyString>]) -> Result<Bound<'py, PyAny>, Problem> {
    let held = row.held();
    let py = held.py();
    if row.is_list() || row.is_tuple() {
        return Ok(held);
    }
    let list = match held.cast::<PyDict>() {
        Ok(dict) => {
            let list = PyList::empty(py);
            for name in names {
                match dict.get_item(name.bind(py))? {
                    Some(value) => list.append(value)?,
                    None => return Err(Problem::said(format!("the row has no value for column `{}`", name.bind(py)))),
                }
            }
            if dict.len() != names.len() {
                return Err(Problem::said(format!("the row has {} values for {} columns", dict.len(), names.len())));
            }
            list
        }
        Err(_) => copied(&held)?,
    };
    if list.len() != names.len() {
        return Err(Problem::said(format!(
            "the row has {} values, and {} columns are written",
            list.len(),
            names.len()
        )));
    }
    Ok(list.into_any())
}
