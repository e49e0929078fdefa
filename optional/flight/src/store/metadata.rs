//! The schemas and tables that exist.

use arrow_array::cast::AsArray;
use arrow_array::RecordBatch;
use arrow_schema::DataType;
use windrow_clickhouse::{ErrorCode, Exception};

use super::Store;
use crate::error;
use crate::login::Caller;
use crate::sql::Dialect;
use windrow_sql::TableName;

/// A filter for tables. Its patterns are those of LIKE, with a backslash to escape.
#[derive(Debug, Default)]
pub(crate) struct TableFilter {
    pub(crate) database: Option<String>,
    pub(crate) table: Option<String>,
    /// The types of tables that are wanted. Empty: all.
    pub(crate) types: Vec<String>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ListedTable {
    pub(crate) database: String,
    pub(crate) table: String,
    pub(crate) kind: String,
}

/// A column of a table's primary key.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct KeyPart {
    pub(crate) database: String,
    pub(crate) key: String,
    pub(crate) column: String,
    /// Position of the column in the key, from 1 on.
    pub(crate) place: i32,
}

/// The most tables that are listed with their columns, since each is a query of its own.
pub(crate) const MAX_TABLES: usize = 10_000;

impl Store {
    /// Returns the catalog. ClickHouse has none: its name is empty there.
    pub(crate) async fn catalog(&self, caller: &Caller) -> Result<String, Exception> {
        match self {
            Store::ClickHouse(_) => Ok(String::new()),
            Store::DuckDb(_) => self.one_text(caller, "SELECT current_database()").await,
        }
    }

    pub(crate) async fn databases(&self, caller: &Caller, pattern: Option<&str>) -> Result<Vec<String>, Exception> {
        let (names, from) = match self {
            Store::ClickHouse(_) => ("name", "system.databases WHERE 1"),
            Store::DuckDb(_) => (
                "schema_name",
                "duckdb_schemas() WHERE database_name = current_database() \
                 AND schema_name NOT IN ('information_schema', 'pg_catalog')",
            ),
        };
        let condition = self.like(names, pattern);
        let rows = self.texts(caller, &format!("SELECT {names} FROM {from}{condition} ORDER BY {names}")).await?;
        Ok(rows.into_iter().flatten().collect())
    }

    /// Lists tables. A table whose name is exactly the pattern comes first, and the caller's own database
    /// before others: clients that want one table take the first.
    pub(crate) async fn tables(&self, caller: &Caller, filter: &TableFilter) -> Result<Vec<ListedTable>, Exception> {
        let from = match self {
            Store::ClickHouse(_) => {
                "(SELECT database AS d, name AS t, multiIf(engine LIKE '%View', 'VIEW', \
                 lower(database) IN ('system', 'information_schema'), 'SYSTEM TABLE', 'TABLE') AS k FROM system.tables \
                 WHERE NOT is_temporary) AS found"
            }
            Store::DuckDb(_) => {
                "(SELECT schema_name AS d, table_name AS t, 'TABLE' AS k FROM duckdb_tables() \
                 WHERE NOT internal AND NOT temporary AND database_name = current_database() UNION ALL \
                 SELECT schema_name, view_name, 'VIEW' FROM duckdb_views() \
                 WHERE NOT internal AND NOT temporary AND database_name = current_database()) AS found"
            }
        };
        let mut condition = self.like("d", filter.database.as_deref()) + &self.like("t", filter.table.as_deref());
        if !filter.types.is_empty() {
            let types: Vec<_> = filter.types.iter().map(|kind| self.dialect().text(kind)).collect();
            condition += &format!(" AND k IN ({})", types.join(", "));
        }
        let exact = self.dialect().text(filter.table.as_deref().unwrap_or_default());
        let own = self.database_of(caller, &TableName { database: None, table: String::new() });
        let own = own.map_or_else(|| "currentDatabase()".to_owned(), |name| self.dialect().text(&name));
        let sql = format!(
            "SELECT d, t, k FROM {from} WHERE substring(t, 1, 10) != '__windrow_'{condition} \
             ORDER BY t = {exact} DESC, d = {own} DESC, d, t LIMIT {MAX_TABLES}"
        );
        let rows = self.texts(caller, &sql).await?;
        let name = |row: Vec<String>| {
            let [database, table, kind] = <[String; 3]>::try_from(row).ok()?;
            Some(ListedTable { database, table, kind })
        };
        Ok(rows.into_iter().filter_map(name).collect())
    }

    /// Returns the primary key of a table. A primary key of ClickHouse only orders rows, and many rows may
    /// have the same, so clients are told of none.
    pub(crate) async fn primary_key(
        &self,
        caller: &Caller,
        database: Option<&str>,
        table: &str,
    ) -> Result<Vec<KeyPart>, Exception> {
        let Store::DuckDb(_) = self else { return Ok(Vec::new()) };
        let of_table = self.dialect().text(table);
        let of_database = match database.filter(|name| !name.is_empty()) {
            Some(name) => format!(" AND schema_name = {}", self.dialect().text(windrow_duckdb::schema_of(name))),
            None => String::new(),
        };
        let sql = format!(
            "SELECT schema_name, coalesce(constraint_name, ''), unnest(constraint_column_names), \
             unnest(range(1, len(constraint_column_names) + 1)) AS place FROM duckdb_constraints() \
             WHERE constraint_type = 'PRIMARY KEY' AND database_name = current_database() \
             AND table_name = {of_table}{of_database} ORDER BY schema_name, place"
        );
        let part = |row: Vec<String>| {
            let [database, key, column, place] = <[String; 4]>::try_from(row).ok()?;
            Some(KeyPart { database, key, column, place: place.parse().ok()? })
        };
        Ok(self.texts(caller, &sql).await?.into_iter().filter_map(part).collect())
    }

    fn like(&self, column: &str, pattern: Option<&str>) -> String {
        let Some(pattern) = pattern else { return String::new() };
        let escape = match self.dialect() {
            Dialect::DuckDb => " ESCAPE '\\'",
            Dialect::ClickHouse => "",
        };
        format!(" AND {column} LIKE {}{escape}", self.dialect().text(pattern))
    }

    pub(super) async fn one_text(&self, caller: &Caller, sql: &str) -> Result<String, Exception> {
        Ok(self.texts(caller, sql).await?.into_iter().flatten().next().unwrap_or_default())
    }

    async fn texts(&self, caller: &Caller, sql: &str) -> Result<Vec<Vec<String>>, Exception> {
        let mut rows = Vec::new();
        for batch in self.query(caller, sql).await?.all().await? {
            rows.extend(texts_of(&batch).map_err(|error| error::own(ErrorCode::STD_EXCEPTION, &error.to_string()))?);
        }
        Ok(rows)
    }
}

fn texts_of(batch: &RecordBatch) -> Result<Vec<Vec<String>>, arrow_schema::ArrowError> {
    let columns: Result<Vec<_>, _> =
        batch.columns().iter().map(|column| arrow_cast::cast(column, &DataType::Utf8)).collect();
    let columns = columns?;
    let row = |row| columns.iter().map(|column| column.as_string::<i32>().value(row).to_owned()).collect();
    Ok((0..batch.num_rows()).map(row).collect())
}
