//! Arrays that others made, as columns of a Native block to insert.
//!
//! Only values are taken that mean the same on both sides, and that surely fit; all others are [`Unsuited`],
//! and left to code that looks at every value and can say what is wrong with it.
//!
//! The arrays come by pointers, so whoever made them is trusted with their layout, as everywhere in Arrow.
//! They are read only and may be shared with other threads.

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
use windrow_columns::DataType;

/// The error that an array can't become such a column without a look at every value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unsuited;

/// One column, in one or more arrays.
#[derive(Clone)]
pub struct ArrowColumn {
    field: Arc<Field>,
    arrays: Arc<Vec<ArrowArray>>,
    /// The child to follow from the arrays to the column: `None`, or that of a table's column.
    child: Option<usize>,
}

impl ArrowColumn {
    /// Takes one array with its schema, as `__arrow_c_array__` gives them.
    ///
    /// # Safety
    /// They have to be as Arrow's C data interface says.
    ///
    /// # Errors
    /// Fails where the schema was released, has no format that is text, or nests its types too deeply.
    pub unsafe fn of_array(schema: &ArrowSchema, array: ArrowArray) -> Result<ArrowColumn, Unsuited> {
        // SAFETY: the caller's promise.
        let field = unsafe { Field::of(schema, 0)? };
        Ok(ArrowColumn { field: Arc::new(field), arrays: Arc::new(vec![array]), child: None })
    }

    /// Takes all arrays of a stream, as `__arrow_c_stream__` gives it.
    ///
    /// # Safety
    /// It has to be as Arrow's C stream interface says.
    ///
    /// # Errors
    /// Fails with the stream's own error as a text; the inner result fails where the schema is unsuited.
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

    /// Returns the names of a table's columns. `None` if this is no table.
    pub fn names(&self) -> Option<Vec<String>> {
        self.field.is_struct().then(|| self.field.children.iter().map(|child| child.name.clone()).collect())
    }

    /// Returns a column of a table; `None` where there is no such column.
    pub fn column(&self, index: usize) -> Option<ArrowColumn> {
        let is_there = self.child.is_none() && self.field.is_struct() && index < self.field.children.len();
        is_there.then(|| ArrowColumn { field: self.field.clone(), arrays: self.arrays.clone(), child: Some(index) })
    }

    pub fn rows(&self) -> usize {
        self.arrays.iter().map(|array| array.length.max(0) as usize).sum()
    }

    /// Appends the data of the rows to a Native block: those of a column of the type, or of the type without
    /// `LowCardinality`. The data of such types has no prefix.
    ///
    /// # Errors
    /// Fails, and appends nothing, where the array's values are not surely values of the type, or there are
    /// not so many rows.
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
