//! Makes a table for rows of an Arrow schema.

use arrow_schema::{DataType, Field, Schema, TimeUnit};
use windrow_clickhouse::{ErrorCode, Exception};

use super::Dialect;
use crate::error;

/// The deepest nesting of types; no table has a deeper one.
const MAX_DEPTH: usize = 20;

/// Returns the statement that creates a table. `table` is its name as it stands in a statement.
pub(crate) fn create_table(dialect: Dialect, table: &str, schema: &Schema) -> Result<String, Exception> {
    if schema.fields().is_empty() {
        return Err(error::own(ErrorCode::BAD_ARGUMENTS, "rows without columns make no table"));
    }
    let columns: Result<Vec<_>, _> = schema.fields().iter().map(|field| column(dialect, field)).collect();
    let columns = columns?.join(", ");
    Ok(match dialect {
        Dialect::DuckDb => format!("CREATE TABLE {table} ({columns})"),
        Dialect::ClickHouse => format!("CREATE TABLE {table} ({columns}) ENGINE = MergeTree ORDER BY tuple()"),
    })
}

fn column(dialect: Dialect, field: &Field) -> Result<String, Exception> {
    let name = dialect.name(field.name());
    Ok(match dialect {
        Dialect::DuckDb => {
            let required = if field.is_nullable() { "" } else { " NOT NULL" };
            let named = |why: String| error::own(ErrorCode::UNKNOWN_TYPE, &format!("column {:?}: {why}", field.name()));
            let kind = windrow_duckdb::duckdb_type_of_arrow(field).map_err(named)?;
            format!("{name} {kind}{required}")
        }
        Dialect::ClickHouse => format!("{name} {}", clickhouse_type(field, 0)?),
    })
}

fn clickhouse_type(field: &Field, depth: usize) -> Result<String, Exception> {
    use DataType::*;
    if depth > MAX_DEPTH {
        return Err(too_deep());
    }
    let inner = |field: &Field| clickhouse_type(field, depth + 1);
    let plain = match field.data_type() {
        // ClickHouse has no NULL in place of these: one that comes is refused when it is stored.
        List(item) | LargeList(item) | ListView(item) | LargeListView(item) | FixedSizeList(item, _) => {
            return Ok(format!("Array({})", inner(item)?));
        }
        Struct(fields) => return Ok(format!("Tuple({})", members(fields, inner)?)),
        Map(entries, _) => {
            let (key, value) = key_and_value(entries)?;
            let key = key.clone().with_nullable(false);
            return Ok(format!("Map({}, {})", inner(&key)?, inner(value)?));
        }
        Dictionary(_, of) => {
            let of = Field::new("", of.as_ref().clone(), field.is_nullable());
            return match of.data_type() {
                Utf8 | LargeUtf8 | Utf8View => Ok(format!("LowCardinality({})", inner(&of)?)),
                _ => inner(&of),
            };
        }
        Null => return Ok("Nullable(String)".to_owned()),
        Boolean => "Bool".into(),
        Int8 => "Int8".into(),
        Int16 => "Int16".into(),
        Int32 => "Int32".into(),
        Int64 | Duration(_) => "Int64".into(),
        UInt8 => "UInt8".into(),
        UInt16 => "UInt16".into(),
        UInt32 => "UInt32".into(),
        UInt64 => "UInt64".into(),
        Float16 | Float32 => "Float32".into(),
        Float64 => "Float64".into(),
        FixedSizeBinary(16) if extension(field) == Some("arrow.uuid") => "UUID".into(),
        FixedSizeBinary(length) => format!("FixedString({length})"),
        Utf8 | LargeUtf8 | Utf8View | Binary | LargeBinary | BinaryView => "String".to_owned(),
        Decimal32(digits, scale) | Decimal64(digits, scale) | Decimal128(digits, scale) | Decimal256(digits, scale)
            if *scale >= 0 =>
        {
            format!("Decimal({digits}, {scale})")
        }
        Date32 => "Date32".into(),
        Date64 => "DateTime64(3)".into(),
        Timestamp(unit, zone) => {
            let zone = zone.as_ref().map(|zone| format!(", {}", Dialect::ClickHouse.text(zone))).unwrap_or_default();
            format!("DateTime64({}{zone})", digits(*unit))
        }
        Time32(unit) | Time64(unit) => format!("Time64({})", digits(*unit)),
        _ => return Err(no_type(field)),
    };
    Ok(if field.is_nullable() { format!("Nullable({plain})") } else { plain })
}

fn digits(unit: TimeUnit) -> u8 {
    match unit {
        TimeUnit::Second => 0,
        TimeUnit::Millisecond => 3,
        TimeUnit::Microsecond => 6,
        TimeUnit::Nanosecond => 9,
    }
}

fn members(
    fields: &arrow_schema::Fields,
    inner: impl Fn(&Field) -> Result<String, Exception>,
) -> Result<String, Exception> {
    let member = |field: &Field| Ok(format!("{} {}", Dialect::ClickHouse.name(field.name()), inner(field)?));
    let members: Result<Vec<_>, Exception> = fields.iter().map(|field| member(field)).collect();
    Ok(members?.join(", "))
}

fn key_and_value(entries: &Field) -> Result<(&Field, &Field), Exception> {
    match entries.data_type() {
        DataType::Struct(fields) if fields.len() == 2 => Ok((&fields[0], &fields[1])),
        _ => Err(no_type(entries)),
    }
}

fn extension(field: &Field) -> Option<&str> {
    field.metadata().get("ARROW:extension:name").map(String::as_str)
}

fn no_type(field: &Field) -> Exception {
    let text = format!("no type of the database holds column {:?} of Arrow's type {}", field.name(), field.data_type());
    error::own(ErrorCode::UNKNOWN_TYPE, &text)
}

fn too_deep() -> Exception {
    error::own(ErrorCode::BAD_ARGUMENTS, &format!("types inside types are nested deeper than {MAX_DEPTH}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields() -> Schema {
        let item = Field::new("item", DataType::Int32, true);
        Schema::new(vec![
            Field::new("n", DataType::Int64, false),
            Field::new("it\"s`", DataType::Utf8, true),
            Field::new("l", DataType::List(item.into()), true),
            Field::new("d", DataType::Decimal128(18, 3), true),
            Field::new("at", DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())), false),
        ])
    }

    #[test]
    fn tables_are_made_for_both() {
        assert_eq!(
            create_table(Dialect::DuckDb, "t", &fields()).unwrap(),
            "CREATE TABLE t (\"n\" BIGINT NOT NULL, \"it\"\"s`\" VARCHAR, \"l\" INTEGER[], \"d\" DECIMAL(18,3), \
             \"at\" TIMESTAMP WITH TIME ZONE NOT NULL)"
        );
        assert_eq!(
            create_table(Dialect::ClickHouse, "t", &fields()).unwrap(),
            "CREATE TABLE t (`n` Int64, `it\"s\\`` Nullable(String), `l` Array(Nullable(Int32)), `d` Nullable(Decimal(18, 3)), \
             `at` DateTime64(6, 'UTC')) ENGINE = MergeTree ORDER BY tuple()"
        );
    }

    #[test]
    fn what_has_no_type_is_refused_by_name() {
        let mut nested = Field::new("deep", DataType::Int8, true);
        for _ in 0..MAX_DEPTH + 2 {
            nested = Field::new("deep", DataType::List(nested.into()), true);
        }
        assert_eq!(
            create_table(Dialect::ClickHouse, "t", &Schema::new(vec![nested])).unwrap_err().code,
            ErrorCode::BAD_ARGUMENTS
        );
        for dialect in [Dialect::DuckDb, Dialect::ClickHouse] {
            assert_eq!(create_table(dialect, "t", &Schema::empty()).unwrap_err().code, ErrorCode::BAD_ARGUMENTS);
            let union = Field::new(
                "u",
                DataType::RunEndEncoded(
                    Field::new("e", DataType::Int32, false).into(),
                    Field::new("v", DataType::Utf8, true).into(),
                ),
                true,
            );
            let refused = create_table(dialect, "t", &Schema::new(vec![union])).unwrap_err();
            assert!(refused.line.contains("\"u\""), "{}", refused.line);
        }
    }
}
