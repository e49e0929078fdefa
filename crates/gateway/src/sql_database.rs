//! The databases that no server of ClickHouse's interface stands before: a DuckDB in the gateway's own process, or one
//! behind an ADBC driver. The gateway knows their users and answers for them.

use windrow_adbc::Adbc;
use windrow_clickhouse::Exception;
use windrow_duckdb::{DuckDb, RecordStream, Session, TableInfo, TableRef};
use windrow_sql::Dialect;

use crate::data::system_view;

#[derive(Clone)]
pub enum SqlDatabase {
    DuckDb(DuckDb),
    Adbc(Adbc),
}

impl SqlDatabase {
    /// As the admin port and traces name it.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            SqlDatabase::DuckDb(_) => "duckdb",
            SqlDatabase::Adbc(_) => "adbc",
        }
    }

    /// What stands behind the texts of errors: `(DuckDB v1.5.6)`.
    pub(crate) fn version_suffix(&self) -> &str {
        match self {
            SqlDatabase::DuckDb(duckdb) => duckdb.version_suffix(),
            SqlDatabase::Adbc(adbc) => adbc.version_suffix(),
        }
    }

    /// The schema that ClickHouse's database is here. An empty one is where the database looks first.
    pub(crate) fn schema_of<'a>(&self, database: &'a str) -> &'a str {
        match self {
            SqlDatabase::DuckDb(_) => windrow_duckdb::schema_of(database),
            SqlDatabase::Adbc(_) => Adbc::schema_of(database),
        }
    }

    /// The other way round.
    pub(crate) fn database_of<'a>(&self, schema: &'a str) -> &'a str {
        match (self, schema) {
            (SqlDatabase::DuckDb(_), "main") | (SqlDatabase::Adbc(_), "") => "default",
            (_, other) => other,
        }
    }

    pub(crate) fn table_ref(&self, database: &str, table: &str) -> TableRef {
        TableRef::new(self.schema_of(database), table)
    }

    /// Whether Windrow keeps the table for itself.
    pub(crate) fn is_windrows(&self, table: &TableRef) -> bool {
        match self {
            SqlDatabase::DuckDb(_) => windrow_duckdb::is_windrows(&table.schema),
            SqlDatabase::Adbc(_) => Adbc::is_windrows(&table.table),
        }
    }

    /// What a table (or view) is made of. `None`: there is none of that name.
    pub(crate) async fn table(&self, name: &TableRef) -> Result<Option<TableInfo>, Exception> {
        match self {
            SqlDatabase::DuckDb(duckdb) => duckdb.table(name).await,
            SqlDatabase::Adbc(adbc) => adbc.table(name).await,
        }
    }

    /// Whether a batch that comes again under its id is stored once.
    pub(crate) fn recognises_batches(&self) -> bool {
        match self {
            SqlDatabase::DuckDb(_) => true,
            SqlDatabase::Adbc(adbc) => adbc.deduplicates(),
        }
    }

    /// Runs one statement of those that are taken.
    pub(crate) async fn query(&self, sql: &str, session: &Session) -> Result<RecordStream, Exception> {
        match self {
            SqlDatabase::DuckDb(duckdb) => duckdb.query(sql, session).await,
            SqlDatabase::Adbc(adbc) => adbc.query(sql, session).await,
        }
    }

    /// What stands for a table of `system` in a statement, if anything does.
    pub(crate) fn system_view(&self, table: &str) -> Option<String> {
        match self {
            SqlDatabase::DuckDb(duckdb) => system_view(duckdb, table),
            SqlDatabase::Adbc(_) => None,
        }
    }

    /// A query for the names of the tables in a schema.
    pub(crate) fn list_tables(&self, schema: &str) -> String {
        match self {
            SqlDatabase::DuckDb(duckdb) => format!(
                "SELECT name FROM {} WHERE database = {} ORDER BY name",
                duckdb.own_table("system_tables"),
                Dialect::DuckDb.text(self.database_of(schema))
            ),
            SqlDatabase::Adbc(adbc) => adbc.list_tables(schema),
        }
    }

    /// A query for the names of the schemas.
    pub(crate) fn list_databases(&self) -> String {
        match self {
            SqlDatabase::DuckDb(duckdb) => {
                format!("SELECT name FROM {} ORDER BY name", duckdb.own_table("system_databases"))
            }
            SqlDatabase::Adbc(adbc) => adbc.list_schemas().to_owned(),
        }
    }

    /// `changed` is called when a statement was run that may have changed tables.
    pub(crate) fn when_tables_change(&self, changed: impl Fn() + Send + Sync + 'static) {
        match self {
            SqlDatabase::DuckDb(duckdb) => duckdb.when_tables_change(changed),
            SqlDatabase::Adbc(adbc) => adbc.when_tables_change(changed),
        }
    }

    /// Waits for what is under way and closes it.
    pub async fn close(&self) {
        match self {
            SqlDatabase::DuckDb(duckdb) => duckdb.close().await,
            SqlDatabase::Adbc(adbc) => adbc.close().await,
        }
    }
}
