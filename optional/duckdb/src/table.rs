//! The description of a table, as inserts and appends need it.

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::RecordBatch;
use arrow_schema::Field;
use tokio::sync::{oneshot, OwnedSemaphorePermit};
use windrow_clickhouse::{ErrorCode, Exception};
use windrow_columns::DataType;
use windrow_sql::Dialect;

use crate::connection::Connection;
use crate::database::{spawn, DuckDb};
use crate::statement::WINDROWS_SCHEMAS;
use crate::types;

/// A table's name, without a database: there is only one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TableRef {
    pub schema: String,
    pub table: String,
}

impl TableRef {
    pub fn new(schema: impl Into<String>, table: impl Into<String>) -> TableRef {
        TableRef { schema: schema.into(), table: table.into() }
    }

    /// Returns the name as it stands in a statement: `"schema"."table"`.
    pub fn quoted(&self) -> String {
        format!("{}.{}", quoted(&self.schema), quoted(&self.table))
    }
}

const OWN_SCHEMA: &str = WINDROWS_SCHEMAS[0];
const OWN_FUNCTIONS: &str = WINDROWS_SCHEMAS[1];

/// Returns the schema of everything that Windrow keeps for itself.
pub(crate) fn own_schema(catalog: &str) -> String {
    format!("{}.{OWN_SCHEMA}", quoted(catalog))
}

pub(crate) fn own_functions(catalog: &str) -> String {
    format!("{}.{OWN_FUNCTIONS}", quoted(catalog))
}

pub(crate) fn own_table(catalog: &str, table: &str) -> String {
    format!("{}.{}", own_schema(catalog), quoted(table))
}

/// Says whether a schema is one of those that Windrow keeps for itself.
pub fn is_windrows(schema: &str) -> bool {
    WINDROWS_SCHEMAS.iter().any(|own| schema.eq_ignore_ascii_case(own))
}

/// Returns a name as it stands in a statement.
pub(crate) fn quoted(name: &str) -> String {
    Dialect::DuckDb.name(name)
}

/// Returns a text as it stands in a statement.
pub(crate) fn literal(text: &str) -> String {
    Dialect::DuckDb.text(text)
}

#[derive(Debug, Clone, PartialEq)]
pub struct TableInfo {
    /// The table's name, spelt as the table was created.
    pub name: TableRef,
    pub is_view: bool,
    pub columns: Vec<ColumnInfo>,
}

impl TableInfo {
    /// Returns the table as if it had these columns only. The database decides about the others.
    pub fn given(&self, columns: &[String]) -> TableInfo {
        let same = |column: &ColumnInfo| columns.iter().any(|name| name.to_lowercase() == column.name.to_lowercase());
        TableInfo { columns: self.columns.iter().filter(|column| same(column)).cloned().collect(), ..self.clone() }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct ColumnInfo {
    pub name: String,
    /// The type as DuckDB writes it: `DECIMAL(18,3)`, `VARCHAR[]`.
    pub duckdb_type: String,
    /// The field that a SELECT of the column gives.
    pub field: Field,
    /// The type that inserts are read as. `Err` says why no payload can be read for the column.
    pub data_type: Result<DataType, String>,
    pub nullable: bool,
    pub has_default: bool,
    /// Says whether the column is computed from others, so that it takes no values.
    pub generated: bool,
}

pub(crate) async fn look_up(
    database: DuckDb,
    permit: OwnedSemaphorePermit,
    name: TableRef,
) -> Result<Option<TableInfo>, Exception> {
    let closed = database.closed();
    let (sender, answer) = oneshot::channel();
    let job = move || {
        let info = database.connect().and_then(|mut connection| database.tables().look_up(&mut connection, &name));
        let _ = sender.send(info);
        drop(permit);
    };
    spawn("windrow-table", job)
        .map_err(|error| Exception::new(ErrorCode::CANNOT_SCHEDULE_TASK, &error.to_string(), ""))?;
    answer.await.map_err(|_| closed)?
}

/// Reads the description of a table. DuckDB's names match in any case.
pub(crate) fn info(connection: &mut Connection, name: &TableRef) -> Result<Option<TableInfo>, Exception> {
    let condition = format!(
        "database_name = current_database() AND lower(schema_name) = lower({}) AND lower(table_name) = lower({})",
        literal(&name.schema),
        literal(&name.table)
    );
    let batches = connection.rows(&format!(
        "SELECT schema_name, table_name, column_name, data_type, is_nullable::INTEGER, (column_default IS NOT NULL)::INTEGER \
         FROM duckdb_columns() WHERE {condition} ORDER BY column_index"
    ))?;
    if batches.iter().all(|batch| batch.num_rows() == 0) {
        return Ok(None);
    }
    let described = connection
        .rows(&format!("SELECT (\"default\" IS NOT NULL)::INTEGER FROM (DESCRIBE {})", connection.whole_name(name)))?;
    let settable: Vec<bool> = described.iter().flat_map(|batch| flags(batch, 0)).collect();
    let views = connection
        .rows(&format!("SELECT 1 FROM duckdb_views() WHERE {}", condition.replace("table_name", "view_name")))?;
    let fields =
        connection.query(&format!("SELECT * FROM {} LIMIT 0", connection.whole_name(name)), |_| true)?.reader.schema();
    let mut columns = Vec::new();
    let mut spelt = name.clone();
    for batch in &batches {
        let texts: Vec<_> = (0..4).filter_map(|column| batch.column(column).as_string_opt::<i32>()).collect();
        let (nullable, default) = (flags(batch, 4), flags(batch, 5));
        let ([schemas, tables, names, types], true) = (&texts[..], default.len() == batch.num_rows()) else {
            return Err(Exception::new(
                ErrorCode::STD_EXCEPTION,
                "duckdb_columns() has other columns than expected",
                connection.version(),
            ));
        };
        for row in 0..batch.num_rows() {
            spelt = TableRef::new(schemas.value(row), tables.value(row));
            let Some(field) = fields.fields().get(columns.len()) else { continue };
            let nullable = nullable[row];
            columns.push(ColumnInfo {
                name: names.value(row).to_owned(),
                duckdb_type: types.value(row).to_owned(),
                field: field.as_ref().clone(),
                data_type: types::clickhouse_type(types.value(row), nullable),
                nullable,
                has_default: default[row],
                // A generated column's expression is shown as a default in one of both lists only.
                generated: default[row] && !settable.get(columns.len()).copied().unwrap_or(true),
            });
        }
    }
    let is_view = views.iter().map(RecordBatch::num_rows).sum::<usize>() > 0;
    Ok(Some(TableInfo { name: spelt, is_view, columns }))
}

/// Reads numbers as truth values.
fn flags(batch: &RecordBatch, column: usize) -> Vec<bool> {
    let numbers = batch.column(column).as_primitive_opt::<Int32Type>();
    numbers.map_or(Vec::new(), |numbers| numbers.iter().map(|number| number == Some(1)).collect())
}
