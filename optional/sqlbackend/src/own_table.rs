//! Tables of `system` that the gateway keeps itself, in DuckDB's SQL: a query over their rows as JSON, in the table's
//! place.

use serde_json::Value;
use windrow_gateway::sql_backend::OwnRows;

/// Writes the query that stands for a table.
pub(super) fn subquery(own: OwnRows) -> String {
    let OwnRows { columns, rows, .. } = own;
    let (mut shown, mut structure) = (Vec::new(), Vec::new());
    for (name, data_type) in columns {
        let StoredForm { storage, conversion } = kept(data_type);
        let quoted = format!("r.\"{name}\"");
        shown.push(format!("{} AS \"{name}\"", conversion.replace('?', &quoted)));
        structure.push(format!("\"{name}\":\"{storage}\""));
    }
    let rows = Value::Array(rows.into_iter().map(without_zero_bytes).collect());
    format!(
        "(SELECT {} FROM (SELECT unnest(from_json('{}', '[{{{}}}]')) AS r))",
        shown.join(", "),
        rows.to_string().replace('\'', "''"),
        structure.join(",")
    )
}

/// The DuckDB type that a value has in the JSON, and the SQL that makes the table's value of it, at the `?`.
struct StoredForm {
    storage: &'static str,
    conversion: &'static str,
}

fn kept(data_type: &str) -> StoredForm {
    let (storage, conversion) = match data_type {
        "UInt64" => ("UBIGINT", "?"),
        "UInt32" => ("UINTEGER", "?"),
        "Int32" => ("INTEGER", "?"),
        "Nullable(Int32)" => ("INTEGER", "?"),
        "Nullable(Int64)" => ("BIGINT", "?"),
        "Float64" | "Nullable(Float64)" => ("DOUBLE", "?"),
        "Date" => ("INTEGER", "(DATE '1970-01-01' + ?)"),
        "DateTime" => ("BIGINT", "make_timestamp(? * 1000000)"),
        "DateTime64(6)" | "Nullable(DateTime64(6))" => ("BIGINT", "make_timestamp(?)"),
        "Array(String)" => ("VARCHAR[]", "?"),
        "Array(UInt64)" => ("UBIGINT[]", "?"),
        _ => ("VARCHAR", "?"),
    };
    StoredForm { storage, conversion }
}

/// Replaces zero bytes in strings: DuckDB reads no JSON that has them.
fn without_zero_bytes(value: Value) -> Value {
    match value {
        Value::String(text) if text.contains('\0') => Value::String(text.replace('\0', "\u{FFFD}")),
        Value::Array(values) => Value::Array(values.into_iter().map(without_zero_bytes).collect()),
        Value::Object(fields) => {
            Value::Object(fields.into_iter().map(|(name, value)| (name, without_zero_bytes(value))).collect())
        }
        other => other,
    }
}
