//! Rows into a table, within whatever transaction there is.
//!
//! They go in by the driver's bulk ingestion. Where a column is of a type that the driver does not write, texts go into
//! a temporary table of the connection's, and from there by one statement that casts them.

use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_array::{Array, RecordBatch};
use windrow_clickhouse::Exception;
use windrow_duckdb::NotHeld;

use crate::connection::{Connection, Ingest};
use crate::errors::TYPE_MISMATCH;
use crate::system::System;
use crate::table::Table;

const STAGING: &str = "windrow_staging";
const VALUE_IS_OUT_OF_RANGE: i32 = 321;

/// Rows in the form of the columns that they go into.
pub(crate) fn fitted(
    system: System,
    table: &Table,
    columns: &[String],
    batches: &[RecordBatch],
) -> Result<Vec<RecordBatch>, NotHeld> {
    let Some(first) = batches.first() else { return Ok(Vec::new()) };
    let fitting = table.info.fitting_in_order(first.schema_ref(), Some(columns))?;
    let fit = |batch: &RecordBatch| {
        let fitted = fitting.apply(batch)?;
        match system {
            System::Sqlite => without_nan(&fitted).map(|()| fitted),
            System::PostgreSql | System::Other { .. } => Ok(fitted),
        }
    };
    batches.iter().map(fit).collect()
}

/// SQLite would keep NULL in its place.
fn without_nan(batch: &RecordBatch) -> Result<(), NotHeld> {
    for (array, field) in batch.columns().iter().zip(batch.schema_ref().fields()) {
        let Some(floats) = array.as_primitive_opt::<Float64Type>() else { continue };
        let nan = (0..floats.len()).find(|&row| floats.is_valid(row) && floats.value(row).is_nan());
        if let Some(row) = nan {
            let (column, why) = (Some(field.name().clone()), "SQLite has no NaN".to_owned());
            return Err(NotHeld { column, row: Some(row), code: VALUE_IS_OUT_OF_RANGE, why });
        }
    }
    Ok(())
}

/// `batches` as [`fitted`] has made them.
pub(crate) fn write(connection: &mut Connection, table: &Table, batches: Vec<RecordBatch>) -> Result<(), Exception> {
    let Some(first) = batches.first() else { return Ok(()) };
    check_shape(connection, table)?;
    let names: Vec<String> = first.schema_ref().fields().iter().map(|field| field.name().clone()).collect();
    if names.iter().all(|name| table.cast(name).is_none()) {
        return connection.ingest(Ingest::Table(&table.info.name), batches);
    }
    connection.ingest(Ingest::Staging(STAGING), batches)?;
    connection.execute(&cast_statement(connection.system(), table, &names))?;
    connection.execute(&format!("DROP TABLE {STAGING}")).map(|_| ())
}

fn cast_statement(system: System, table: &Table, names: &[String]) -> String {
    let value = |name: &String| match table.cast(name) {
        Some(own_type) => format!("CAST({} AS {own_type})", system.name(name)),
        None => system.name(name),
    };
    let values: Vec<String> = names.iter().map(value).collect();
    let names: Vec<String> = names.iter().map(|name| system.name(name)).collect();
    let into = system.table(&table.info.name);
    format!("INSERT INTO {into} ({}) SELECT {} FROM {STAGING}", names.join(", "), values.join(", "))
}

fn check_shape(connection: &mut Connection, table: &Table) -> Result<(), Exception> {
    let Some(known) = &table.shape else { return Ok(()) };
    if connection.shape(&table.info.name)?.fields() == known.fields() {
        return Ok(());
    }
    let text = format!("The columns of table {} have changed", connection.system().table(&table.info.name));
    Err(Exception::new(TYPE_MISMATCH, &text, connection.version()))
}
