//! Rows and values for people, as ClickHouse writes them.

use arrow_array::RecordBatch;
use serde_json::Value;
use windrow_columns::{Block, ColumnSpec, DataType};
use windrow_duckdb::record_batch;
use windrow_duckdb::results::{Encoder, Format, OutputSettings, ResultError, Statistics};

/// Writes the first rows in the format JSON, or says why they can't be.
pub(crate) fn rows_as_json(
    columns: &[String],
    types: &[DataType],
    block: &Block,
    limit: usize,
) -> Result<Vec<u8>, String> {
    let rows = record_batch(block, columns, types).map_err(|not_held| not_held.exception("").line)?;
    let rows = rows.slice(0, limit.min(rows.num_rows()));
    encoded(Format::Json, &rows).map_err(|error| error.to_string())
}

fn encoded(format: Format, rows: &RecordBatch) -> Result<Vec<u8>, ResultError> {
    let mut body = Vec::new();
    let mut encoder = Encoder::new(format, rows.schema(), Some(rows), OutputSettings::default())?;
    encoder.begin(&mut body);
    encoder.batch(rows, &mut body)?;
    encoder.finish(&Statistics::default(), &mut body)?;
    Ok(body)
}

/// Returns each column's values as ClickHouse writes them, or `None` for a type that can't be written here.
pub fn values_as_text(columns: &[ColumnSpec], block: &Block) -> Vec<Option<Vec<String>>> {
    let of_column = |(at, column)| of_column(column, Block::beside(vec![block.clone()], [(0, at)]));
    columns.iter().enumerate().map(of_column).collect()
}

fn of_column(column: &ColumnSpec, values: Block) -> Option<Vec<String>> {
    let rows =
        record_batch(&values, std::slice::from_ref(&column.name), std::slice::from_ref(&column.data_type)).ok()?;
    let lines = encoded(Format::JsonCompactEachRow { names: false, types: false }, &rows).ok()?;
    let text = String::from_utf8_lossy(&lines).into_owned();
    text.lines().map(|line| Some(shown(serde_json::from_str::<Vec<Value>>(line).ok()?.pop()?))).collect()
}

fn shown(value: Value) -> String {
    match value {
        Value::String(text) => text,
        Value::Null => "NULL".to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_columns::{read_json_each_row, DataType, DefaultKind, ReadPlan, ReadSettings};

    #[test]
    fn values_are_written_as_clickhouse_would() {
        let column = |(name, data_type): (&str, &str)| ColumnSpec {
            name: name.to_owned(),
            data_type: DataType::parse(data_type).expect("a known type"),
            default_kind: DefaultKind::None,
        };
        let columns =
            [("n", "UInt64"), ("s", "LowCardinality(Nullable(String))"), ("d", "Date"), ("a", "Array(UInt8)")];
        let columns: Vec<ColumnSpec> = columns.into_iter().map(column).collect();
        let plan = ReadPlan::new(columns.clone(), ReadSettings::default());
        let rows = "{\"n\":18446744073709551615,\"s\":\"é\\n\",\"d\":\"2026-01-31\",\"a\":[1,2]}\n{\"n\":0,\"s\":null,\"d\":\"1970-01-01\",\"a\":[]}";
        let Ok(parsed) = read_json_each_row(rows.as_bytes(), &plan) else { panic!("good rows") };
        let shown: Vec<Vec<String>> =
            values_as_text(&columns, &parsed.block).into_iter().map(|values| values.expect("known types")).collect();
        assert_eq!(
            shown,
            [["18446744073709551615", "0"], ["é\n", "NULL"], ["2026-01-31", "1970-01-01"], ["[1,2]", "[]"]]
        );
    }
}
