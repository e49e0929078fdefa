//! The databases that have no ClickHouse server in front: a DuckDB in the gateway's own process, or one
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
    /// Returns the name of the database for the admin port and traces.
    pub fn kind(&self) -> &'static str {
        match self {
            SqlDatabase::DuckDb(_) => "duckdb",
            SqlDatabase::Adbc(_) => "adbc",
        }
    }

    /// Returns the suffix of errors' texts: `(DuckDB v1.5.6)`.
    pub fn version_suffix(&self) -> &str {
        match self {
            SqlDatabase::DuckDb(duckdb) => duckdb.version_suffix(),
            SqlDatabase::Adbc(adbc) => adbc.version_suffix(),
        }
    }

    /// Returns the schema for a database of ClickHouse. The empty schema is the one where the database looks first.
    pub fn schema_of<'a>(&self, database: &'a str) -> &'a str {
        match self {
            SqlDatabase::DuckDb(_) => windrow_duckdb::schema_of(database),
            SqlDatabase::Adbc(_) => Adbc::schema_of(database),
        }
    }

    /// Returns the database of ClickHouse for a schema.
    pub fn database_of<'a>(&self, schema: &'a str) -> &'a str {
        match (self, schema) {
            (SqlDatabase::DuckDb(_), "main") | (SqlDatabase::Adbc(_), "") => "default",
            (_, other) => other,
        }
    }

    pub fn table_ref(&self, database: &str, table: &str) -> TableRef {
        TableRef::new(self.schema_of(database), table)
    }

    /// Says whether Windrow keeps the table for itself.
    pub fn is_windrows(&self, table: &TableRef) -> bool {
        match self {
            SqlDatabase::DuckDb(_) => windrow_duckdb::is_windrows(&table.schema),
            SqlDatabase::Adbc(_) => Adbc::is_windrows(&table.table),
        }
    }

    /// Returns the description of a table or a view, or `None` where there is none of that name.
    ///
    /// # Errors
    /// Fails where the database can't be asked, or is closed.
    pub async fn table(&self, name: &TableRef) -> Result<Option<TableInfo>, Exception> {
        match self {
            SqlDatabase::DuckDb(duckdb) => duckdb.table(name).await,
            SqlDatabase::Adbc(adbc) => adbc.table(name).await,
        }
    }

    /// Says whether rows can be stored as a whole, so that a batch that comes again under its id is stored
    /// once. This is known as soon as a table is.
    pub fn has_transactions(&self) -> bool {
        match self {
            SqlDatabase::DuckDb(_) => true,
            SqlDatabase::Adbc(adbc) => adbc.has_transactions(),
        }
    }

    /// Begins a transaction on a connection and a thread of its own.
    ///
    /// # Errors
    /// Fails where the database can't be reached or is closed, or its driver has no transactions.
    pub async fn begin(&self) -> Result<Transaction, Exception> {
        match self {
            SqlDatabase::DuckDb(duckdb) => duckdb.begin().await,
            SqlDatabase::Adbc(adbc) => adbc.begin().await,
        }
    }

    /// Runs a statement of Windrow's own, which may run twice. Text from outside may stand in it only as a literal.
    ///
    /// # Errors
    /// Fails where the database refuses the statement, can't be reached, or is closed.
    pub async fn own_execute(&self, sql: &str) -> Result<(), Exception> {
        match self {
            SqlDatabase::DuckDb(_) => self.own_rows(sql).await.map(|_| ()),
            SqlDatabase::Adbc(adbc) => adbc.own_execute(sql).await,
        }
    }

    /// Runs a query like [`own_execute`](SqlDatabase::own_execute), and returns the rows of its small result
    /// as texts.
    ///
    /// # Errors
    /// Fails where the database refuses the query, can't be reached, or is closed, or a value can't become text.
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

    /// Says whether a transaction's rows go into their table only at its end: errors of rows show then.
    pub fn holds_rows_back(&self) -> bool {
        match self {
            SqlDatabase::DuckDb(_) => false,
            SqlDatabase::Adbc(adbc) => adbc.system().has_one_writer(),
        }
    }

    /// Returns the table of appends, as it stands in a statement.
    pub fn appends(&self) -> String {
        match self {
            SqlDatabase::DuckDb(duckdb) => duckdb.own_table("appends"),
            SqlDatabase::Adbc(_) => APPENDS.to_owned(),
        }
    }

    /// Returns a column's name as it stands in a statement.
    pub fn name(&self, name: &str) -> String {
        match self {
            SqlDatabase::DuckDb(_) => Dialect::DuckDb.name(name),
            SqlDatabase::Adbc(adbc) => adbc.system().name(name),
        }
    }

    /// Returns an expression for a week ago.
    pub fn week_ago(&self) -> &'static str {
        match self {
            SqlDatabase::DuckDb(_) => "now() - INTERVAL 7 DAY",
            SqlDatabase::Adbc(adbc) => adbc.system().week_ago(),
        }
    }

    /// Waits a short time for a transaction that has run `insert` into the table of appends and not ended.
    /// After that it is certain whether its row is there. Returns false where this database can't tell that
    /// for certain.
    ///
    /// # Errors
    /// Fails where the database can't be asked.
    pub async fn wait_for(&self, insert: &str) -> Result<bool, Exception> {
        match self {
            SqlDatabase::DuckDb(_) => Ok(true),
            SqlDatabase::Adbc(adbc) => adbc.wait_for(APPENDS, insert).await,
        }
    }

    /// Runs one statement, if it is of a kind that Windrow runs.
    ///
    /// # Errors
    /// Fails where the statement may not run, no permit comes free in time, or the database refuses it, can't
    /// be reached, or is closed.
    pub async fn query(&self, sql: &str, session: &Session) -> Result<RecordStream, Exception> {
        match self {
            SqlDatabase::DuckDb(duckdb) => duckdb.query(sql, session).await,
            SqlDatabase::Adbc(adbc) => adbc.query(sql, session).await,
        }
    }

    /// Returns a query for the names of the tables in a schema.
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

    /// Returns a query for the names of the schemas.
    pub fn list_databases(&self) -> String {
        match self {
            SqlDatabase::DuckDb(duckdb) => {
                format!("SELECT name FROM {} ORDER BY name", duckdb.own_table("system_databases"))
            }
            SqlDatabase::Adbc(adbc) => adbc.list_schemas().to_owned(),
        }
    }

    /// Registers `changed`, which is called when a statement was run that may have changed tables.
    pub fn when_tables_change(&self, changed: impl Fn() + Send + Sync + 'static) {
        match self {
            SqlDatabase::DuckDb(duckdb) => duckdb.when_tables_change(changed),
            SqlDatabase::Adbc(adbc) => adbc.when_tables_change(changed),
        }
    }

    /// Waits for running calls and closes the database.
    pub async fn close(&self) {
        match self {
            SqlDatabase::DuckDb(duckdb) => duckdb.close().await,
            SqlDatabase::Adbc(adbc) => adbc.close().await,
        }
    }
}
