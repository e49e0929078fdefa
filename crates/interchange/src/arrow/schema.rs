//! Which Arrow schemas are read here, and as which types.

use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Fields, Schema};

/// The schema with bytes in place of texts, which ClickHouse doesn't hold to UTF-8 either, and NULL allowed
/// everywhere, which is not for the reader to judge. Nothing if a field is of a kind that is not read here.
pub(super) fn as_read(schema: &Schema) -> Option<Schema> {
    Some(Schema::new(fields(schema.fields())?))
}

fn fields(fields: &Fields) -> Option<Fields> {
    fields.iter().map(field).collect()
}

fn field(field: &FieldRef) -> Option<FieldRef> {
    let data_type = data_type(field.data_type())?;
    match extension(field) {
        None => {}
        Some("arrow.uuid") if data_type == DataType::FixedSizeBinary(16) => {}
        // ClickHouse may know more of them, and read their fields as other types.
        Some(_) => return None,
    }
    Some(Arc::new(field.as_ref().clone().with_data_type(data_type).with_nullable(true)))
}

pub(super) fn extension(field: &Field) -> Option<&str> {
    field.metadata().get("ARROW:extension:name").map(String::as_str)
}

fn data_type(of: &DataType) -> Option<DataType> {
    use DataType::*;
    let read = match of {
        Boolean | Int8 | Int16 | Int32 | Int64 | UInt8 | UInt16 | UInt32 | UInt64 | Float32 | Float64 | Date32
        | Binary | LargeBinary | BinaryView => of.clone(),
        Utf8 => Binary,
        LargeUtf8 => LargeBinary,
        Utf8View => BinaryView,
        Timestamp(_, zone) => zone.as_deref().is_none_or(is_zone).then(|| of.clone())?,
        Decimal32(digits, scale) | Decimal64(digits, scale) | Decimal128(digits, scale) | Decimal256(digits, scale) => {
            let is_sound = (1..=76).contains(digits) && (0..=*digits as i8).contains(scale);
            is_sound.then(|| of.clone())?
        }
        FixedSizeBinary(width) => (*width > 0).then(|| of.clone())?,
        List(inner) => List(field(inner)?),
        LargeList(inner) => LargeList(field(inner)?),
        FixedSizeList(inner, count) => (*count > 0).then_some(FixedSizeList(field(inner)?, *count))?,
        Struct(inner) => (!inner.is_empty()).then_some(Struct(fields(inner)?))?,
        Map(entries, sorted) => Map(map_entries(entries)?, *sorted),
        Dictionary(keys, values) => Dictionary(keys.clone(), Box::new(scalar(values)?)),
        _ => return None,
    };
    Some(read)
}

/// A map is a list of structs of two; neither a struct nor its key is NULL.
fn map_entries(entries: &FieldRef) -> Option<FieldRef> {
    let DataType::Struct(inner) = entries.data_type() else { return None };
    let [key, value] = inner.as_ref() else { return None };
    let key = Arc::new(field(key)?.as_ref().clone().with_nullable(false));
    let inner = DataType::Struct(Fields::from(vec![key, field(value)?]));
    Some(Arc::new(entries.as_ref().clone().with_data_type(inner).with_nullable(false)))
}

fn scalar(values: &DataType) -> Option<DataType> {
    data_type(values).filter(|values| !values.is_nested())
}

/// A zone changes nothing, but ClickHouse has to know it.
fn is_zone(name: &str) -> bool {
    name.is_empty() || jiff::tz::TimeZone::get(name).is_ok_and(|zone| zone.iana_name() == Some(name))
}
