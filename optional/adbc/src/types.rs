//! The DuckDB types that describe the columns of other databases. `docs/adbc.md` has the same table.
//!
//! A type without counterpart is written as text, which the database reads itself, where it can: PostgreSQL
//! casts a text to any of its types, and refuses a text that is none of its values.

use std::sync::Arc;

use arrow_schema::{DataType, Field, TimeUnit};
use windrow_duckdb::duckdb_type_of_arrow;

/// The form in which a column is written.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Kind {
    /// The column is written as values of this type.
    Values(String),
    /// The column is written as texts, which a statement casts.
    Texts,
    /// The column is written as JSON, whose texts a statement casts.
    CastJson,
    /// The column can't be written. The text says why.
    NotWritten(String),
}

impl Kind {
    /// Returns DuckDB's type for it.
    pub(crate) fn duckdb_type(&self) -> &str {
        match self {
            Kind::Values(duckdb) => duckdb,
            Kind::Texts => "VARCHAR",
            Kind::CastJson => "JSON",
            Kind::NotWritten(_) => "",
        }
    }
}

fn values(duckdb: &str) -> Kind {
    Kind::Values(duckdb.to_owned())
}

/// Returns the form for a type of PostgreSQL, written as `format_type` does. `names` are those of an enum, in
/// DuckDB's spelling.
pub(crate) fn of_postgresql(own_type: &str, names: Option<&str>) -> Kind {
    if let Some(names) = names {
        return Kind::Values(format!("ENUM({names})"));
    }
    if let Some(element) = own_type.strip_suffix("[]") {
        return match of_postgresql(element, None) {
            Kind::Values(duckdb) => Kind::Values(format!("{duckdb}[]")),
            _ => Kind::Texts,
        };
    }
    if let Some(digits) = own_type.strip_prefix("numeric(") {
        return decimal(digits.trim_end_matches(')')).map_or(Kind::Texts, Kind::Values);
    }
    // Lengths and precisions are PostgreSQL's to check; a precision of times it rounds to.
    let name = own_type.split('(').next().unwrap_or(own_type).trim_end();
    match own_type {
        "boolean" => values("BOOLEAN"),
        "smallint" => values("SMALLINT"),
        "integer" => values("INTEGER"),
        "bigint" => values("BIGINT"),
        "real" => values("FLOAT"),
        "double precision" => values("DOUBLE"),
        "text" | "name" => values("VARCHAR"),
        _ if matches!(name, "character varying" | "character") => values("VARCHAR"),
        "bytea" => values("BLOB"),
        "date" => values("DATE"),
        "time without time zone" => values("TIME"),
        "timestamp without time zone" => values("TIMESTAMP"),
        "timestamp with time zone" => values("TIMESTAMP WITH TIME ZONE"),
        "uuid" => values("UUID"),
        "json" => values("JSON"),
        "jsonb" => Kind::CastJson,
        _ => Kind::Texts,
    }
}

/// Returns the type for digits such as `18,3`, if it has a counterpart.
fn decimal(digits: &str) -> Option<String> {
    let (precision, scale) = digits.split_once(',')?;
    let (precision, scale): (u8, i8) = (precision.parse().ok()?, scale.parse().ok()?);
    let fits = precision <= 38 && scale >= 0 && u8::try_from(scale).ok()? <= precision;
    fits.then(|| format!("DECIMAL({precision},{scale})"))
}

/// Returns the form for a type of SQLite by the words of its declaration, as SQLite itself does. The driver
/// writes times as texts.
pub(crate) fn of_sqlite(own_type: &str) -> Kind {
    let declared = own_type.to_uppercase();
    let has = |word: &str| declared.contains(word);
    match declared.split('(').next().unwrap_or_default().trim_end() {
        "BOOLEAN" | "BOOL" => values("BOOLEAN"),
        "DATE" => values("DATE"),
        "DATETIME" | "TIMESTAMP" => values("TIMESTAMP"),
        _ if has("INT") => values("BIGINT"),
        _ if has("CHAR") || has("CLOB") || has("TEXT") => values("VARCHAR"),
        _ if has("BLOB") => values("BLOB"),
        _ if has("REAL") || has("FLOA") || has("DOUB") => values("DOUBLE"),
        // SQLite keeps such numbers as floats.
        _ if has("NUMERIC") || has("DECIMAL") => values("DOUBLE"),
        _ => values("VARCHAR"),
    }
}

/// Returns the form for a column as any driver tells it.
pub(crate) fn of_arrow(field: &Field) -> Kind {
    match field.metadata().get("ARROW:extension:name").map(String::as_str) {
        None | Some("arrow.json" | "arrow.uuid" | "arrow.bool8") => {}
        Some(other) => return Kind::NotWritten(format!("values of the type {other} can't be inserted")),
    }
    duckdb_type_of_arrow(field).map_or_else(Kind::NotWritten, Kind::Values)
}

/// Returns the field that a driver takes for values of a type of DuckDB. `None`: it is not one of those above.
pub(crate) fn field(name: &str, duckdb: &str) -> Option<Field> {
    Some(Field::new(name, arrow(duckdb)?, true))
}

fn arrow(duckdb: &str) -> Option<DataType> {
    if let Some(element) = duckdb.strip_suffix("[]") {
        return Some(DataType::List(Arc::new(Field::new("item", arrow(element)?, true))));
    }
    if let Some(digits) = duckdb.strip_prefix("DECIMAL(") {
        let (precision, scale) = digits.trim_end_matches(')').split_once(',')?;
        return Some(DataType::Decimal128(precision.parse().ok()?, scale.trim().parse().ok()?));
    }
    if duckdb.starts_with("ENUM(") {
        return Some(DataType::Utf8);
    }
    Some(match duckdb {
        "BOOLEAN" => DataType::Boolean,
        "TINYINT" => DataType::Int8,
        "SMALLINT" => DataType::Int16,
        "INTEGER" => DataType::Int32,
        "BIGINT" => DataType::Int64,
        "UTINYINT" => DataType::UInt8,
        "USMALLINT" => DataType::UInt16,
        "UINTEGER" => DataType::UInt32,
        "UBIGINT" => DataType::UInt64,
        "FLOAT" => DataType::Float32,
        "DOUBLE" => DataType::Float64,
        "VARCHAR" | "JSON" => DataType::Utf8,
        "BLOB" => DataType::Binary,
        "DATE" => DataType::Date32,
        "TIME" => DataType::Time64(TimeUnit::Microsecond),
        "TIME_NS" => DataType::Time64(TimeUnit::Nanosecond),
        "TIMESTAMP" => DataType::Timestamp(TimeUnit::Microsecond, None),
        "TIMESTAMP_S" => DataType::Timestamp(TimeUnit::Second, None),
        "TIMESTAMP_MS" => DataType::Timestamp(TimeUnit::Millisecond, None),
        "TIMESTAMP_NS" => DataType::Timestamp(TimeUnit::Nanosecond, None),
        "TIMESTAMP WITH TIME ZONE" => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        "UUID" => DataType::FixedSizeBinary(16),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn postgresqls_types_have_counterparts() {
        let values = |own: &str| match of_postgresql(own, None) {
            Kind::Values(duckdb) => duckdb,
            other => format!("{other:?}"),
        };
        assert_eq!(values("numeric(18,3)"), "DECIMAL(18,3)");
        for other in ["numeric", "numeric(40,2)", "numeric(3,-2)", "numeric(3,5)", "inet", "interval", "inet[]"] {
            assert_eq!(of_postgresql(other, None), Kind::Texts, "{other}");
        }
        assert_eq!(values("character varying(10)"), "VARCHAR");
        assert_eq!(values("timestamp with time zone[]"), "TIMESTAMP WITH TIME ZONE[]");
        assert_eq!(of_postgresql("mood", Some("'a', 'it''s'")), Kind::Values("ENUM('a', 'it''s')".to_owned()));
        assert_eq!(of_postgresql("jsonb", None), Kind::CastJson);
    }

    #[test]
    fn sqlites_declarations_are_read_as_it_reads_them() {
        let pairs = [
            ("INTEGER", "BIGINT"),
            ("UNSIGNED BIG INT", "BIGINT"),
            ("varchar(20)", "VARCHAR"),
            ("DECIMAL(10,5)", "DOUBLE"),
            ("datetime", "TIMESTAMP"),
            ("", "VARCHAR"),
            ("uuid", "VARCHAR"),
            ("DOUBLE PRECISION", "DOUBLE"),
        ];
        for (declared, wanted) in pairs {
            assert_eq!(of_sqlite(declared), Kind::Values(wanted.to_owned()), "{declared}");
        }
    }

    #[test]
    fn every_type_of_duckdbs_here_is_one_that_drivers_take() {
        for own in ["boolean", "bigint", "numeric(38,38)", "uuid", "json", "date[]", "text", "bytea"] {
            let Kind::Values(duckdb) = of_postgresql(own, None) else { panic!("{own}") };
            assert!(field("x", &duckdb).is_some(), "{own}");
        }
    }
}
