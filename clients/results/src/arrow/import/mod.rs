//! Arrays that others made, as columns of a Native block to insert.
//!
//! Only values are taken that mean the same on both sides, and that surely fit; all others are [`Unsuited`],
//! and left to code that looks at every value and can say what is wrong with it.
//!
//! Whoever made the arrays is trusted with their layout, as everywhere in Arrow. They are read only and may be
//! shared with other threads.

mod fixed;
mod numbers;
mod texts;
mod view;
mod writer;

use std::ops::Range;
use std::sync::Arc;

use arrow_data::ArrayData;
use arrow_schema::{DataType as ArrowType, Fields};
use view::View;
use windrow_columns::DataType;
use writer::Piece;

/// The error that an array can't become such a column without a look at every value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unsuited;

/// One column, in one or more arrays.
#[derive(Clone)]
pub struct ArrowColumn {
    arrow: ArrowType,
    arrays: Arc<Vec<ArrayData>>,
    /// The child to follow from the arrays to the column: `None`, or that of a table's column.
    child: Option<usize>,
}

impl ArrowColumn {
    /// Makes a column of arrays, which all have the type.
    pub fn new(arrow: ArrowType, arrays: Vec<ArrayData>) -> ArrowColumn {
        ArrowColumn { arrow, arrays: Arc::new(arrays), child: None }
    }

    fn fields(&self) -> Option<&Fields> {
        match (&self.arrow, self.child) {
            (ArrowType::Struct(fields), None) => Some(fields),
            _ => None,
        }
    }

    /// Returns the names of a table's columns. `None` if this is no table.
    pub fn names(&self) -> Option<Vec<String>> {
        Some(self.fields()?.iter().map(|field| field.name().clone()).collect())
    }

    /// Returns a column of a table; `None` where there is no such column.
    pub fn column(&self, index: usize) -> Option<ArrowColumn> {
        let field = self.fields()?.get(index)?;
        Some(ArrowColumn { arrow: field.data_type().clone(), arrays: self.arrays.clone(), child: Some(index) })
    }

    pub fn rows(&self) -> usize {
        self.arrays.iter().map(ArrayData::len).sum()
    }

    /// Appends the data of the rows to a Native block: those of a column of the type, or of the type without
    /// `LowCardinality`. The data of such types has no prefix.
    ///
    /// # Errors
    /// Fails, and appends nothing, where the array's values are not surely values of the type, or there are
    /// not so many rows.
    pub fn put(&self, of: &DataType, rows: Range<usize>, out: &mut Vec<u8>) -> Result<(), Unsuited> {
        let start = out.len();
        let put = self.pieces(rows).and_then(|pieces| writer::put(&self.arrow, &pieces, of, out));
        if put.is_err() {
            out.truncate(start);
        }
        put
    }

    fn pieces(&self, rows: Range<usize>) -> Result<Vec<Piece<'_>>, Unsuited> {
        let (mut pieces, mut first) = (Vec::new(), 0);
        for array in self.arrays.iter() {
            let length = array.len();
            let from = rows.start.clamp(first, first + length) - first;
            let to = rows.end.clamp(first, first + length) - first;
            if from < to {
                let view = View::of(array);
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
