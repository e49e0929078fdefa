//! Arrays that others made, as columns of a Native block to insert.
//!
//! Only what means the same on both sides is taken, and what surely fits; all else is [`Unsuited`], and left to those
//! who look at every value and can say what is wrong with it.
//!
//! The arrays come by pointers, so whoever made them is trusted with their layout, as everywhere in Arrow. They are
//! read only and may be shared with other threads.

mod field;
mod fixed;
mod numbers;
mod texts;
mod view;
mod writer;

use std::ops::Range;
use std::sync::Arc;

use field::Field;
use view::View;
use writer::Piece;

use super::ffi::{ArrowArray, ArrowArrayStream, ArrowSchema};
use crate::DataType;

/// This array can't become such a column without a look at every value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unsuited;

/// One column, in one or more arrays.
#[derive(Clone)]
pub struct ArrowColumn {
    field: Arc<Field>,
    arrays: Arc<Vec<ArrowArray>>,
    /// Which children to follow from the arrays to the column: none, or the one of a table.
    child: Option<usize>,
}

impl ArrowColumn {
    /// One array with its schema, as `__arrow_c_array__` gives them.
    ///
    /// # Safety
    /// They have to be as Arrow's C data interface says.
    pub unsafe fn of_array(schema: &ArrowSchema, array: ArrowArray) -> Result<ArrowColumn, Unsuited> {
        // SAFETY: the caller's promise.
        let field = unsafe { Field::of(schema, 0)? };
        Ok(ArrowColumn { field: Arc::new(field), arrays: Arc::new(vec![array]), child: None })
    }

    /// All arrays of a stream, as `__arrow_c_stream__` gives it. The text is the stream's own error.
    ///
    /// # Safety
    /// It has to be as Arrow's C stream interface says.
    pub unsafe fn of_stream(stream: &mut ArrowArrayStream) -> Result<Result<ArrowColumn, Unsuited>, String> {
        // SAFETY: the caller's promise.
        unsafe {
            let schema = stream.read_schema()?;
            let mut arrays = Vec::new();
            while let Some(array) = stream.read_next()? {
                arrays.push(array);
            }
            let field = Field::of(&schema, 0);
            Ok(field.map(|field| ArrowColumn { field: Arc::new(field), arrays: Arc::new(arrays), child: None }))
        }
    }

    /// The names of a table's columns. None if this is no table.
    pub fn names(&self) -> Option<Vec<String>> {
        self.field.is_struct().then(|| self.field.children.iter().map(|child| child.name.clone()).collect())
    }

    /// A column of a table.
    pub fn column(&self, index: usize) -> Option<ArrowColumn> {
        let is_there = self.child.is_none() && self.field.is_struct() && index < self.field.children.len();
        is_there.then(|| ArrowColumn { field: self.field.clone(), arrays: self.arrays.clone(), child: Some(index) })
    }

    pub fn rows(&self) -> usize {
        self.arrays.iter().map(|array| array.length.max(0) as usize).sum()
    }

    /// Appends the data of the rows to a Native block: those of a column of the type, or of the type without
    /// `LowCardinality`. Nothing stands in front of the data of such types.
    pub fn put(&self, of: &DataType, rows: Range<usize>, out: &mut Vec<u8>) -> Result<(), Unsuited> {
        let start = out.len();
        let field = match self.child {
            Some(child) => &self.field.children[child],
            None => &self.field,
        };
        let put = self.pieces(rows).and_then(|pieces| writer::put(field, &pieces, of, out));
        if put.is_err() {
            out.truncate(start);
        }
        put
    }

    fn pieces(&self, rows: Range<usize>) -> Result<Vec<Piece<'_>>, Unsuited> {
        let (mut pieces, mut first) = (Vec::new(), 0);
        for array in self.arrays.iter() {
            let length = array.length.max(0) as usize;
            let from = rows.start.clamp(first, first + length) - first;
            let to = rows.end.clamp(first, first + length) - first;
            if from < to {
                // SAFETY: the arrays were promised to be sound when they came.
                let view = unsafe { View::of(array) };
                pieces.push(match self.child {
                    Some(child) => Piece { view: view.field(child).ok_or(Unsuited)?, rows: from..to },
                    None => Piece { view, rows: from..to },
                });
            }
            first += length;
        }
        if first < rows.end {
            return Err(Unsuited);
        }
        Ok(pieces)
    }
}
