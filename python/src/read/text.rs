//! Readers of `String` and `FixedString`.

use std::ops::Range;

use pyo3::prelude::*;
use windrow_results::Column;

use super::cells::Cells;
use super::options::{ColumnOptions, Format};
use super::reader::{unfit, Reading};

pub struct TextReader {
    bytes: bool,
}

impl TextReader {
    pub fn new(options: &ColumnOptions<'_>) -> TextReader {
        TextReader { bytes: options.format("String") == Format::Bytes }
    }

    pub fn read(
        &self,
        reading: &mut Reading<'_, '_>,
        column: &Column,
        rows: Range<usize>,
        out: &mut Cells,
    ) -> PyResult<()> {
        let Column::Strings { offsets, data } = column else { return Err(unfit()) };
        let py = reading.py;
        let encoding = reading.options.options().encoding.as_deref();
        let mut start = bound(offsets, rows.start)?;
        for row in rows {
            let end = bound(offsets, row + 1)?;
            let text = data.get(start..end).ok_or_else(unfit)?;
            if self.bytes {
                out.push_bytes(py, text)?;
            } else {
                out.push_text(py, text, encoding)?;
            }
            start = end;
        }
        Ok(())
    }
}

fn bound(offsets: &[i32], at: usize) -> PyResult<usize> {
    offsets.get(at).and_then(|offset| usize::try_from(*offset).ok()).ok_or_else(unfit)
}

pub struct FixedTextReader {
    text: bool,
}

impl FixedTextReader {
    pub fn new(options: &ColumnOptions<'_>) -> FixedTextReader {
        FixedTextReader { text: options.format("FixedString") == Format::String }
    }

    pub fn read(
        &self,
        reading: &mut Reading<'_, '_>,
        column: &Column,
        rows: Range<usize>,
        out: &mut Cells,
    ) -> PyResult<()> {
        let Column::Fixed { width, data } = column else { return Err(unfit()) };
        let py = reading.py;
        let encoding = reading.options.options().encoding.as_deref();
        let bytes = data.get(rows.start * width..rows.end * width).ok_or_else(unfit)?;
        for value in bytes.chunks_exact((*width).max(1)) {
            if self.text {
                // The zeros that fill a value up to its width are no part of the text.
                let length = value.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
                let text = if std::str::from_utf8(value).is_ok() { &value[..length] } else { value };
                out.push_text(py, text, encoding)?;
            } else {
                out.push_bytes(py, value)?;
            }
        }
        Ok(())
    }
}
