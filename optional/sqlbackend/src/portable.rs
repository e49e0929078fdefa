//! Values of `{name:Type}` as literals that most databases read alike.
//!
//! Numbers are cast; a text, a time and a UUID stand in quotes and take the type of what they are compared with.

use windrow_columns::DataType;
use windrow_duckdb::statement::Parameter;
use windrow_sql::Dialect;

use super::parameters::{bool_literal, is_integer, unescaped, NOT_A_VALUE};

/// Makes the literal for a value. `value` is the text of `param_name`, if there is one. With
/// `plain_backslashes`, a backslash in a string means itself.
pub(super) fn parameter(value: Option<&str>, data_type: &str, plain_backslashes: bool) -> Parameter {
    let compact = data_type.trim();
    let parsed = match compact {
        "Identifier" => None,
        compact => match DataType::parse(compact) {
            Ok(parsed) => Some(parsed),
            Err(_) => return Parameter::Wrong(format!("{compact} is not known here")),
        },
    };
    let Some(value) = value else { return Parameter::Missing };
    // Where a backslash escapes a quote, what is behind it would be SQL.
    if value.contains('\\') && !plain_backslashes && value != "\\N" {
        return Parameter::Wrong("a backslash can't be written in a way that every database reads".to_owned());
    }
    let sql = match parsed {
        None => Ok(Dialect::DuckDb.name(value)),
        Some(data_type) => literal(&data_type, value),
    };
    sql.map_or_else(Parameter::Wrong, Parameter::Literal)
}

fn literal(data_type: &DataType, text: &str) -> Result<String, String> {
    match data_type {
        DataType::Nullable(_) if matches!(text, "\\N" | "NULL") => Ok("NULL".to_owned()),
        DataType::Nullable(inner) | DataType::LowCardinality(inner) => literal(inner, text),
        _ => scalar(data_type, &unescaped(text)?),
    }
}

fn scalar(data_type: &DataType, value: &str) -> Result<String, String> {
    let quoted = Dialect::DuckDb.text(value);
    let digits = value.strip_prefix('-').unwrap_or(value);
    let is_whole = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let cast = match data_type {
        DataType::Bool => return bool_literal(value),
        DataType::UInt64 | DataType::UInt128 | DataType::Int128 if is_whole => "NUMERIC(38, 0)".to_owned(),
        _ if is_integer(data_type) && is_whole => "BIGINT".to_owned(),
        DataType::Float32 | DataType::Float64 if value.parse::<f64>().is_ok() => "DOUBLE PRECISION".to_owned(),
        DataType::Decimal { precision, scale } if *precision <= 38 => format!("NUMERIC({precision}, {scale})"),
        _ if is_integer(data_type) => return Err(NOT_A_VALUE.to_owned()),
        DataType::Float32 | DataType::Float64 => return Err(NOT_A_VALUE.to_owned()),
        DataType::Date | DataType::Date32 | DataType::DateTime { .. } | DataType::DateTime64 { .. } if is_whole => {
            return Err("a time is written as YYYY-MM-DD hh:mm:ss here".to_owned());
        }
        DataType::Array(_) | DataType::Map(..) | DataType::Tuple(_) => {
            return Err(format!("{data_type} is not taken as a parameter with this backend"));
        }
        _ => return Ok(quoted),
    };
    Ok(format!("CAST({quoted} AS {cast})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sql(data_type: &str, value: &str) -> Result<String, String> {
        match parameter(Some(value), data_type, false) {
            Parameter::Literal(sql) => Ok(sql),
            Parameter::Wrong(why) => Err(why),
            other => Err(format!("{other:?}")),
        }
    }

    #[test]
    fn values_are_literals() {
        assert_eq!(sql("UInt8", "5").as_deref(), Ok("CAST('5' AS BIGINT)"));
        assert_eq!(sql("String", "it's").as_deref(), Ok("'it''s'"));
        assert_eq!(sql("Date", "2020-01-02").as_deref(), Ok("'2020-01-02'"));
        assert_eq!(sql("Nullable(Int32)", "\\N").as_deref(), Ok("NULL"));
        assert_eq!(sql("Identifier", "a\"b").as_deref(), Ok("\"a\"\"b\""));
        for (data_type, value) in [("Int8", "1 OR 1"), ("String", "\\' OR 1 --"), ("Array(Int8)", "[1]"), ("Date", "5")]
        {
            assert!(sql(data_type, value).is_err(), "{data_type} {value}");
        }
        assert_eq!(parameter(Some("a\\tb"), "String", true), Parameter::Literal("'a\tb'".to_owned()));
        assert_eq!(parameter(None, "String", true), Parameter::Missing);
    }
}
