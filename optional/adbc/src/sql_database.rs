//! The databases that no server of ClickHouse's interface stands before: a DuckDB in the gateway's own process, or one
//! behind an ADBC driver. The gateway knows their users and answers for them.

use arrow_array::RecordBatch;
use windrow_clickhouse::{ErrorCode, Exception};
use windrow_duckdb::{DuckDb, RecordStream, Session, TableInfo, TableRef, Transaction};
use windrow_sql::Dialect;

use crate::database::Adbc;
use crate::results::texts;
use crate::system::APPENDS;

#[derive(Clone)]
pub enum SqlDatabase {
    DuckDb(DuckDb),
    Adbc(Adbc),
}

impl SqlDatabase {
    /// As the admin port and traces name it.
    pub fn kind(&self) -> &'static str {
        match self {
            SqlDatabase::DuckDb(_) => "duckdb",
            SqlDatabase::Adbc(_) => "adbc",
        }
    }

    /// What stands behind the texts of errors: `(DuckDB v1.5.6)`.
    pub fn version_suffix(&self) -> &str {
        match self {
            SqlDatabase::DuckDb(duckdb) => duckdb.version_suffix(),
            SqlDatabase::Adbc(adbc) => adbc.version_suffix(),
        }
    }

    /// The schema that ClickHouse's database is here. An empty one is where the database looks first.
    pub fn schema_of<'a>(&self, database: &'a str) -> &'a str {
        match self {
            SqlDatabase::DuckDb(_) => windrow_duckdb::schema_of(database),
            SqlDatabase::Adbc(_) => Adbc::schema_of(database),
        }
    }

    /// The other way round.
    pub fn database_of<'a>(&self, schema: &'a str) -> &'a str {
        match (self, schema) {
            (SqlDatabase::DuckDb(_), "main") | (SqlDatabase::Adbc(_), "") => "default",
            (_, other) => other,
        }
    }

    pub fn table_ref(&self, database: &str, table: &str) -> TableRef {
        TableRef::new(self.schema_of(database), table)
    }

    /// Whether Windrow keeps the table for itself.
    pub fn is_windrows(&self, table: &TableRef) -> bool {
        match self {
            SqlDatabase::DuckDb(_) => windrow_duckdb::is_windrows(&table.schema),
            SqlDatabase::Adbc(_) => Adbc::is_windrows(&table.table),
        }
    }

    /// What a table (or view) is made of. `None`: there is none of that name.
    pub async fn table(&self, name: &TableRef) -> Result<Option<TableInfo>, Exception> {
        match self {
            SqlDatabase::DuckDb(duckdb) => duckdb.table(name).await,
            SqlDatabase::Adbc(adbc) => adbc.table(name).await,
        }
    }

    /// Whether rows can be stored as a whole, and by that a batch that comes again under its id is stored once. Known
    /// as soon as a table is.
    pub fn has_transactions(&self) -> bool {
        match self {
            SqlDatabase::DuckDb(_) => true,
            SqlDatabase::Adbc(adbc) => adbc.has_transactions(),
        }
    }

    /// Begins a transaction on a connection and a thread of its own.
    pub async fn begin(&self) -> Result<Transaction, Exception> {
        match self {
            SqlDatabase::DuckDb(duckdb) => duckdb.begin().await,
            SqlDatabase::Adbc(adbc) => adbc.begin().await,
        }
    }

    /// Runs a statement of Windrow's own, which may run twice. Nothing that comes from outside may stand in it but as a
    /// literal.
    pub async fn own_execute(&self, sql: &str) -> Result<(), Exception> {
        match self {
            SqlDatabase::DuckDb(_) => self.own_rows(sql).await.map(|_| ()),
            SqlDatabase::Adbc(adbc) => adbc.own_execute(sql).await,
        }
    }

    /// As [`own_execute`](SqlDatabase::own_execute), for the rows of a small result, as texts.
    pub async fn own_texts(&self, sql: &str) -> Result<Vec<Vec<Option<String>>>, Exception> {
        let rows = self.own_rows(sql).await?;
        texts(&rows)
            .map_err(|error| Exception::new(ErrorCode::STD_EXCEPTION, &error.to_string(), self.version_suffix()))
    }

    async fn own_rows(&self, sql: &str) -> Result<Vec<RecordBatch>, Exception> {
        match self {
            SqlDatabase::DuckDb(duckdb) => {
                let (mut stream, mut batches) = (duckdb.own_query(sql).await?, Vec::new());
                while let Some(batch) = stream.next().await {
                    batches.push(batch?);
                }
                Ok(batches)
            }
            SqlDatabase::Adbc(adbc) => adbc.own_rows(sql).await,
        }
    }

    /// Whether a transaction's rows go to their table at its end only: what is wrong with them shows then.
    pub fn holds_rows_back(&self) -> bool {
        match self {
            SqlDatabase::DuckDb(_) => false,
            SqlDatabase::Adbc(adbc) => adbc.system().has_one_writer(),
        }
    }

    /// The table of appends, as it stands in a statement.
    pub fn appends(&self) -> String {
        match self {
            SqlDatabase::DuckDb(duckdb) => duckdb.own_table("appends"),
            SqlDatabase::Adbc(_) => APPENDS.to_owned(),
        }
    }

    /// A column's name as it stands in a statement.
    pub fn name(&self, name: &str) -> String {
        match self {
            SqlDatabase::DuckDb(_) => Dialect::DuckDb.name(name),
            SqlDatabase::Adbc(adbc) => adbc.system().name(name),
        }
    }

    /// A week ago, as an expression.
    pub fn week_ago(&self) -> &'static str {
        match self {
            SqlDatabase::DuckDb(_) => "now() - INTERVAL 7 DAY",
            SqlDatabase::Adbc(adbc) => adbc.system().week_ago(),
        }
    }

    /// Waits, not for long, for a transaction that has run `insert` into the table of appends and not ended: whether its
    /// row is there is certain then. False: it can't be certain here.
    pub async fn wait_for(&self, insert: &str) -> Result<bool, Exception> {
        match self {
            SqlDatabase::DuckDb(_) => Ok(true),
            SqlDatabase::Adbc(adbc) => adbc.wait_for(APPENDS, insert).await,
        }
    }

    /// Runs one statement of those that are taken.
    pub async fn query(&self, sql: &str, session: &Session) -> Result<RecordStream, Exception> {
        match self {
            SqlDatabase::DuckDb(duckdb) => duckdb.query(sql, session).await,
            SqlDatabase::Adbc(adbc) => adbc.query(sql, session).await,
        }
    }

    /// A query for the names of the tables in a schema.
    pub fn list_tables(&self, schema: &str) -> String {
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
    pub fn list_databases(&self) -> String {
        match self {
            SqlDatabase::DuckDb(duckdb) => {
                format!("SELECT name FROM {} ORDER BY name", duckdb.own_table("system_databases"))
            }
            SqlDatabase::Adbc(adbc) => adbc.list_schemas().to_owned(),
        }
    }

    /// `changed` is called when a statement was run that may have changed tables.
    pub fn when_tables_change(&self, changed: impl Fn() + Send + Sync + 'static) {
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
