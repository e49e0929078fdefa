//! Lists, arrays, structs and maps: their parts are fitted, and put together again.

use std::collections::HashSet;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, FixedSizeListArray, ListArray, MapArray, StructArray};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Field, Fields};

use super::{fit, CannotStoreValue, Fit, Target};
use crate::types::DuckType;

pub(super) fn list(array: &ArrayRef, inner: &DuckType, own: &Field) -> Result<Fit, CannotStoreValue> {
    let DataType::List(item) = own.data_type() else {
        return Err(CannotStoreValue::of_type(array.data_type(), own.data_type()));
    };
    let array = as_list(array, own)?;
    let list = array.as_list::<i32>();
    let target = Target { duck: inner, field: item };
    let Used { offsets, first, count } = used(list.offsets());
    let values = list.values().slice(first, count);
    let (values, field) = part(&values, &source_item(&array), &target, |at| row_of(&offsets, at))?;
    let made = ListArray::try_new(Arc::new(field), offsets, values.array, list.nulls().cloned());
    put_together(made, values.through_sql)
}

pub(super) fn fixed_list(
    array: &ArrayRef,
    inner: &DuckType,
    length: usize,
    own: &Field,
) -> Result<Fit, CannotStoreValue> {
    let DataType::FixedSizeList(item, size) = own.data_type() else {
        return Err(CannotStoreValue::of_type(array.data_type(), own.data_type()));
    };
    let array = match array.data_type() {
        DataType::FixedSizeList(_, given) if given == size => array.clone(),
        DataType::List(given) => {
            let list = array.as_list::<i32>();
            let wrong = |&row: &usize| list.is_valid(row) && list.value_length(row) as usize != length;
            if let Some(row) = (0..list.len()).find(wrong) {
                return Err(CannotStoreValue::value(
                    row,
                    format!("an array of {} for one of {length}", list.value_length(row)),
                ));
            }
            let to = DataType::FixedSizeList(given.clone(), *size);
            arrow_cast::cast(array, &to).map_err(|error| CannotStoreValue::other(&error.to_string()))?
        }
        other => return Err(CannotStoreValue::of_type(other, own.data_type())),
    };
    let list = array.as_fixed_size_list();
    let target = Target { duck: inner, field: item };
    let (values, field) = part(list.values(), &source_item(&array), &target, |at| at / length.max(1))?;
    let made = FixedSizeListArray::try_new(Arc::new(field), *size, values.array, list.nulls().cloned());
    put_together(made, values.through_sql)
}

/// Fits a struct. Fields are matched by name in any order, or by position where their names are those that
/// ClickHouse gives to elements without one.
pub(super) fn record(array: &ArrayRef, fields: &[(String, DuckType)], own: &Field) -> Result<Fit, CannotStoreValue> {
    let (DataType::Struct(given), DataType::Struct(wanted)) = (array.data_type(), own.data_type()) else {
        return Err(CannotStoreValue::of_type(array.data_type(), own.data_type()));
    };
    let record = array.as_struct();
    let by_position = given.iter().enumerate().all(|(at, field)| *field.name() == (at + 1).to_string());
    let place = |at: usize, name: &str| match by_position {
        true => Some(at),
        false => given.iter().position(|field| field.name().to_lowercase() == name.to_lowercase()),
    };
    if given.len() != fields.len() || wanted.len() != fields.len() {
        return Err(CannotStoreValue::of_type(array.data_type(), own.data_type()));
    }
    let (mut parts, mut arrays, mut through_sql) = (Vec::new(), Vec::new(), false);
    for (at, ((name, duck), field)) in fields.iter().zip(wanted).enumerate() {
        let missing = || CannotStoreValue::of_type(array.data_type(), own.data_type());
        let place = place(at, name).ok_or_else(missing)?;
        let (fitted, _) = part(record.column(place), &given[place], &Target { duck, field }, |row| row)?;
        through_sql |= fitted.through_sql;
        parts.push(fitted.field(name));
        arrays.push(fitted.array);
    }
    put_together(StructArray::try_new(Fields::from(parts), arrays, record.nulls().cloned()), through_sql)
}

pub(super) fn map(array: &ArrayRef, key: &DuckType, value: &DuckType, own: &Field) -> Result<Fit, CannotStoreValue> {
    let wrong = || CannotStoreValue::of_type(array.data_type(), own.data_type());
    let (DataType::Map(given, _), DataType::Map(wanted, _)) = (array.data_type(), own.data_type()) else {
        return Err(wrong());
    };
    let (DataType::Struct(given), DataType::Struct(pair)) = (given.data_type(), wanted.data_type()) else {
        return Err(wrong());
    };
    let ([given_key, given_value], [own_key, own_value]) = (given.as_ref(), pair.as_ref()) else { return Err(wrong()) };
    let map = array.as_map();
    let Used { offsets, first, count } = used(map.offsets());
    let (keys, values) = (map.keys().slice(first, count), map.values().slice(first, count));
    let row = |at: usize| row_of(&offsets, at);
    once_each(map, &keys, &offsets)?;
    let (keys, _) = part(&keys, given_key, &Target { duck: key, field: own_key }, row)?;
    let (values, _) = part(&values, given_value, &Target { duck: value, field: own_value }, row)?;
    let key_field = keys.field(own_key.name()).with_nullable(false);
    let fields = Fields::from(vec![key_field, values.field(own_value.name())]);
    let through_sql = keys.through_sql || values.through_sql;
    let entries = StructArray::try_new(fields.clone(), vec![keys.array, values.array], None);
    let entries = entries.map_err(|error| CannotStoreValue::other(&error.to_string()))?;
    let field = Arc::new(Field::new(wanted.name(), DataType::Struct(fields), false));
    put_together(MapArray::try_new(field, offsets, entries, map.nulls().cloned(), false), through_sql)
}

/// Checks that each map has every key once, and no NULL among the keys, as DuckDB's maps do.
fn once_each(map: &MapArray, keys: &ArrayRef, offsets: &[i32]) -> Result<(), CannotStoreValue> {
    let shown = |at: usize| arrow_cast::display::array_value_to_string(keys, at).unwrap_or_default();
    for row in 0..map.len() {
        let range = offsets[row] as usize..offsets[row + 1] as usize;
        if range.len() < 2 && range.clone().all(|at| keys.is_valid(at)) || map.is_null(row) {
            continue;
        }
        let mut seen = HashSet::new();
        for at in range {
            if keys.is_null(at) {
                return Err(CannotStoreValue::value(row, "a key of a map is NULL"));
            }
            if !seen.insert(shown(at)) {
                return Err(CannotStoreValue::value(row, "a map has the same key twice"));
            }
        }
    }
    Ok(())
}

fn part(
    values: &ArrayRef,
    source: &Field,
    target: &Target,
    row: impl FnOnce(usize) -> usize,
) -> Result<(Fit, Field), CannotStoreValue> {
    let fitted = fit(values, source, target).map_err(|misfit| misfit.in_row(row))?;
    let field = fitted.field(target.field.name());
    Ok((fitted, field))
}

fn put_together<A: Array + 'static>(
    made: Result<A, arrow_schema::ArrowError>,
    through_sql: bool,
) -> Result<Fit, CannotStoreValue> {
    let array: ArrayRef = Arc::new(made.map_err(|error| CannotStoreValue::other(&error.to_string()))?);
    Ok(Fit { through_sql, ..Fit::plain(array) })
}

/// Turns lists of one fixed length into plain lists.
fn as_list(array: &ArrayRef, own: &Field) -> Result<ArrayRef, CannotStoreValue> {
    match array.data_type() {
        DataType::List(_) => Ok(array.clone()),
        DataType::FixedSizeList(item, _) => arrow_cast::cast(array, &DataType::List(item.clone()))
            .map_err(|error| CannotStoreValue::other(&error.to_string())),
        other => Err(CannotStoreValue::of_type(other, own.data_type())),
    }
}

fn source_item(array: &ArrayRef) -> Field {
    match array.data_type() {
        DataType::List(item) | DataType::FixedSizeList(item, _) => item.as_ref().clone(),
        other => Field::new("", other.clone(), true),
    }
}

/// The range of values that belongs to the lists: a slice of rows still has the values of all other rows
/// beside its own.
struct Used {
    offsets: OffsetBuffer<i32>,
    first: usize,
    count: usize,
}

fn used(offsets: &OffsetBuffer<i32>) -> Used {
    let (first, last) = (offsets[0], offsets[offsets.len() - 1]);
    let moved: Vec<i32> = offsets.iter().map(|offset| offset - first).collect();
    Used { offsets: OffsetBuffer::new(moved.into()), first: first as usize, count: (last - first) as usize }
}

/// Returns the row whose list contains this value.
fn row_of(offsets: &[i32], at: usize) -> usize {
    offsets.partition_point(|&offset| offset as usize <= at).saturating_sub(1)
}
