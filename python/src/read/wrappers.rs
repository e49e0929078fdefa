//! Readers of `Nullable` and `LowCardinality`.

use std::ops::Range;

use pyo3::prelude::*;
use windrow_results::Column;

use super::cells::Cells;
use super::reader::{unfit, Reader, Reading};

pub struct NullableReader {
    inner: Box<Reader>,
    null: Py<PyAny>,
}

impl NullableReader {
    pub fn new(inner: Reader, null: Py<PyAny>) -> NullableReader {
        NullableReader { inner: Box::new(inner), null }
    }

    /// Reads runs of values and runs of NULLs: no object is made of the value that stands in the place of a NULL.
    pub fn read(
        &mut self,
        reading: &mut Reading<'_, '_>,
        column: &Column,
        rows: Range<usize>,
        out: &mut Cells,
    ) -> PyResult<()> {
        let Column::Nullable { nulls, inner } = column else { return Err(unfit()) };
        let nulls = nulls.get(rows.clone()).ok_or_else(unfit)?;
        let mut row = rows.start;
        for run in nulls.chunk_by(|one, other| (*one == 0) == (*other == 0)) {
            let next = row + run.len();
            if run[0] == 0 {
                self.inner.read(reading, inner, row..next, out)?;
            } else {
                run.iter().for_each(|_| out.push_shared(reading.py, &self.null));
            }
            row = next;
        }
        Ok(())
    }

    pub fn start_block(&mut self) {
        self.inner.start_block();
    }

    pub fn is_atomic(&self) -> bool {
        self.inner.is_atomic()
    }
}

/// A reader that makes each value of the dictionary once in a block, when the first row asks for it.
pub struct LowCardinalityReader {
    inner: Box<Reader>,
    /// The value of row 0 of the dictionary of a nullable type.
    null: Option<Py<PyAny>>,
    values: Vec<Option<Py<PyAny>>>,
}

impl LowCardinalityReader {
    pub fn new(inner: Reader, null: Option<Py<PyAny>>) -> LowCardinalityReader {
        LowCardinalityReader { inner: Box::new(inner), null, values: Vec::new() }
    }

    pub fn read(
        &mut self,
        reading: &mut Reading<'_, '_>,
        column: &Column,
        rows: Range<usize>,
        out: &mut Cells,
    ) -> PyResult<()> {
        let Column::LowCardinality { indices, dictionary, .. } = column else { return Err(unfit()) };
        let py = reading.py;
        for index in indices.get(rows).ok_or_else(unfit)? {
            let at = *index as usize;
            if let (0, Some(null)) = (at, &self.null) {
                out.push_shared(py, null);
                continue;
            }
            if self.values.len() <= at {
                self.values.resize_with(at + 1, || None);
            }
            let value = &mut self.values[at];
            if value.is_none() {
                let mut made = Cells::with_capacity(1);
                self.inner.read(reading, dictionary, at..at + 1, &mut made)?;
                *value = made.object(py, 0).map(Bound::unbind);
            }
            out.push_shared(py, value.as_ref().ok_or_else(unfit)?);
        }
        Ok(())
    }

    pub fn start_block(&mut self) {
        self.values.clear();
        self.inner.start_block();
    }
}
