//! Values of `{name:Type}`: ClickHouse's text of a value becomes a literal of DuckDB's, with its type.
//!
//! A value ends up inside of quotes, or is one of the few bare words below, whatever it holds: no value is ever SQL.

use windrow_columns::DataType;
use windrow_duckdb::statement::Parameter;
use windrow_sql::Dialect;

const MAX_DEPTH: usize = 16;
pub(super) const NOT_A_VALUE: &str = "it is not a value of that type";

/// Makes the literal for a value. `value` is the text of `param_name`, if there is one.
pub(super) fn parameter(value: Option<&str>, data_type: &str) -> Parameter {
    let compact = data_type.trim();
    if compact == "Identifier" {
        return match value {
            Some(name) => Parameter::Literal(Dialect::DuckDb.name(name)),
            None => Parameter::Missing,
        };
    }
    let Ok(parsed) = DataType::parse(compact) else {
        // A STRUCT of DuckDB's, as far as can be told, unless somebody gave it a value.
        return match value {
            Some(_) => Parameter::Wrong(format!("{compact} is not known here")),
            None => Parameter::NotOne,
        };
    };
    let Some(value) = value else { return Parameter::Missing };
    match literal(&parsed, value) {
        Ok(sql) => Parameter::Literal(sql),
        Err(cause) => Parameter::Wrong(cause),
    }
}

/// Makes the literal for a value that stands alone.
fn literal(data_type: &DataType, text: &str) -> Result<String, String> {
    match data_type {
        DataType::Nullable(inner) | DataType::LowCardinality(inner) => match text {
            "\\N" | "NULL" if matches!(data_type, DataType::Nullable(_)) => Ok(null(inner)?),
            _ => literal(inner, text),
        },
        DataType::Array(_) => {
            let mut rest = text.trim();
            let sql = array(data_type, &mut rest, 0)?;
            rest.trim().is_empty().then_some(sql).ok_or_else(|| NOT_A_VALUE.to_owned())
        }
        _ => scalar(data_type, &unescaped(text)?),
    }
}

fn null(inner: &DataType) -> Result<String, String> {
    Ok(format!("CAST(NULL AS {})", duckdb_type(inner)?))
}

fn scalar(data_type: &DataType, value: &str) -> Result<String, String> {
    let name = duckdb_type(data_type)?;
    let all_digits = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
    let is_moment = matches!(data_type, DataType::DateTime { .. } | DataType::DateTime64 { .. });
    let fits = match data_type {
        DataType::Bool => return bool_literal(value),
        _ if is_moment && all_digits && value.len() <= 12 => {
            // Seconds since 1970.
            return Ok(format!("make_timestamp({value}000000)"));
        }
        _ if is_integer(data_type) => {
            all_digits || value.strip_prefix('-').is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()))
        }
        DataType::Float32 | DataType::Float64 | DataType::BFloat16 => value.parse::<f64>().is_ok(),
        _ => true,
    };
    match fits {
        true => Ok(format!("CAST({} AS {name})", Dialect::DuckDb.text(value))),
        false => Err(NOT_A_VALUE.to_owned()),
    }
}

pub(super) fn is_integer(data_type: &DataType) -> bool {
    use DataType::*;
    matches!(data_type, UInt8 | UInt16 | UInt32 | UInt64 | UInt128 | Int8 | Int16 | Int32 | Int64 | Int128)
}

pub(super) fn bool_literal(value: &str) -> Result<String, String> {
    match value.to_ascii_lowercase().as_str() {
        "1" | "true" => Ok("true".to_owned()),
        "0" | "false" => Ok("false".to_owned()),
        _ => Err(NOT_A_VALUE.to_owned()),
    }
}

fn duckdb_type(data_type: &DataType) -> Result<String, String> {
    use DataType::*;
    Ok(match data_type {
        Bool => "BOOLEAN".to_owned(),
        Int8 => "TINYINT".to_owned(),
        Int16 => "SMALLINT".to_owned(),
        Int32 => "INTEGER".to_owned(),
        Int64 => "BIGINT".to_owned(),
        Int128 => "HUGEINT".to_owned(),
        UInt8 => "UTINYINT".to_owned(),
        UInt16 => "USMALLINT".to_owned(),
        UInt32 => "UINTEGER".to_owned(),
        UInt64 => "UBIGINT".to_owned(),
        UInt128 => "UHUGEINT".to_owned(),
        Float32 | BFloat16 => "FLOAT".to_owned(),
        Float64 => "DOUBLE".to_owned(),
        Decimal { precision, scale } if *precision <= 38 => format!("DECIMAL({precision},{scale})"),
        Date | Date32 => "DATE".to_owned(),
        DateTime { .. } | DateTime64 { .. } => "TIMESTAMP".to_owned(),
        Time | Time64 { .. } => "TIME".to_owned(),
        Uuid => "UUID".to_owned(),
        String | FixedString(_) | Enum8(_) | Enum16(_) | Ipv4 | Ipv6 => "VARCHAR".to_owned(),
        Nullable(inner) | LowCardinality(inner) => return duckdb_type(inner),
        Array(inner) => format!("{}[]", duckdb_type(inner)?),
        other => return Err(format!("{other} is not taken as a parameter in front of DuckDB")),
    })
}

/// Takes an array (`['a', 'b']`, `[1, 2]`) off the start of `rest`, and makes the literal for it.
fn array(data_type: &DataType, rest: &mut &str, depth: usize) -> Result<String, String> {
    let wrong = || NOT_A_VALUE.to_owned();
    let DataType::Array(element) = data_type else { return element_literal(data_type, rest) };
    if depth > MAX_DEPTH {
        return Err(wrong());
    }
    let mut elements = Vec::new();
    *rest = rest.strip_prefix('[').ok_or_else(wrong)?.trim_start();
    while !rest.starts_with(']') {
        elements.push(array(element, rest, depth + 1)?);
        *rest = rest.trim_start();
        match rest.strip_prefix(',') {
            Some(behind) => *rest = behind.trim_start(),
            None if rest.starts_with(']') => {}
            None => return Err(wrong()),
        }
    }
    *rest = &rest[1..];
    Ok(format!("CAST([{}] AS {})", elements.join(", "), duckdb_type(data_type)?))
}

fn element_literal(data_type: &DataType, rest: &mut &str) -> Result<String, String> {
    let wrong = || NOT_A_VALUE.to_owned();
    if let Some(quoted_text) = rest.strip_prefix('\'') {
        let end = closing_quote(quoted_text).ok_or_else(wrong)?;
        let value = unescaped(&quoted_text[..end])?;
        *rest = &quoted_text[end + 1..];
        return scalar_inside(data_type, &value);
    }
    let end = rest.find([',', ']']).ok_or_else(wrong)?;
    let value = rest[..end].trim();
    *rest = &rest[end..];
    match data_type {
        DataType::Nullable(inner) if value.eq_ignore_ascii_case("null") => null(inner),
        _ => scalar_inside(data_type, value),
    }
}

fn scalar_inside(data_type: &DataType, value: &str) -> Result<String, String> {
    match data_type {
        DataType::Nullable(inner) | DataType::LowCardinality(inner) => scalar_inside(inner, value),
        _ => scalar(data_type, value),
    }
}

/// Finds the first quote that no backslash escapes.
fn closing_quote(text: &str) -> Option<usize> {
    let mut escaped = false;
    text.bytes().position(|byte| {
        let ends = byte == b'\'' && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends
    })
}

/// Returns the text without its escapes, which are those of ClickHouse's TabSeparated.
pub(super) fn unescaped(text: &str) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        if character != '\\' {
            out.push(character);
            continue;
        }
        match characters.next() {
            Some('n') => out.push('\n'),
            Some('t') => out.push('\t'),
            Some('r') => out.push('\r'),
            Some('0') => out.push('\0'),
            Some('b') => out.push('\u{8}'),
            Some('f') => out.push('\u{c}'),
            Some('a') => out.push('\u{7}'),
            Some('v') => out.push('\u{b}'),
            Some('e') => out.push('\u{1b}'),
            Some(other @ ('\\' | '\'' | '"' | '`' | '/' | '=')) => out.push(other),
            Some(other) => out.extend(['\\', other]),
            None => return Err("it ends in a backslash".to_owned()),
        }
    }
    match out.contains('\0') {
        // DuckDB's parser ends a statement there.
        true => Err("it has a zero byte in it".to_owned()),
        false => Ok(out),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sql(value: &str, data_type: &str) -> String {
        match parameter(Some(value), data_type) {
            Parameter::Literal(sql) => sql,
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn values_become_literals_of_their_type() {
        assert_eq!(sql("5", "UInt8"), "CAST('5' AS UTINYINT)");
        assert_eq!(sql("it's\\t\\\\", "String"), "CAST('it''s\t\\' AS VARCHAR)");
        assert_eq!(sql("\\N", "Nullable(Int32)"), "CAST(NULL AS INTEGER)");
        assert_eq!(sql("1700000000", "DateTime"), "make_timestamp(1700000000000000)");
        assert_eq!(sql("a\"b", "Identifier"), "\"a\"\"b\"");
        assert_eq!(sql("true", "Bool"), "true");
        assert_eq!(
            sql("['a, \\'b', 'c]']", "Array(String)"),
            "CAST([CAST('a, ''b' AS VARCHAR), CAST('c]' AS VARCHAR)] AS VARCHAR[])"
        );
        assert_eq!(sql("[[1],[]]", "Array(Array(Int8))").matches("TINYINT").count(), 4);
        assert_eq!(parameter(None, "UInt8"), Parameter::Missing);
        assert_eq!(parameter(None, "b"), Parameter::NotOne);
    }

    #[test]
    fn what_is_no_value_is_refused() {
        for (value, data_type) in [
            ("x", "UInt8"),
            ("--", "Int64"),
            ("1; drop table t", "Int32"),
            ("1", "Array(UInt8)"),
            ("[1", "Array(UInt8)"),
            ("[1] or 1", "Array(UInt8)"),
            ("['a", "Array(String)"),
            ("maybe", "Bool"),
            ("\\0", "String"),
            ("a\\", "String"),
            ("1", "Zork"),
        ] {
            assert!(matches!(parameter(Some(value), data_type), Parameter::Wrong(_)), "{value} {data_type}");
        }
    }

    #[test]
    fn no_value_leaves_its_quotes() {
        let mut random = fastrand::Rng::with_seed(11);
        let types =
            ["String", "Array(String)", "Identifier", "Date", "Nullable(String)", "UUID", "Array(Nullable(String))"];
        for _ in 0..20_000 {
            let characters = ['\'', '"', '\\', '[', ']', ',', 'n', ';', '-', 'é', ' '];
            let value: String = (0..random.usize(..12)).map(|_| *random.choice(&characters).unwrap()).collect();
            let data_type = *random.choice(&types).unwrap();
            if let Parameter::Literal(sql) = parameter(Some(&value), data_type) {
                // As DuckDB reads it, there is no open quote and nothing outside of quotes but what is written here.
                let mark = if data_type == "Identifier" { '"' } else { '\'' };
                let outside: String = sql.split(mark).step_by(2).collect();
                assert_eq!(sql.matches(mark).count() % 2, 0, "{value} {sql}");
                let plain = |c: char| c.is_ascii_alphabetic() || matches!(c, '(' | ')' | '[' | ']' | ',' | ' ');
                assert!(outside.chars().all(plain), "{value} {sql}");
            }
        }
    }
}
