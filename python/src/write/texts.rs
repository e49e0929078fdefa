//! String columns out of Arrow's buffers, without a Python object per value.

use std::ops::Range;

use pyo3::prelude::*;

use super::column::Column;
use super::plan::{Node, Scalar};
use super::problem::Problem;
use super::text::put_sized;

/// Arrow strings: each is a stretch of `data` between two offsets.
pub(super) struct Texts<'py> {
    _owner: Bound<'py, PyAny>,
    pub(super) rows: usize,
    /// Of the first row, in offsets and validity.
    offset: usize,
    wide: bool,
    /// A bit per row, 0 for no value; null if all have one.
    validity: *const u8,
    offsets: *const u8,
    data: *const u8,
}

/// What `windrow._shared.insert_columns` tells of an Arrow array: owner, rows, offset, whether offsets are wide, and the
/// addresses of validity, offsets and data.
pub(super) type TextParts<'py> = (Bound<'py, PyAny>, usize, usize, bool, usize, usize, usize);

impl<'py> Texts<'py> {
    pub(super) fn of((owner, rows, offset, wide, validity, offsets, data): TextParts<'py>) -> Self {
        Texts {
            _owner: owner,
            // An array without rows may be without buffers.
            rows: if offsets == 0 { 0 } else { rows },
            offset,
            wide,
            validity: validity as *const u8,
            offsets: offsets as *const u8,
            data: data as *const u8,
        }
    }

    /// Other types are written of Python's own strings.
    pub(super) fn suit(node: &Node) -> bool {
        match node {
            Node::Scalar(Scalar::String) => true,
            Node::Nullable(inner) => matches!(inner.as_ref(), Node::Scalar(Scalar::String)),
            _ => false,
        }
    }

    /// Appends rows `range` of the column; the first row here has number `first`. Answers with the row that failed.
    pub(super) fn push(
        &self,
        node: &Node,
        column: &mut Column,
        range: Range<usize>,
        first: usize,
    ) -> Result<(), (usize, Problem)> {
        match (node, column) {
            (Node::Scalar(_), Column::Values(out)) => {
                for row in range {
                    match self.get(row - first) {
                        Some(text) => put_sized(text, out),
                        None => return Err((row, Problem::none())),
                    }
                }
            }
            (Node::Nullable(_), Column::Nullable { nulls, inner }) => {
                let Column::Values(out) = inner.as_mut() else { unreachable!("`suit` was asked") };
                for row in range {
                    let text = self.get(row - first);
                    nulls.push(u8::from(text.is_none()));
                    put_sized(text.unwrap_or_default(), out);
                }
            }
            _ => unreachable!("`suit` was asked"),
        }
        Ok(())
    }

    #[inline]
    fn get(&self, index: usize) -> Option<&[u8]> {
        assert!(index < self.rows, "an index inside of the array");
        let place = self.offset + index;
        // Safety: pyarrow's array has that many offsets and bits of validity, and its offsets are inside of its data.
        unsafe {
            if !self.validity.is_null() && *self.validity.add(place / 8) >> (place % 8) & 1 == 0 {
                return None;
            }
            let (start, end) = if self.wide {
                let at = self.offsets.cast::<i64>().add(place);
                (at.read_unaligned() as usize, at.add(1).read_unaligned() as usize)
            } else {
                let at = self.offsets.cast::<i32>().add(place);
                (at.read_unaligned() as usize, at.add(1).read_unaligned() as usize)
            };
            if start >= end {
                return Some(&[]);
            }
            Some(std::slice::from_raw_parts(self.data.add(start), end - start))
        }
    }
}
