//! Questions about tables, answered as ClickHouse answers them: with its types, in its columns.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, StringArray, UInt8Array};
use arrow_schema::{DataType, Field, Schema};
use windrow_adbc::SqlDatabase;
use windrow_clickhouse::{ErrorCode, Exception};
use windrow_duckdb::results::Columns;
use windrow_duckdb::statement::About;
use windrow_duckdb::{ColumnInfo, Session, TableInfo, TableRef};
use windrow_sql::TableName;

use super::source::Source;

/// Returns the rows that answer a question.
pub(super) async fn answer(store: &SqlDatabase, about: &About, session: &Session) -> Result<Source, Exception> {
    match about {
        About::Describe(name) => {
            let table = table_ref(store, name, session);
            let missing = || {
                let text = format!("Table {}.{} does not exist", store.database_of(&table.schema), table.table);
                Exception::new(ErrorCode::UNKNOWN_TABLE, &text, store.version_suffix())
            };
            let info = store.table(&table).await?.ok_or_else(missing)?;
            Ok(Source::ready(describe(&info)))
        }
        About::DescribeQuery(query) => {
            let stream = store.query(query, session).await?;
            let columns = Columns::of(&stream.schema(), None);
            let columns =
                columns.map_err(|error| Exception::new(error.code(), &error.to_string(), store.version_suffix()))?;
            let types = columns.types().iter().map(ToString::to_string).collect();
            Ok(Source::ready(described(columns.names().to_vec(), types, Vec::new())))
        }
        About::Exists(name) => {
            let exists = store.table(&table_ref(store, name, session)).await?.is_some();
            Ok(Source::ready(one_column("result", DataType::UInt8, Arc::new(UInt8Array::from(vec![u8::from(exists)])))))
        }
        About::Tables { database: asked } => {
            let schema = asked.as_deref().map_or(session.schema.as_str(), |database| store.schema_of(database));
            Ok(Source::Stream(store.query(&store.list_tables(schema), session).await?))
        }
        About::Databases => Ok(Source::Stream(store.query(&store.list_databases(), session).await?)),
        About::Foreign(word) => Err(Exception::new(ErrorCode::NOT_IMPLEMENTED, word, store.version_suffix())),
    }
}

fn table_ref(store: &SqlDatabase, name: &TableName, session: &Session) -> TableRef {
    let schema = name.database.as_deref().map_or(session.schema.as_str(), |database| store.schema_of(database));
    TableRef::new(schema, name.table.clone())
}

fn describe(info: &TableInfo) -> RecordBatch {
    let names = info.columns.iter().map(|column| column.name.clone()).collect();
    // A type that ClickHouse lacks is told by DuckDB's name of it.
    let type_of = |column: &ColumnInfo| {
        column.data_type.as_ref().map_or_else(|_| column.duckdb_type.clone(), ToString::to_string)
    };
    let types = info.columns.iter().map(type_of).collect();
    let kind = |column: &ColumnInfo| match (column.generated, column.has_default) {
        (true, _) => "MATERIALIZED".to_owned(),
        (false, true) => "DEFAULT".to_owned(),
        (false, false) => String::new(),
    };
    described(names, types, info.columns.iter().map(kind).collect())
}

/// Makes rows with the columns of ClickHouse's DESCRIBE.
fn described(names: Vec<String>, types: Vec<String>, kinds: Vec<String>) -> RecordBatch {
    let rows = names.len();
    let empty = || vec![String::new(); rows];
    let kinds = if kinds.is_empty() { empty() } else { kinds };
    let columns = [
        ("name", names),
        ("type", types),
        ("default_type", kinds),
        ("default_expression", empty()),
        ("comment", empty()),
        ("codec_expression", empty()),
        ("ttl_expression", empty()),
    ];
    let fields: Vec<Field> = columns.iter().map(|(name, _)| Field::new(*name, DataType::Utf8, false)).collect();
    let arrays = columns.into_iter().map(|(_, texts)| Arc::new(StringArray::from(texts)) as ArrayRef).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).expect("all columns are as long as the first")
}

fn one_column(name: &str, data_type: DataType, array: ArrayRef) -> RecordBatch {
    let schema = Arc::new(Schema::new(vec![Field::new(name, data_type, false)]));
    RecordBatch::try_new(schema, vec![array]).expect("the column has the schema's type")
}
