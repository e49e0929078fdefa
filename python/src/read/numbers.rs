//! A reader of whole numbers, floats, `Bool` and intervals.

use std::ffi::CString;
use std::ops::Range;

use pyo3::prelude::*;
use windrow_columns::DataType;
use windrow_results::Column;

use super::cells::Cells;
use super::options::{ColumnOptions, Format};
use super::reader::{fixed, unfit};

#[derive(Clone, Copy)]
enum Kind {
    Bool,
    U8,
    U16,
    U32,
    U64,
    I8,
    I16,
    I32,
    I64,
    U128,
    I128,
    U256,
    I256,
    F32,
    F64,
    BFloat16,
}

pub struct NumberReader {
    kind: Kind,
    text: bool,
}

impl NumberReader {
    /// Makes a reader. Returns `None` for a type that is none of numbers.
    pub fn new(scalar: &DataType, options: &ColumnOptions<'_>) -> Option<NumberReader> {
        let format = options.format(scalar.family());
        let kind = match scalar {
            DataType::Bool => Kind::Bool,
            DataType::UInt8 => Kind::U8,
            DataType::UInt16 => Kind::U16,
            DataType::UInt32 => Kind::U32,
            DataType::UInt64 if format == Format::Signed => Kind::I64,
            DataType::UInt64 => Kind::U64,
            DataType::Int8 => Kind::I8,
            DataType::Int16 => Kind::I16,
            DataType::Int32 => Kind::I32,
            DataType::Int64 | DataType::Interval(_) => Kind::I64,
            DataType::UInt128 => Kind::U128,
            DataType::Int128 => Kind::I128,
            DataType::UInt256 => Kind::U256,
            DataType::Int256 => Kind::I256,
            DataType::Float32 => Kind::F32,
            DataType::Float64 => Kind::F64,
            DataType::BFloat16 => Kind::BFloat16,
            _ => return None,
        };
        let text = format == Format::String && !matches!(kind, Kind::Bool | Kind::BFloat16);
        Some(NumberReader { kind, text })
    }

    pub fn read(&self, py: Python<'_>, column: &Column, rows: Range<usize>, out: &mut Cells) -> PyResult<()> {
        if !self.text {
            return self.read_numbers(py, column, rows, out);
        }
        let mut numbers = Cells::with_capacity(rows.len());
        self.read_numbers(py, column, rows, &mut numbers)?;
        let mut numbers = numbers.take_from(0);
        while let Some(number) = numbers.next_object(py) {
            out.push(number.str()?.into_any());
        }
        Ok(())
    }

    fn read_numbers(&self, py: Python<'_>, column: &Column, rows: Range<usize>, out: &mut Cells) -> PyResult<()> {
        match self.kind {
            Kind::Bool => fixed::<1>(column, rows)?.for_each(|[byte]| out.push_bool(py, byte != 0)),
            Kind::U8 => each(fixed(column, rows)?, |v| out.push_unsigned(py, u8::from_le_bytes(v).into()))?,
            Kind::U16 => each(fixed(column, rows)?, |v| out.push_unsigned(py, u16::from_le_bytes(v).into()))?,
            Kind::U32 => each(fixed(column, rows)?, |v| out.push_unsigned(py, u32::from_le_bytes(v).into()))?,
            Kind::U64 => each(fixed(column, rows)?, |v| out.push_unsigned(py, u64::from_le_bytes(v)))?,
            Kind::I8 => each(fixed(column, rows)?, |v| out.push_signed(py, i8::from_le_bytes(v).into()))?,
            Kind::I16 => each(fixed(column, rows)?, |v| out.push_signed(py, i16::from_le_bytes(v).into()))?,
            Kind::I32 => each(fixed(column, rows)?, |v| out.push_signed(py, i32::from_le_bytes(v).into()))?,
            Kind::I64 => each(fixed(column, rows)?, |v| out.push_signed(py, i64::from_le_bytes(v)))?,
            Kind::U128 => each(fixed(column, rows)?, |v: [u8; 16]| push_big(py, &v, false, out))?,
            Kind::I128 => each(fixed(column, rows)?, |v: [u8; 16]| push_big(py, &v, true, out))?,
            Kind::U256 => each(fixed(column, rows)?, |v: [u8; 32]| push_big(py, &v, false, out))?,
            Kind::I256 => each(fixed(column, rows)?, |v: [u8; 32]| push_big(py, &v, true, out))?,
            Kind::F32 => each(fixed(column, rows)?, |v| out.push_float(py, f32::from_le_bytes(v).into()))?,
            Kind::F64 => each(fixed(column, rows)?, |v| out.push_float(py, f64::from_le_bytes(v)))?,
            Kind::BFloat16 => each(fixed(column, rows)?, |[low, high]| {
                out.push_float(py, f32::from_le_bytes([0, 0, low, high]).into())
            })?,
        }
        Ok(())
    }
}

fn each<const WIDTH: usize>(
    mut values: impl Iterator<Item = [u8; WIDTH]>,
    push: impl FnMut([u8; WIDTH]) -> PyResult<()>,
) -> PyResult<()> {
    values.try_for_each(push)
}

/// Makes an `int` of a little-endian number of any width.
pub fn push_big(py: Python<'_>, bytes: &[u8], signed: bool, out: &mut Cells) -> PyResult<()> {
    let negative = signed && bytes.last().is_some_and(|byte| byte & 0x80 != 0);
    let extension = if negative { 0xff } else { 0 };
    let fits = bytes.len() <= 8
        || (bytes[8..].iter().all(|byte| *byte == extension) && (!signed || (bytes[7] & 0x80 != 0) == negative));
    if fits {
        let mut low = [extension; 8];
        let length = bytes.len().min(8);
        low[..length].copy_from_slice(&bytes[..length]);
        return match signed {
            true => out.push_signed(py, i64::from_le_bytes(low)),
            false => out.push_unsigned(py, u64::from_le_bytes(low)),
        };
    }
    let mut digits = magnitude(bytes, negative);
    digits.reverse();
    let mut text = super::cells::hexadecimal(&digits);
    if negative {
        text.insert(0, '-');
    }
    let text = CString::new(text).map_err(|_| unfit())?;
    out.push_hexadecimal(py, &text)
}

/// Returns the absolute value, little-endian.
fn magnitude(bytes: &[u8], negative: bool) -> Vec<u8> {
    let mut carry = negative;
    bytes
        .iter()
        .map(|byte| {
            let byte = if negative { !byte } else { *byte };
            let (byte, overflows) = byte.overflowing_add(u8::from(carry));
            carry = overflows;
            byte
        })
        .collect()
}
