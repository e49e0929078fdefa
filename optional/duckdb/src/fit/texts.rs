//! Texts, bytes, JSON and names of an ENUM.

use std::collections::HashSet;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BinaryArray, StringArray};
use arrow_schema::DataType;

use super::CannotStoreValue;

pub(super) fn is_text(array: &ArrayRef) -> bool {
    matches!(array.data_type(), DataType::Utf8 | DataType::Binary)
}

/// Fits texts, which have to be UTF-8 like all texts of DuckDB.
pub(super) fn text(array: &ArrayRef) -> Result<ArrayRef, CannotStoreValue> {
    match array.data_type() {
        DataType::Utf8 => Ok(array.clone()),
        DataType::Binary => of_bytes(array.as_binary::<i32>()),
        DataType::FixedSizeBinary(_) => of_bytes(bytes(array)?.as_binary::<i32>()),
        other => Err(CannotStoreValue::of_type(other, "VARCHAR")),
    }
}

fn of_bytes(bytes: &BinaryArray) -> Result<ArrayRef, CannotStoreValue> {
    let (offsets, values, nulls) = bytes.clone().into_parts();
    // As a whole, which is fast; and if it is not, by row, to name the first.
    if let Ok(texts) = StringArray::try_new(offsets, values, nulls) {
        return Ok(Arc::new(texts));
    }
    let bad = (0..bytes.len()).find(|&row| bytes.is_valid(row) && std::str::from_utf8(bytes.value(row)).is_err());
    match bad {
        Some(row) => Err(CannotStoreValue::value(row, "the bytes are no UTF-8, which a VARCHAR has to be")),
        // What is NULL is not UTF-8: left out.
        None => Ok(Arc::new(
            bytes.iter().map(|value| value.and_then(|value| std::str::from_utf8(value).ok())).collect::<StringArray>(),
        )),
    }
}

pub(super) fn bytes(array: &ArrayRef) -> Result<ArrayRef, CannotStoreValue> {
    match array.data_type() {
        DataType::Binary => Ok(array.clone()),
        DataType::Utf8 | DataType::FixedSizeBinary(_) => {
            arrow_cast::cast(array, &DataType::Binary).map_err(|error| CannotStoreValue::other(&error.to_string()))
        }
        other => Err(CannotStoreValue::of_type(other, "BLOB")),
    }
}

/// Fits texts that have to be JSON; DuckDB's appender would accept any text.
pub(super) fn json(array: &ArrayRef) -> Result<ArrayRef, CannotStoreValue> {
    let texts = text(array).map_err(|misfit| match misfit.row {
        None => CannotStoreValue::of_type(array.data_type(), "JSON"),
        Some(_) => misfit,
    })?;
    let strings = texts.as_string::<i32>();
    let wrong = |&row: &usize| {
        strings.is_valid(row) && serde_json::from_str::<serde::de::IgnoredAny>(strings.value(row)).is_err()
    };
    match (0..strings.len()).find(wrong) {
        Some(row) => Err(CannotStoreValue::value(row, "the text is no JSON")),
        None => Ok(texts),
    }
}

pub(super) fn name_of(array: &ArrayRef, names: &[String]) -> Result<ArrayRef, CannotStoreValue> {
    let texts = text(array).map_err(|misfit| match misfit.row {
        None => CannotStoreValue::of_type(array.data_type(), "ENUM"),
        Some(_) => misfit,
    })?;
    let names: HashSet<&str> = names.iter().map(String::as_str).collect();
    let strings = texts.as_string::<i32>();
    let unknown = (0..strings.len()).find(|&row| strings.is_valid(row) && !names.contains(strings.value(row)));
    match unknown {
        Some(row) => Err(CannotStoreValue::value(row, format!("the ENUM has no '{}'", cut(strings.value(row))))),
        None => Ok(texts),
    }
}

/// Returns the part of a text that an error shows.
fn cut(text: &str) -> String {
    text.chars().take(64).collect()
}
