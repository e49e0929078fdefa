//! Booleans, integers, floats and decimals.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Float32Type, Float64Type, Int64Type, Int8Type, UInt64Type};
use arrow_array::{Array, ArrayRef, BooleanArray, FixedSizeBinaryArray, Float32Array};
use arrow_cast::{cast_with_options, CastOptions};
use arrow_schema::{DataType, Field};

use super::CannotStoreValue;

pub(super) fn boolean(array: &ArrayRef, source: &Field) -> Result<ArrayRef, CannotStoreValue> {
    let extension = source.metadata().get("ARROW:extension:name").map_or("", String::as_str);
    match array.data_type() {
        DataType::Boolean => Ok(array.clone()),
        DataType::Int8 if extension == "arrow.bool8" => {
            let bytes = array.as_primitive::<Int8Type>();
            Ok(Arc::new(BooleanArray::from_unary(bytes, |byte| byte != 0)))
        }
        other => Err(CannotStoreValue::of_type(other, "BOOLEAN")),
    }
}

pub(super) fn integer(array: &ArrayRef, to: &DataType) -> Result<ArrayRef, CannotStoreValue> {
    if array.data_type() == to {
        return Ok(array.clone());
    }
    if !array.data_type().is_integer() {
        return Err(CannotStoreValue::of_type(array.data_type(), to));
    }
    converted(array, to)
}

/// Fits integers of sixteen bytes, the lowest byte first.
pub(super) fn huge(array: &ArrayRef, signed: bool) -> Result<ArrayRef, CannotStoreValue> {
    let to = if signed { "HUGEINT" } else { "UHUGEINT" };
    let kind = array.data_type();
    let widened =
        |to: &DataType| arrow_cast::cast(array, to).map_err(|error| CannotStoreValue::other(&error.to_string()));
    let values: Vec<Option<i128>> = match kind.is_unsigned_integer() {
        _ if kind == &DataType::FixedSizeBinary(16) => return Ok(array.clone()),
        // As Flight SQL hands them out.
        _ if matches!(kind, DataType::Decimal128(_, 0)) => array.as_primitive::<Decimal128Type>().iter().collect(),
        _ if !kind.is_integer() => return Err(CannotStoreValue::of_type(kind, to)),
        true => widened(&DataType::UInt64)?.as_primitive::<UInt64Type>().iter().map(|n| n.map(i128::from)).collect(),
        false => widened(&DataType::Int64)?.as_primitive::<Int64Type>().iter().map(|n| n.map(i128::from)).collect(),
    };
    let negative = |value: &Option<i128>| !signed && value.is_some_and(|value| value < 0);
    if let Some(row) = values.iter().position(negative) {
        return Err(CannotStoreValue::range(row, values[row].unwrap_or_default(), to));
    }
    let bytes = values.into_iter().map(|value| value.map(i128::to_le_bytes));
    let made = FixedSizeBinaryArray::try_from_sparse_iter_with_size(bytes, 16);
    Ok(Arc::new(made.map_err(|error| CannotStoreValue::other(&error.to_string()))?))
}

/// Turns numbers into floats, where the float is exactly the same number.
pub(super) fn float(array: &ArrayRef, to: &DataType) -> Result<ArrayRef, CannotStoreValue> {
    let kind = array.data_type();
    match (kind, to) {
        _ if kind == to => return Ok(array.clone()),
        (DataType::Float16, _) | (DataType::Float32, DataType::Float64) => return converted(array, to),
        (DataType::Float64, DataType::Float32) => {
            let wide = array.as_primitive::<Float64Type>();
            let lost = |value: f64| f64::from(value as f32) != value && !value.is_nan();
            if let Some(row) = (0..wide.len()).find(|&row| wide.is_valid(row) && lost(wide.value(row))) {
                return Err(CannotStoreValue::lossy(row, wide.value(row), "FLOAT"));
            }
            return Ok(Arc::new(wide.unary::<_, Float32Type>(|value| value as f32) as Float32Array));
        }
        _ if kind.is_integer() => {}
        _ => return Err(CannotStoreValue::of_type(kind, to)),
    }
    let floats = converted(array, to)?;
    exact(array, &floats, to)
}

pub(super) fn decimal(array: &ArrayRef, precision: u8, scale: u8) -> Result<ArrayRef, CannotStoreValue> {
    let to = DataType::Decimal128(precision, scale as i8);
    let kind = array.data_type();
    match kind {
        _ if kind == &to => return within_digits(array, precision, &to),
        DataType::Decimal32(..) | DataType::Decimal64(..) | DataType::Decimal128(..) | DataType::Decimal256(..) => {}
        _ if kind.is_integer() => return converted(array, &to),
        _ => return Err(CannotStoreValue::of_type(kind, format!("DECIMAL({precision},{scale})"))),
    }
    let rescaled = converted(array, &to)?;
    exact(array, &rescaled, &to)
}

/// Checks that no value has more digits than its type allows; Arrow doesn't check that.
fn within_digits(array: &ArrayRef, precision: u8, to: &DataType) -> Result<ArrayRef, CannotStoreValue> {
    let values = array.as_primitive::<arrow_array::types::Decimal128Type>();
    let bound = 10i128.checked_pow(u32::from(precision)).unwrap_or(i128::MAX);
    let over = |row: &usize| values.is_valid(*row) && values.value(*row).unsigned_abs() >= bound.unsigned_abs();
    match (0..values.len()).find(over) {
        Some(row) => Err(CannotStoreValue::range(row, values.value(row), to)),
        None => Ok(array.clone()),
    }
}

/// Casts, and fails on the first value that the other type does not have.
fn converted(array: &ArrayRef, to: &DataType) -> Result<ArrayRef, CannotStoreValue> {
    let options = CastOptions { safe: true, ..CastOptions::default() };
    let cast = cast_with_options(array, to, &options).map_err(|error| CannotStoreValue::other(&error.to_string()))?;
    if cast.null_count() == array.null_count() {
        return Ok(cast);
    }
    let lost = (0..array.len()).find(|&row| cast.is_null(row) && array.is_valid(row));
    lost.map_or(Ok(cast.clone()), |row| Err(CannotStoreValue::range(row, shown(array, row), to)))
}

/// Casts back, and fails on the first value that is then another.
fn exact(array: &ArrayRef, cast: &ArrayRef, to: &DataType) -> Result<ArrayRef, CannotStoreValue> {
    let options = CastOptions { safe: true, ..CastOptions::default() };
    let back = cast_with_options(cast, array.data_type(), &options)
        .map_err(|error| CannotStoreValue::other(&error.to_string()))?;
    if back.to_data() == array.to_data() {
        return Ok(cast.clone());
    }
    let differs = |&row: &usize| array.is_valid(row) && back.slice(row, 1).to_data() != array.slice(row, 1).to_data();
    match (0..array.len()).find(differs) {
        Some(row) => Err(CannotStoreValue::lossy(row, shown(array, row), to)),
        None => Ok(cast.clone()),
    }
}

fn shown(array: &ArrayRef, row: usize) -> String {
    arrow_cast::display::array_value_to_string(array, row).unwrap_or_default()
}
