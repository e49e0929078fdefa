//! Conversion of blocks to rows and to columns of Python values, in slices of about half a millisecond.

use std::ops::Range;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyList;
use windrow_results::{Block, Column, Header};

use super::cells::{Cells, Tuples};
use super::options::ReadOptions;
use super::pace::Pace;
use super::reader::{unfit, Reader, Reading};

/// The number of values that are made between two looks at the clock. A value costs some 10 to 300 ns.
const VALUES_AT_ONCE: usize = 4096;
/// The number of rows whose tuples, and values of one column, stay in the processor's nearest cache while
/// they are filled.
const ROWS_AT_ONCE: usize = 512;
/// The number of references that are copied from list to list between two looks at the clock.
const OBJECTS_MOVED_AT_ONCE: usize = 16_384;

/// The readers of all columns of a result.
pub struct Readers {
    readers: Vec<Reader>,
}

impl Readers {
    pub fn new(py: Python<'_>, header: &Header, options: &ReadOptions) -> PyResult<Readers> {
        let columns = header.names.iter().zip(&header.types);
        let readers = columns.map(|(name, data_type)| Reader::new(py, data_type, &options.column(name)));
        Ok(Readers { readers: readers.collect::<PyResult<Vec<_>>>()? })
    }

    fn start(&mut self, block: &Block) -> PyResult<()> {
        if block.columns.len() != self.readers.len() {
            return Err(unfit());
        }
        self.readers.iter_mut().for_each(Reader::start_block);
        Ok(())
    }

    /// Returns a list of the rows in a range, each a tuple.
    pub fn rows<'py>(
        &mut self,
        py: Python<'py>,
        block: &Block,
        rows: Range<usize>,
        options: &ReadOptions,
        pace: &mut Pace,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.start(block)?;
        let atomic = self.readers.iter().all(Reader::is_atomic);
        let mut all = Cells::with_capacity(rows.len());
        let mut start = rows.start;
        while start < rows.end {
            let end = rows.end.min(start + rows_at_once(&block.columns, block.rows));
            let mut tuples = Tuples::new(py, end - start, self.readers.len())?;
            for (place, reader) in self.readers.iter_mut().enumerate() {
                let options = options.column(&block.header.names[place]);
                let mut cells = Cells::with_capacity(end - start);
                reader.read(&mut Reading { py, options, pace }, &block.columns[place], start..end, &mut cells)?;
                tuples.fill(place, cells)?;
            }
            tuples.finish(atomic, &mut all);
            pace.breathe(py)?;
            start = end;
        }
        all.into_list(py)
    }

    /// Returns a list of the columns, each a list of the values in a range of rows.
    pub fn columns<'py>(
        &mut self,
        py: Python<'py>,
        block: &Block,
        rows: Range<usize>,
        options: &ReadOptions,
        pace: &mut Pace,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.start(block)?;
        let mut columns = Cells::with_capacity(self.readers.len());
        for (place, reader) in self.readers.iter_mut().enumerate() {
            let options = options.column(&block.header.names[place]);
            let mut reading = Reading { py, options, pace };
            columns.push(column_list(reader, &mut reading, &block.columns[place], rows.clone())?);
        }
        columns.into_list(py)
    }
}

/// Returns the values of one column, in a list.
pub fn column_list<'py>(
    reader: &mut Reader,
    reading: &mut Reading<'_, 'py>,
    column: &Column,
    rows: Range<usize>,
) -> PyResult<Bound<'py, PyAny>> {
    let mut cells = Cells::with_capacity(rows.len());
    let step = rows_at_once(std::slice::from_ref(column), rows.end);
    let mut start = rows.start;
    while start < rows.end {
        let end = rows.end.min(start + step);
        reader.read(reading, column, start..end, &mut cells)?;
        reading.pace.breathe(reading.py)?;
        start = end;
    }
    cells.into_list(reading.py)
}

fn rows_at_once(columns: &[Column], rows: usize) -> usize {
    let values: usize = columns.iter().map(values_in).sum();
    let values_in_a_row = values / rows.max(1) + 1;
    (VALUES_AT_ONCE / values_in_a_row).clamp(1, ROWS_AT_ONCE)
}

/// Returns about how many objects a column becomes.
fn values_in(column: &Column) -> usize {
    match column {
        Column::Nullable { inner, .. } => values_in(inner),
        Column::Array { inner, offsets } => offsets.len() + values_in(inner),
        Column::Map { offsets, keys, values } => offsets.len() + values_in(keys) + values_in(values),
        Column::Tuple { rows, elements } => rows + elements.iter().map(values_in).sum::<usize>(),
        Column::Variant { discriminators, .. } => 2 * discriminators.len(),
        Column::Json { rows, paths } => rows + paths.iter().map(|(_, _, column)| 2 * values_in(column)).sum::<usize>(),
        other => other.rows(),
    }
}

/// Joins the objects of all lists in one: the first list with the others behind it. `lists` holds no other
/// afterwards.
#[pyfunction]
pub fn join_lists<'py>(py: Python<'py>, lists: &Bound<'py, PyList>) -> PyResult<Bound<'py, PyList>> {
    let mut pace = Pace::start();
    if lists.is_empty() {
        return Ok(PyList::empty(py));
    }
    let whole = lists.get_item(0)?.cast_into::<PyList>()?;
    for at in 1..lists.len() {
        let part = lists.get_item(at)?.cast_into::<PyList>()?;
        lists.set_item(at, py.None())?;
        let mut start = 0;
        while start < part.len() {
            let end = part.len().min(start + OBJECTS_MOVED_AT_ONCE);
            whole.call_method1(intern!(py, "extend"), (part.get_slice(start, end),))?;
            pace.breathe(py)?;
            start = end;
        }
    }
    Ok(whole)
}
