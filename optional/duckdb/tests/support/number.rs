//! Runs a query that gives one number.

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use windrow_duckdb::DuckDb;

use crate::support::session;

pub async fn number(database: &DuckDb, sql: &str) -> i64 {
    let mut stream = database.query(sql, &session()).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    let mut number = 0;
    while let Some(batch) = stream.next().await {
        let batch = batch.unwrap();
        if let Some(numbers) = batch.columns().first().and_then(|column| column.as_primitive_opt::<Int64Type>()) {
            number = numbers.values().first().copied().unwrap_or(0);
        }
    }
    number
}
