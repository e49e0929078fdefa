//! A DuckDB, or another database that takes SQL and no requests, behind ClickHouse's protocols: for it the gateway does
//! what a server does. It knows the users (`users.rs`), answers an admission's questions (`admission.rs`), and runs
//! whatever is not an insert to be gathered, over HTTP (`http.rs`) and over the native protocol (`native.rs`).
//!
//! A request's text is read whole, taken apart (`ask.rs`) and run by the database as one statement, in its own SQL. Its
//! result is encoded batch by batch and sent as it comes (`sending.rs`): the first [`sending::BUFFER_BYTES`] are held
//! back, so that an error that comes early still has a status of its own; one that comes later breaks the body as
//! ClickHouse breaks it. What has to be whole before it is sent (`wait_end_of_query`, Parquet) is in memory up to a
//! bound and in a file beyond it (`spool.rs`). A client that goes away stops its query.

mod about;
mod admission;
mod answering;
mod ask;
mod head;
mod http;
mod install;
mod kept_files;
mod native;
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
mod text;
mod users;

use std::sync::Arc;

use windrow_adbc::{AdbcSink, SqlDatabase};
use windrow_clickhouse::{Credentials, Exception};
use windrow_duckdb::results::OutputSettings;
use windrow_duckdb::{DuckDbSink, Port, Session};
use windrow_engine::sink::{Batch, Destination, Load, Sink, StoreError, Stored, TableKey};
use windrow_settings::Settings;
use windrow_sql::Parameter;

pub(crate) use admission::SETTINGS;
pub use install::install_duckdb_functions;
use kept_files::KeptFiles;
pub(crate) use plain::is_for_anyone;
pub(crate) use shown::rows_as_json;
pub use shown::values_as_text;
pub use spool::prepare_temporary_folder;
use spool::TemporaryFiles;
pub use users::Access;
use users::Users;

use crate::admission::UserKey;
use crate::data::{Caller, Identity};
use crate::options::temporary_folder;

/// A DuckDB in this process, or a database behind an ADBC driver.
#[derive(Clone)]
pub struct SqlBackend {
    pub database: SqlDatabase,
    users: Arc<Users>,
    /// Results in Parquet that somebody reads in pieces.
    kept_files: KeptFiles,
    temporary_files: Arc<TemporaryFiles>,
}

impl SqlBackend {
    pub fn new(database: SqlDatabase, settings: &Settings) -> SqlBackend {
        let users = match &database {
            SqlDatabase::DuckDb(_) => Users::new(settings.duckdb.default_password.as_ref(), &settings.duckdb.users),
            SqlDatabase::Adbc(_) => Users::new(settings.adbc.default_password.as_ref(), &settings.adbc.users),
        };
        let max_bytes = settings.duckdb.max_result_files_bytes;
        let temporary_files = TemporaryFiles::new(temporary_folder(settings), max_bytes);
        SqlBackend { database, users: Arc::new(users), kept_files: KeptFiles::default(), temporary_files }
    }

    /// `None`: there is no such user, or it has another password.
    pub fn access(&self, credentials: &Credentials) -> Option<Access> {
        self.users.check(credentials)
    }

    /// Ends when nothing of it runs any more.
    pub async fn close(&self) {
        self.database.close().await;
    }

    pub(crate) fn kind(&self) -> &'static str {
        self.database.kind()
    }

    pub(crate) fn caller(&self, identity: Identity) -> Caller {
        self.users.caller(identity)
    }

    pub(crate) fn own_credentials(&self) -> &Credentials {
        self.users.windrow()
    }

    /// DuckDB's schema `main` is the database `default`.
    pub(crate) fn canonical_database(&self, database: &str) -> String {
        self.database.database_of(self.database.schema_of(database)).to_owned()
    }

    /// Finds the database that a user begins in.
    pub(crate) async fn find_database(&self, key: &UserKey) -> Result<(), Exception> {
        let schema = self.database.schema_of(key.database.as_deref().unwrap_or("default")).to_owned();
        let session = Session { schema, readonly: true, user: key.credentials.user.clone(), port: Port::Http };
        self.database.query("SELECT 1", &session).await.map(drop)
    }

    pub(crate) fn when_tables_change(&self, changed: impl Fn() + Send + Sync + 'static) {
        self.database.when_tables_change(changed);
    }

    pub(crate) fn sink(&self) -> SqlSink {
        match &self.database {
            SqlDatabase::DuckDb(duckdb) => SqlSink::DuckDb(DuckDbSink::new(duckdb.clone())),
            SqlDatabase::Adbc(adbc) => SqlSink::Adbc(AdbcSink::new(adbc.clone())),
        }
    }
}

/// Whether it is a setting of how results are written.
pub(crate) fn is_output_setting(name: &str) -> bool {
    OutputSettings::default().set(name, "")
}

/// Where the gatherer's batches go.
pub enum SqlSink {
    DuckDb(DuckDbSink),
    Adbc(AdbcSink),
}

impl Sink for SqlSink {
    async fn store(&self, batch: &Batch) -> Result<Stored, StoreError> {
        match self {
            SqlSink::DuckDb(sink) => sink.store(batch).await,
            SqlSink::Adbc(sink) => sink.store(batch).await,
        }
    }

    async fn answers(&self, destination: &Destination) -> bool {
        match self {
            SqlSink::DuckDb(sink) => sink.answers(destination).await,
            SqlSink::Adbc(sink) => sink.answers(destination).await,
        }
    }

    async fn load(&self, tables: &[TableKey]) -> Option<Load> {
        match self {
            SqlSink::DuckDb(sink) => sink.load(tables).await,
            SqlSink::Adbc(sink) => sink.load(tables).await,
        }
    }
}

/// The literal for the value of a `{name:Type}`. `value` is the text of `param_name`, if there is one.
fn parameter(database: &SqlDatabase, value: Option<&str>, data_type: &str) -> Parameter {
    match database {
        SqlDatabase::DuckDb(_) => parameters::parameter(value, data_type),
        SqlDatabase::Adbc(adbc) => portable::parameter(value, data_type, adbc.has_plain_backslashes()),
    }
}
