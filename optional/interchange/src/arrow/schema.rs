//! The Arrow schemas that are read here, and the types as which they are read.

use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Fields, Schema};

/// Returns the schema with bytes in place of texts, which ClickHouse doesn't require to be UTF-8 either. NULL
/// is allowed everywhere, since the reader does not decide about it. Returns `None` where a field is of a
/// kind that is not read here. `for_sql` says that fields which DuckDB writes are read too, though ClickHouse
/// may read them as other types.
pub(super) fn as_read(schema: &Schema, for_sql: bool) -> Option<Schema> {
    Some(Schema::new(fields(schema.fields(), for_sql)?))
}

fn fields(fields: &Fields, for_sql: bool) -> Option<Fields> {
    fields.iter().map(|of| field(of, for_sql)).collect()
}

fn field(field: &FieldRef, for_sql: bool) -> Option<FieldRef> {
    let data_type = data_type(field.data_type(), for_sql)?;
    match extension(field) {
        None => {}
        Some("arrow.uuid") if data_type == DataType::FixedSizeBinary(16) => {}
        Some("arrow.bool8") if for_sql && data_type == DataType::Int8 => {}
        Some("arrow.json") if for_sql => {}
        Some("arrow.opaque") if for_sql && is_huge(field).is_some() => {}
        // ClickHouse may know more of them, and read their fields as other types.
        Some(_) => return None,
    }
    Some(Arc::new(field.as_ref().clone().with_data_type(data_type).with_nullable(true)))
}

pub(super) fn extension(field: &Field) -> Option<&str> {
    field.metadata().get("ARROW:extension:name").map(String::as_str)
}

/// Says whether DuckDB's HUGEINT has a sign. Returns `None` for other fields.
pub(super) fn is_huge(field: &Field) -> Option<bool> {
    let told = field.metadata().get("ARROW:extension:metadata").map_or("", String::as_str);
    match field.data_type() {
        DataType::FixedSizeBinary(16) if told.contains("\"hugeint\"") => Some(true),
        DataType::FixedSizeBinary(16) if told.contains("\"uhugeint\"") => Some(false),
        _ => None,
    }
}

fn data_type(of: &DataType, for_sql: bool) -> Option<DataType> {
    use DataType::*;
    let read = match of {
        Boolean | Int8 | Int16 | Int32 | Int64 | UInt8 | UInt16 | UInt32 | UInt64 | Float32 | Float64 | Date32
        | Binary | LargeBinary | BinaryView => of.clone(),
        Utf8 => Binary,
        LargeUtf8 => LargeBinary,
        Utf8View => BinaryView,
        Time64(_) if for_sql => of.clone(),
        Timestamp(_, zone) => zone.as_deref().is_none_or(is_zone).then(|| of.clone())?,
        Decimal32(digits, scale) | Decimal64(digits, scale) | Decimal128(digits, scale) | Decimal256(digits, scale) => {
            let is_sound = (1..=76).contains(digits) && (0..=*digits as i8).contains(scale);
            is_sound.then(|| of.clone())?
        }
        FixedSizeBinary(width) => (*width > 0).then(|| of.clone())?,
        List(inner) => List(field(inner, for_sql)?),
        LargeList(inner) => LargeList(field(inner, for_sql)?),
        FixedSizeList(inner, count) => (*count > 0).then_some(FixedSizeList(field(inner, for_sql)?, *count))?,
        Struct(inner) => (!inner.is_empty()).then_some(Struct(fields(inner, for_sql)?))?,
        Map(entries, sorted) => Map(map_entries(entries, for_sql)?, *sorted),
        Dictionary(keys, values) => Dictionary(keys.clone(), Box::new(scalar(values, for_sql)?)),
        _ => return None,
    };
    Some(read)
}

/// Returns the entries of a map: a list of structs of two. Neither a struct nor its key is NULL.
fn map_entries(entries: &FieldRef, for_sql: bool) -> Option<FieldRef> {
    let DataType::Struct(inner) = entries.data_type() else { return None };
    let [key, value] = inner.as_ref() else { return None };
    let key = Arc::new(field(key, for_sql)?.as_ref().clone().with_nullable(false));
    let inner = DataType::Struct(Fields::from(vec![key, field(value, for_sql)?]));
    Some(Arc::new(entries.as_ref().clone().with_data_type(inner).with_nullable(false)))
}

fn scalar(values: &DataType, for_sql: bool) -> Option<DataType> {
    data_type(values, for_sql).filter(|values| !values.is_nested())
}

/// Says whether ClickHouse knows the time zone, which changes nothing here.
fn is_zone(name: &str) -> bool {
    name.is_empty() || jiff::tz::TimeZone::get(name).is_ok_and(|zone| zone.iana_name() == Some(name))
}
