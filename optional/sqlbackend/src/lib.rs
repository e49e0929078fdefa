//! A DuckDB, or a database behind an ADBC driver, that is served to ClickHouse's clients: it knows the users (`users.rs`),
//! tells its tables, and runs whatever is not an insert to be gathered.
//!
//! A request's text is read whole, taken apart (`ask.rs`) and run by the database as one statement, in its own SQL. Its
//! result is encoded batch by batch and sent as it comes (`sending.rs`): the first [`sending::BUFFER_BYTES`] are held
//! back, so that an error that comes early still has a status of its own; one that comes later breaks the body as
//! ClickHouse breaks it. What has to be whole before it is sent (`wait_end_of_query`, Parquet) is in memory up to a
//! bound and in a file beyond it (`spool.rs`). A client that goes away stops its query.

mod about;
mod answering;
mod ask;
mod head;
mod install;
mod kept_files;
mod own_table;
mod parameters;
mod parquet;
mod plain;
mod portable;
mod run;
mod sending;
mod settings;
mod shown;
mod source;
mod spool;
mod users;

use std::sync::Arc;

use futures::future::BoxFuture;
use windrow_adbc::{AdbcSink, SqlDatabase};
use windrow_clickhouse::{Credentials, Exception};
use windrow_columns::{Block, DataType};
use windrow_duckdb::statement::Parameter;
use windrow_duckdb::{DuckDbSink, Port, Session};
use windrow_gateway::sql_backend::{
    Access, After, Exchange, Read, Refusal, SqlBackend, SqlColumn, SqlRun, SqlSink, SqlStatement, SqlTable,
    StatementTerms,
};
use windrow_gateway::temporary_folder;
use windrow_http::Connection;
use windrow_settings::Settings;

pub use install::install_duckdb_functions;
pub use shown::values_as_text;
pub use spool::prepare_temporary_folder;

use ask::Question;
use kept_files::KeptFiles;
use run::{NativeRun, Run};
use spool::TemporaryFiles;
use users::Users;

/// A DuckDB in this process, or a database behind an ADBC driver.
pub struct ServedDatabase {
    database: SqlDatabase,
    users: Users,
    /// Results in Parquet that somebody reads in pieces.
    kept_files: KeptFiles,
    temporary_files: Arc<TemporaryFiles>,
}

impl ServedDatabase {
    pub fn new(database: SqlDatabase, settings: &Settings) -> ServedDatabase {
        let users = match &database {
            SqlDatabase::DuckDb(_) => Users::new(settings.duckdb.default_password.as_ref(), &settings.duckdb.users),
            SqlDatabase::Adbc(_) => Users::new(settings.adbc.default_password.as_ref(), &settings.adbc.users),
        };
        let max_bytes = settings.duckdb.max_result_files_bytes;
        let temporary_files = TemporaryFiles::new(temporary_folder(settings), max_bytes);
        ServedDatabase { database, users, kept_files: KeptFiles::default(), temporary_files }
    }

    async fn find(&self, database: &str, table: &str) -> Result<SqlTable, Exception> {
        let name = self.database.table_ref(database, table);
        if self.database.is_windrows(&name) {
            return Ok(SqlTable::Windrows);
        }
        let Some(info) = self.database.table(&name).await? else { return Ok(SqlTable::Missing) };
        let columns = info.columns.into_iter().map(|column| SqlColumn {
            name: column.name,
            // The type is named as a native client is told it, if it is one that ClickHouse has.
            type_name: column.data_type.as_ref().map_or(column.duckdb_type, ToString::to_string),
            data_type: column.data_type,
            is_generated: column.generated,
            has_default: column.has_default,
        });
        Ok(SqlTable::Found { columns: columns.collect(), recognises_batches: self.database.has_transactions() })
    }
}

impl SqlBackend for ServedDatabase {
    fn kind(&self) -> &'static str {
        self.database.kind()
    }

    fn version_suffix(&self) -> &str {
        self.database.version_suffix()
    }

    fn access(&self, credentials: &Credentials) -> Option<Access> {
        self.users.check(credentials)
    }

    /// Returns the database of a schema: DuckDB's schema `main` is the database `default`.
    fn canonical_database(&self, database: &str) -> String {
        self.database.database_of(self.database.schema_of(database)).to_owned()
    }

    fn find_database<'a>(&'a self, user: &'a str, database: &'a str) -> BoxFuture<'a, Result<(), Exception>> {
        Box::pin(async move {
            let schema = self.database.schema_of(database).to_owned();
            let session = Session { schema, readonly: true, user: user.to_owned(), port: Port::Http };
            self.database.query("SELECT 1", &session).await.map(drop)
        })
    }

    fn table<'a>(&'a self, database: &'a str, table: &'a str) -> BoxFuture<'a, Result<SqlTable, Exception>> {
        Box::pin(self.find(database, table))
    }

    fn when_tables_change(&self, changed: Box<dyn Fn() + Send + Sync>) {
        self.database.when_tables_change(changed);
    }

    fn sink(&self) -> Box<dyn SqlSink> {
        match &self.database {
            SqlDatabase::DuckDb(duckdb) => Box::new(DuckDbSink::new(duckdb.clone())),
            SqlDatabase::Adbc(adbc) => Box::new(AdbcSink::new(adbc.clone())),
        }
    }

    fn rows_as_json(
        &self,
        columns: &[String],
        types: &[DataType],
        block: &Block,
        limit: usize,
    ) -> Result<Vec<u8>, String> {
        shown::rows_as_json(columns, types, block, limit)
    }

    fn answer<'a>(
        &'a self,
        exchange: &'a Exchange<'_>,
        terms: StatementTerms<'a>,
        connection: &'a mut Connection,
        out: &'a mut Vec<u8>,
        read: Read,
    ) -> BoxFuture<'a, After> {
        Box::pin(self.answer_request(exchange, terms, connection, out, read))
    }

    fn prepare<'a>(&'a self, statement: &SqlStatement<'_>) -> Result<Box<dyn SqlRun + 'a>, Refusal> {
        let question = Question::of(&self.database, statement)?;
        Ok(Box::new(NativeRun::new(Run::new(&self.database, question))))
    }
}

/// Makes the literal for the value of a `{name:Type}`. `value` is the text of `param_name`, if there is one.
fn parameter(database: &SqlDatabase, value: Option<&str>, data_type: &str) -> Parameter {
    match database {
        SqlDatabase::DuckDb(_) => parameters::parameter(value, data_type),
        SqlDatabase::Adbc(adbc) => portable::parameter(value, data_type, adbc.has_plain_backslashes()),
    }
}
