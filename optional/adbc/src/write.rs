//! Writes rows into a table, within the present transaction.
//!
//! Rows are written by the driver's bulk ingestion. Where a column is of a type that PostgreSQL's driver does
//! not write, all rows go into a temporary table first, in which that column is a text, and from there by one
//! statement that casts it. SQLite's rows may wait in a temporary table as well (`transaction.rs`).

use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_array::{Array, RecordBatch};
use windrow_clickhouse::{ErrorCode, Exception};
use windrow_duckdb::CannotStore;

use crate::connection::Connection;
use crate::system::System;
use crate::table::Table;

/// Returns rows in the form of the columns that they go into.
pub(crate) fn fitted(
    system: System,
    table: &Table,
    columns: &[String],
    batches: &[RecordBatch],
) -> Result<Vec<RecordBatch>, CannotStore> {
    let Some(first) = batches.first() else { return Ok(Vec::new()) };
    let fitting = table.info.given(columns).fitting_in_order(first.schema_ref(), Some(columns))?;
    let fit = |batch: &RecordBatch| {
        let fitted = fitting.apply(batch)?;
        match system {
            System::Sqlite => without_nan(&fitted).map(|()| fitted),
            System::PostgreSql | System::Other { .. } => Ok(fitted),
        }
    };
    batches.iter().map(fit).collect()
}

/// Checks that no float is NaN: SQLite would keep NULL in its place.
fn without_nan(batch: &RecordBatch) -> Result<(), CannotStore> {
    for (array, field) in batch.columns().iter().zip(batch.schema_ref().fields()) {
        let Some(floats) = array.as_primitive_opt::<Float64Type>() else { continue };
        let nan = (0..floats.len()).find(|&row| floats.is_valid(row) && floats.value(row).is_nan());
        if let Some(row) = nan {
            let (column, why) = (Some(field.name().clone()), "SQLite has no NaN".to_owned());
            return Err(CannotStore {
                column,
                row: Some(row),
                code: ErrorCode::VALUE_IS_OUT_OF_RANGE_OF_DATA_TYPE,
                why,
            });
        }
    }
    Ok(())
}

/// Returns the column names of rows that [`fitted`] has made.
pub(crate) fn names(fitted: &[RecordBatch]) -> Vec<String> {
    let fields = fitted.first().into_iter().flat_map(|first| first.schema_ref().fields());
    fields.map(|field| field.name().clone()).collect()
}

/// Writes `batches` in the form that [`fitted`] has made.
pub(crate) fn write(connection: &mut Connection, table: &Table, batches: Vec<RecordBatch>) -> Result<(), Exception> {
    check_shape(connection, table)?;
    let names = names(&batches);
    if !table.casts_any(&names) {
        return connection.ingest(&table.info.name, batches);
    }
    let staging = Staging::make(connection, table, names, 0)?;
    staging.add(connection, batches)?;
    staging.move_to(connection, table, "")?;
    staging.drop(connection)
}

/// A temporary table of the connection, for rows that don't go straight into their table.
pub(crate) struct Staging {
    name: String,
    pub(crate) names: Vec<String>,
}

impl Staging {
    /// Makes the temporary table. No other one of the connection has the same `number`.
    pub(crate) fn make(
        connection: &mut Connection,
        table: &Table,
        names: Vec<String>,
        number: usize,
    ) -> Result<Staging, Exception> {
        let (system, name) = (connection.system(), format!("windrow_staging_{number}"));
        let column = |name: &String| match table.cast(name) {
            Some(_) => format!("CAST(NULL AS text) AS {}", system.name(name)),
            None => system.name(name),
        };
        let columns: Vec<String> = names.iter().map(column).collect();
        let (columns, from) = (columns.join(", "), system.table(&table.info.name));
        connection.execute(&format!("CREATE TEMP TABLE {name} AS SELECT {columns} FROM {from} WHERE false"))?;
        Ok(Staging { name, names })
    }

    pub(crate) fn add(&self, connection: &mut Connection, batches: Vec<RecordBatch>) -> Result<(), Exception> {
        connection.ingest_temporary(&self.name, batches)
    }

    /// Moves the rows into their table. `or` is what SQLite does with a row that violates a constraint.
    pub(crate) fn move_to(&self, connection: &mut Connection, table: &Table, or: &str) -> Result<(), Exception> {
        let system = connection.system();
        let value = |name: &String| match table.cast(name) {
            Some(own_type) => format!("CAST({} AS {own_type})", system.name(name)),
            None => system.name(name),
        };
        let values: Vec<String> = self.names.iter().map(value).collect();
        let names: Vec<String> = self.names.iter().map(|name| system.name(name)).collect();
        let (into, from) = (system.table(&table.info.name), self.whole_name(connection));
        let (names, values) = (names.join(", "), values.join(", "));
        connection.execute(&format!("INSERT {or} INTO {into} ({names}) SELECT {values} FROM {from}")).map(|_| ())
    }

    /// Empties the temporary table for more rows of the same transaction. A DROP would keep the locks of each
    /// dropped table until the transaction's end, and a server has room for a limited number of them. A
    /// DELETE would let the table grow. To truncate a table that the transaction has made itself takes no new
    /// locks and no new file. This is only called for tables of PostgreSQL.
    pub(crate) fn empty(&self, connection: &mut Connection) -> Result<(), Exception> {
        connection.execute(&format!("TRUNCATE {}", self.whole_name(connection))).map(|_| ())
    }

    fn drop(self, connection: &mut Connection) -> Result<(), Exception> {
        connection.execute(&format!("DROP TABLE {}", self.whole_name(connection))).map(|_| ())
    }

    fn whole_name(&self, connection: &Connection) -> String {
        format!("{}.{}", connection.system().temporary(), self.name)
    }
}

pub(crate) fn check_shape(connection: &mut Connection, table: &Table) -> Result<(), Exception> {
    let Some(known) = &table.shape else { return Ok(()) };
    connection.execute(&connection.system().hold_table(&table.info.name))?;
    if connection.table_schema(&table.info.name)?.fields() == known.fields() {
        return Ok(());
    }
    let text = format!("The columns of table {} have changed", connection.system().table(&table.info.name));
    Err(Exception::new(ErrorCode::TYPE_MISMATCH, &text, connection.version()))
}
