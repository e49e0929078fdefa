//! Answers about catalogs, schemas and tables.

use std::sync::Arc;

use arrow_array::{ArrayRef, BinaryArray, Int32Array, RecordBatch, StringArray};
use arrow_schema::{ArrowError, Schema};
use windrow_clickhouse::{ErrorCode, Exception};

use super::layout;
use crate::error;
use crate::login::Caller;
use crate::messages::{CommandGetDbSchemas, CommandGetPrimaryKeys, CommandGetTables};
use crate::outgoing::schema_bytes;
use crate::store::{Store, TableFilter};
use windrow_sql::TableName;

pub(crate) async fn list_catalogs(store: &Store, caller: &Caller) -> Result<RecordBatch, Exception> {
    let name = store.catalog(caller).await?;
    batch(RecordBatch::try_new(layout::catalogs(), vec![texts(vec![name])]))
}

pub(crate) fn list_table_types() -> Result<RecordBatch, Exception> {
    let types = ["SYSTEM TABLE", "TABLE", "VIEW"].map(str::to_owned);
    batch(RecordBatch::try_new(layout::table_types(), vec![texts(types.to_vec())]))
}

pub(crate) async fn list_db_schemas(
    store: &Store,
    caller: &Caller,
    asked: &CommandGetDbSchemas,
) -> Result<RecordBatch, Exception> {
    let catalog = store.catalog(caller).await?;
    let names = match is_other(asked.catalog.as_deref(), &catalog) {
        true => Vec::new(),
        false => store.databases(caller, asked.db_schema_filter_pattern.as_deref()).await?,
    };
    let catalogs = vec![catalog; names.len()];
    batch(RecordBatch::try_new(layout::db_schemas(), vec![texts(catalogs), texts(names)]))
}

pub(crate) async fn list_tables(
    store: &Store,
    caller: &Caller,
    asked: &CommandGetTables,
) -> Result<RecordBatch, Exception> {
    let catalog = store.catalog(caller).await?;
    let filter = TableFilter {
        database: asked.db_schema_filter_pattern.clone(),
        table: asked.table_name_filter_pattern.clone(),
        types: asked.table_types.clone(),
    };
    let found = match is_other(asked.catalog.as_deref(), &catalog) {
        true => Vec::new(),
        false => store.tables(caller, &filter).await?,
    };
    let mut columns = vec![
        texts(vec![catalog; found.len()]),
        texts(found.iter().map(|name| name.database.clone()).collect()),
        texts(found.iter().map(|name| name.table.clone()).collect()),
        texts(found.iter().map(|name| name.kind.clone()).collect()),
    ];
    if asked.include_schema {
        let mut schemas = Vec::with_capacity(found.len());
        for name in found {
            let target = TableName { database: Some(name.database), table: name.table };
            // A table that may not be read, or a view that can't be, is listed without columns.
            let fields = store.fields(caller, &target).await.ok().flatten().unwrap_or_default();
            schemas.push(schema_bytes(&Schema::new(fields))?);
        }
        columns.push(Arc::new(BinaryArray::from_iter_values(schemas)));
    }
    batch(RecordBatch::try_new(layout::tables_layout(asked.include_schema), columns))
}

pub(crate) async fn list_primary_keys(
    store: &Store,
    caller: &Caller,
    asked: &CommandGetPrimaryKeys,
) -> Result<RecordBatch, Exception> {
    let catalog = store.catalog(caller).await?;
    let found = match is_other(asked.catalog.as_deref(), &catalog) {
        true => Vec::new(),
        false => store.primary_key(caller, asked.db_schema.as_deref(), &asked.table).await?,
    };
    let columns = vec![
        texts(vec![catalog; found.len()]),
        texts(found.iter().map(|part| part.database.clone()).collect()),
        texts(vec![asked.table.clone(); found.len()]),
        texts(found.iter().map(|part| part.column.clone()).collect()),
        texts(found.iter().map(|part| part.key.clone()).collect()),
        Arc::new(Int32Array::from_iter_values(found.iter().map(|part| part.place))),
    ];
    batch(RecordBatch::try_new(layout::primary_keys(), columns))
}

/// Says whether a client asks for another catalog. An empty name stands for objects without a catalog, and
/// clients that know no catalogs always send it.
fn is_other(asked: Option<&str>, catalog: &str) -> bool {
    asked.is_some_and(|asked| !asked.is_empty() && asked != catalog)
}

fn texts(values: Vec<String>) -> ArrayRef {
    Arc::new(StringArray::from(values))
}

fn batch(made: Result<RecordBatch, ArrowError>) -> Result<RecordBatch, Exception> {
    made.map_err(|error| error::own(ErrorCode::STD_EXCEPTION, &error.to_string()))
}
