//! A reader of `Decimal` of any width.

use std::ops::Range;

use pyo3::intern;
use pyo3::prelude::*;
use windrow_results::Column;

use super::cells::Cells;
use super::reader::unfit;

pub struct DecimalReader {
    scale: usize,
    class: Py<PyAny>,
}

impl DecimalReader {
    pub fn new(py: Python<'_>, scale: u8) -> PyResult<DecimalReader> {
        let class = py.import("decimal")?.getattr(intern!(py, "Decimal"))?.unbind();
        Ok(DecimalReader { scale: scale.into(), class })
    }

    pub fn read(&self, py: Python<'_>, column: &Column, rows: Range<usize>, out: &mut Cells) -> PyResult<()> {
        let Column::Fixed { width, data } = column else { return Err(unfit()) };
        let bytes = data.get(rows.start * width..rows.end * width).ok_or_else(unfit)?;
        let class = self.class.bind(py);
        let mut text = String::new();
        for value in bytes.chunks_exact((*width).max(1)) {
            text.clear();
            match value {
                [_, _, _, _] | [_, _, _, _, _, _, _, _] | [_, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _] => {
                    let negative = value.last().is_some_and(|byte| byte & 0x80 != 0);
                    let mut wide = [if negative { 0xff } else { 0 }; 16];
                    wide[..value.len()].copy_from_slice(value);
                    self.write(i128::from_le_bytes(wide), &mut text);
                }
                _ => self.write_wide(py, value, &mut text)?,
            }
            out.push(class.call1((text.as_str(),))?);
        }
        Ok(())
    }

    fn write(&self, number: i128, text: &mut String) {
        if number < 0 {
            text.push('-');
        }
        self.write_digits(&number.unsigned_abs().to_string(), text);
    }

    fn write_wide(&self, py: Python<'_>, value: &[u8], text: &mut String) -> PyResult<()> {
        let mut cells = Cells::with_capacity(1);
        super::numbers::push_big(py, value, true, &mut cells)?;
        let number = cells.object(py, 0).ok_or_else(unfit)?.str()?;
        let digits = number.to_str()?;
        match digits.strip_prefix('-') {
            Some(digits) => {
                text.push('-');
                self.write_digits(digits, text);
            }
            None => self.write_digits(digits, text),
        }
        Ok(())
    }

    /// Writes the digits with the point `scale` digits from the right.
    fn write_digits(&self, digits: &str, text: &mut String) {
        if self.scale == 0 {
            return text.push_str(digits);
        }
        let whole = digits.len().saturating_sub(self.scale);
        text.push_str(if whole == 0 { "0" } else { &digits[..whole] });
        text.push('.');
        (digits.len()..self.scale).for_each(|_| text.push('0'));
        text.push_str(&digits[whole..]);
    }
}
