//! Rows into a table, within whatever transaction there is.
//!
//! They go in by the driver's bulk ingestion. Where a column is of a type that PostgreSQL's driver does not write, all
//! rows go into a temporary table first, in which that column is a text, and from there by one statement that casts it.

use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_array::{Array, RecordBatch};
use windrow_clickhouse::Exception;
use windrow_duckdb::{ColumnInfo, NotHeld, TableInfo, TableRef};

use crate::connection::Connection;
use crate::errors::TYPE_MISMATCH;
use crate::system::System;
use crate::table::Table;

const STAGING: &str = "windrow_staging";
/// Where PostgreSQL keeps a connection's temporary tables. Without it the driver would look among the others.
const TEMPORARY: &str = "pg_temp";
const VALUE_IS_OUT_OF_RANGE: i32 = 321;

/// Rows in the form of the columns that they go into.
pub(crate) fn fitted(
    system: System,
    table: &Table,
    columns: &[String],
    batches: &[RecordBatch],
) -> Result<Vec<RecordBatch>, NotHeld> {
    let Some(first) = batches.first() else { return Ok(Vec::new()) };
    let fitting = given(&table.info, columns).fitting_in_order(first.schema_ref(), Some(columns))?;
    let fit = |batch: &RecordBatch| {
        let fitted = fitting.apply(batch)?;
        match system {
            System::Sqlite => without_nan(&fitted).map(|()| fitted),
            System::PostgreSql | System::Other { .. } => Ok(fitted),
        }
    };
    batches.iter().map(fit).collect()
}

/// Columns that an insert doesn't name are not written at all: what they become is the database's to say.
fn given(info: &TableInfo, columns: &[String]) -> TableInfo {
    let same = |column: &ColumnInfo| columns.iter().any(|name| name.to_lowercase() == column.name.to_lowercase());
    TableInfo { columns: info.columns.iter().filter(|column| same(column)).cloned().collect(), ..info.clone() }
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
        return connection.ingest(&table.info.name, batches);
    }
    let system = connection.system();
    connection.execute(&staging_statement(system, table, &names))?;
    connection.ingest(&TableRef::new(TEMPORARY, STAGING), batches)?;
    connection.execute(&cast_statement(system, table, &names)).map(|_| ())
}

/// The transaction's end drops the table.
fn staging_statement(system: System, table: &Table, names: &[String]) -> String {
    let column = |name: &String| match table.cast(name) {
        Some(_) => format!("CAST(NULL AS text) AS {}", system.name(name)),
        None => system.name(name),
    };
    let columns: Vec<String> = names.iter().map(column).collect();
    let from = system.table(&table.info.name);
    format!("CREATE TEMP TABLE {STAGING} ON COMMIT DROP AS SELECT {} FROM {from} WHERE false", columns.join(", "))
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
    connection.execute(&connection.system().hold_table(&table.info.name))?;
    if connection.table_schema(&table.info.name)?.fields() == known.fields() {
        return Ok(());
    }
    let text = format!("The columns of table {} have changed", connection.system().table(&table.info.name));
    Err(Exception::new(TYPE_MISMATCH, &text, connection.version()))
}
