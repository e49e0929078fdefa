//! Writes parameters as literals into a statement, so that either database reads the value that was bound.

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, RecordBatch};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::{ArrowError, DataType, TimeUnit};
use windrow_clickhouse::{ErrorCode, Exception};

use super::marks::Marks;
use super::Dialect;
use crate::error;

/// Returns the statement with the values of one row of parameters in it.
pub(crate) fn filled(
    dialect: Dialect,
    text: &str,
    marks: &Marks,
    parameters: &RecordBatch,
    row: usize,
) -> Result<String, Exception> {
    if parameters.num_columns() != marks.parameters {
        let (bound, wanted) = (parameters.num_columns(), marks.parameters);
        return Err(error::own(
            ErrorCode::BAD_ARGUMENTS,
            &format!("the statement has {wanted} parameters, and {bound} are bound"),
        ));
    }
    let literals: Result<Vec<_>, _> = parameters.columns().iter().map(|column| literal(dialect, column, row)).collect();
    let literals = literals?;
    // Blanks keep it apart from what it touches, and a minus in parentheses can't become a comment.
    Ok(marks.replaced(text, |parameter| format!(" {} ", literals[parameter])))
}

fn literal(dialect: Dialect, values: &dyn Array, row: usize) -> Result<String, Exception> {
    use DataType::*;
    if values.is_null(row) || values.data_type() == &Null {
        return Ok("NULL".to_owned());
    }
    Ok(match values.data_type() {
        Boolean | Int8 | Int16 | Int32 | Int64 | UInt8 | UInt16 | UInt32 | UInt64 => {
            in_parentheses(shown(values, row)?)
        }
        Float16 | Float32 | Float64 => float(dialect, shown(values, row)?),
        Utf8 => text(dialect, values.as_string::<i32>().value(row))?,
        LargeUtf8 => text(dialect, values.as_string::<i64>().value(row))?,
        Utf8View => text(dialect, values.as_string_view().value(row))?,
        Binary => binary(dialect, values.as_binary::<i32>().value(row)),
        LargeBinary => binary(dialect, values.as_binary::<i64>().value(row)),
        BinaryView => binary(dialect, values.as_binary_view().value(row)),
        FixedSizeBinary(_) => binary(dialect, values.as_fixed_size_binary().value(row)),
        Decimal32(digits, scale) | Decimal64(digits, scale) | Decimal128(digits, scale) | Decimal256(digits, scale) => {
            cast(dialect, &shown(values, row)?, &format!("DECIMAL({digits}, {scale})"))
        }
        Date32 | Date64 => date(dialect, shown(values, row)?),
        Time32(_) | Time64(_) if dialect == Dialect::DuckDb => cast(dialect, &shown(values, row)?, "TIME"),
        Timestamp(unit, zone) => timestamp(dialect, values, row, *unit, zone.is_some())?,
        Dictionary(_, of) => {
            let plain = arrow_cast::cast(values, of).map_err(failed)?;
            literal(dialect, &plain, row)?
        }
        other => {
            return Err(error::own(
                ErrorCode::NOT_IMPLEMENTED,
                &format!("a parameter of Arrow's type {other} can't be bound"),
            ))
        }
    })
}

fn shown(values: &dyn Array, row: usize) -> Result<String, Exception> {
    let options = FormatOptions::new().with_display_error(false);
    let formatter = ArrayFormatter::try_new(values, &options).map_err(failed)?;
    formatter.value(row).try_to_string().map_err(failed)
}

fn failed(error: ArrowError) -> Exception {
    error::own(ErrorCode::BAD_ARGUMENTS, &error.to_string())
}

fn in_parentheses(number: String) -> String {
    match number.starts_with('-') {
        true => format!("({number})"),
        false => number,
    }
}

fn float(dialect: Dialect, shown: String) -> String {
    match dialect {
        Dialect::DuckDb => cast(dialect, &shown, "DOUBLE"),
        Dialect::ClickHouse => in_parentheses(match shown.contains(['.', 'e', 'E', 'n']) {
            true => shown.to_ascii_lowercase(),
            false => format!("{shown}.0"),
        }),
    }
}

fn text(dialect: Dialect, value: &str) -> Result<String, Exception> {
    match (dialect, value.contains('\0')) {
        // It would end the statement.
        (Dialect::DuckDb, true) => {
            Err(error::own(ErrorCode::BAD_ARGUMENTS, "a text with a zero byte can't be bound: insert it as rows"))
        }
        _ => Ok(dialect.text(value)),
    }
}

fn binary(dialect: Dialect, value: &[u8]) -> String {
    let digits: String = value.iter().map(|byte| format!("{byte:02X}")).collect();
    match dialect {
        Dialect::DuckDb => format!("from_hex('{digits}')"),
        Dialect::ClickHouse => format!("unhex('{digits}')"),
    }
}

fn date(dialect: Dialect, shown: String) -> String {
    // A Date64 is shown with its time of day.
    let day = shown.split('T').next().unwrap_or_default().to_owned();
    match dialect {
        Dialect::DuckDb => cast(dialect, &day, "DATE"),
        Dialect::ClickHouse => cast(dialect, &day, "Date32"),
    }
}

fn timestamp(
    dialect: Dialect,
    values: &dyn Array,
    row: usize,
    unit: TimeUnit,
    has_zone: bool,
) -> Result<String, Exception> {
    let micros_type = DataType::Timestamp(TimeUnit::Microsecond, has_zone.then(|| "UTC".into()));
    let nanos_type = DataType::Timestamp(TimeUnit::Nanosecond, None);
    let (digits, wanted) = match unit {
        TimeUnit::Nanosecond if !has_zone => (9, nanos_type),
        _ => (6, micros_type),
    };
    let same = arrow_cast::cast(&values.slice(row, 1), &wanted).map_err(failed)?;
    let shown = shown(&same, 0)?;
    let moment = shown.replace('T', " ");
    Ok(match (dialect, has_zone) {
        (Dialect::DuckDb, true) => cast(dialect, &moment, "TIMESTAMPTZ"),
        (Dialect::DuckDb, false) if digits == 9 => cast(dialect, &moment, "TIMESTAMP_NS"),
        (Dialect::DuckDb, false) => cast(dialect, &moment, "TIMESTAMP"),
        (Dialect::ClickHouse, true) => {
            let micros = same.as_primitive::<TimestampMicrosecondType>().value(0);
            format!("fromUnixTimestamp64Micro(toInt64({micros}), 'UTC')")
        }
        (Dialect::ClickHouse, false) => cast(dialect, &moment, &format!("DateTime64({digits})")),
    })
}

fn cast(dialect: Dialect, value: &str, to: &str) -> String {
    format!("CAST({} AS {to})", dialect.text(value))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::*;

    use super::super::marks::marks;
    use super::*;

    fn of(dialect: Dialect, values: ArrayRef) -> String {
        let batch = RecordBatch::try_from_iter([("1", values)]).unwrap();
        let text = "?";
        filled(dialect, text, &marks(dialect, text), &batch, 0).unwrap().trim().to_owned()
    }

    #[test]
    fn values_are_written_as_either_database_reads_them() {
        let (duckdb, clickhouse) = (Dialect::DuckDb, Dialect::ClickHouse);
        let number: ArrayRef = Arc::new(Int64Array::from(vec![-5]));
        assert_eq!(of(duckdb, number), "(-5)");
        let text: ArrayRef = Arc::new(StringArray::from(vec![r"it's \ x"]));
        assert_eq!((of(duckdb, text.clone()), of(clickhouse, text)), (r"'it''s \ x'".into(), r"'it\'s \\ x'".into()));
        let float: ArrayRef = Arc::new(Float64Array::from(vec![f64::NEG_INFINITY]));
        assert_eq!(
            (of(duckdb, float.clone()), of(clickhouse, float)),
            ("CAST('-inf' AS DOUBLE)".into(), "(-inf)".into())
        );
        let whole: ArrayRef = Arc::new(Float64Array::from(vec![3.0]));
        assert_eq!(of(clickhouse, whole), "3.0");
        let bytes: ArrayRef = Arc::new(BinaryArray::from(vec![&[0u8, 255][..]]));
        assert_eq!(
            (of(duckdb, bytes.clone()), of(clickhouse, bytes)),
            ("from_hex('00FF')".into(), "unhex('00FF')".into())
        );
        let moment: ArrayRef = Arc::new(TimestampMicrosecondArray::from(vec![1_500_000]));
        assert_eq!(of(duckdb, moment.clone()), "CAST('1970-01-01 00:00:01.500' AS TIMESTAMP)");
        assert_eq!(of(clickhouse, moment), "CAST('1970-01-01 00:00:01.500' AS DateTime64(6))");
        let day: ArrayRef = Arc::new(Date32Array::from(vec![1]));
        assert_eq!(of(duckdb, day), "CAST('1970-01-02' AS DATE)");
        let nothing: ArrayRef = Arc::new(Int64Array::from(vec![None]));
        assert_eq!(of(duckdb, nothing), "NULL");
    }

    #[test]
    fn what_can_t_be_bound_is_refused() {
        let text = "SELECT ?, ?";
        let one = RecordBatch::try_from_iter([("1", Arc::new(Int64Array::from(vec![1])) as ArrayRef)]).unwrap();
        let marks = marks(Dialect::DuckDb, text);
        assert_eq!(filled(Dialect::DuckDb, text, &marks, &one, 0).unwrap_err().code, ErrorCode::BAD_ARGUMENTS);
    }
}
