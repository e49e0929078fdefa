//! The database: opened once, and what gives out connections to it.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use adbc_core::options::{AdbcVersion, OptionDatabase, OptionValue};
use adbc_core::{Database, Driver};
use adbc_driver_manager::{ManagedDatabase, ManagedDriver};
use arrow_array::cast::AsArray;
use arrow_array::Array as _;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use windrow_client::Exception;

use crate::connection::Connection;
use crate::errors::OpenError;
use crate::library;
use crate::options::DuckDbOptions;
use crate::query::{self, RecordStream, Session};
use crate::table::{self, literal, TableInfo, TableRef};
use crate::tables::Tables;
use crate::transaction::Transaction;

/// A DuckDB database. Clones are of the same one.
#[derive(Clone)]
pub struct DuckDb {
    inner: Arc<Inner>,
}

struct Inner {
    /// `None` once it is closed.
    database: Mutex<Option<ManagedDatabase>>,
    /// What stands behind texts of errors.
    version: String,
    queries: Arc<Semaphore>,
    transactions: Arc<Semaphore>,
    /// Of facts about tables, which inserts wait for: slow readers of results must not be in their way.
    lookups: Arc<Semaphore>,
    tables: Tables,
    max_queries: u32,
    max_transactions: u32,
}

const MAX_LOOKUPS: u32 = 4;

impl DuckDb {
    /// Loads the library, opens the database and makes Windrow's own schema. Blocks.
    pub fn open(options: DuckDbOptions) -> Result<DuckDb, OpenError> {
        let library = library::find(options.library.as_deref())?;
        let failed = |error: adbc_core::error::Error| OpenError(describe(&options, &error.message));
        let mut driver =
            ManagedDriver::load_dynamic_from_filename(&library, Some(b"duckdb_adbc_init"), AdbcVersion::V110)
                .map_err(|error| OpenError(format!("{}: {}", library.display(), error.message)))?;
        let fresh = options.path.as_deref().is_some_and(|path| !path.exists());
        let database = driver.new_database_with_opts(settings(&options)).map_err(failed)?;
        if let (true, Some(path)) = (fresh, options.path.as_deref()) {
            own_alone(path).map_err(|error| OpenError(format!("{}: {error}", path.display())))?;
        }
        let mut connection = Connection::new(database.new_connection().map_err(failed)?, String::new());
        for statement in at_start(&options) {
            connection.execute(&statement).map_err(|exception| OpenError(exception.line))?;
        }
        let version = version(&mut connection).map_err(|exception| OpenError(exception.line))?;
        let max_queries = options.max_result_connections.clamp(1, 10_000);
        let max_transactions = options.max_transactions.clamp(1, 10_000);
        let inner = Inner {
            database: Mutex::new(Some(database)),
            version: format!("(DuckDB {version})"),
            queries: Arc::new(Semaphore::new(max_queries)),
            transactions: Arc::new(Semaphore::new(max_transactions)),
            lookups: Arc::new(Semaphore::new(MAX_LOOKUPS as usize)),
            tables: Tables::default(),
            max_queries: max_queries as u32,
            max_transactions: max_transactions as u32,
        };
        Ok(DuckDb { inner: Arc::new(inner) })
    }

    /// What stands behind the texts of errors: `(DuckDB v1.5.6)`.
    pub fn version_suffix(&self) -> &str {
        &self.inner.version
    }

    /// Runs one statement, whatever it is. DDL gives an empty or one-row stream as DuckDB does.
    pub async fn query(&self, sql: &str, session: &Session) -> Result<RecordStream, Exception> {
        let permit = self.permit(&self.inner.queries).await?;
        query::run(self.clone(), permit, sql.to_owned(), session.clone()).await
    }

    /// What a table (or view) is made of. `None`: there is none of that name.
    pub async fn table(&self, name: &TableRef) -> Result<Option<TableInfo>, Exception> {
        let permit = self.permit(&self.inner.lookups).await?;
        table::look_up(self.clone(), permit, name.clone()).await
    }

    /// Begins a transaction on a connection and a thread of its own.
    pub async fn begin(&self) -> Result<Transaction, Exception> {
        let permit = self.transaction_permit().await?;
        Transaction::begin(self.clone(), permit).await
    }

    /// Waits for what is under way, writes all into the database's file and closes it. Calls that come later fail.
    pub async fn close(&self) {
        let inner = &self.inner;
        let queries = inner.queries.acquire_many(inner.max_queries).await;
        let transactions = inner.transactions.acquire_many(inner.max_transactions).await;
        let lookups = inner.lookups.acquire_many(MAX_LOOKUPS).await;
        inner.lookups.close();
        inner.queries.close();
        inner.transactions.close();
        drop((queries, transactions, lookups));
        let database = inner.database.lock().unwrap_or_else(PoisonError::into_inner).take();
        let version = inner.version.clone();
        let checkpoint = move || {
            let Some(database) = database else { return };
            if let Ok(connection) = database.new_connection() {
                if let Err(exception) = Connection::new(connection, version).execute("CHECKPOINT") {
                    tracing::warn!(%exception, "the database was closed without a checkpoint");
                }
            }
        };
        let (done, closed) = tokio::sync::oneshot::channel();
        if spawn("windrow-duckdb", move || {
            checkpoint();
            let _ = done.send(());
        })
        .is_ok()
        {
            let _ = closed.await;
        }
    }

    pub(crate) async fn transaction_permit(&self) -> Result<OwnedSemaphorePermit, Exception> {
        self.permit(&self.inner.transactions).await
    }

    /// A connection of one's own. Blocks for a moment.
    pub(crate) fn connect(&self) -> Result<Connection, Exception> {
        let database = self.inner.database.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let database = database.ok_or_else(|| self.closed())?;
        let connection = database.new_connection();
        let connection = connection.map_err(|error| crate::errors::exception(&error, &self.inner.version))?;
        Ok(Connection::new(connection, self.inner.version.clone()))
    }

    pub(crate) fn tables(&self) -> &Tables {
        &self.inner.tables
    }

    pub(crate) fn closed(&self) -> Exception {
        Exception::new(236, "The database is being closed", &self.inner.version)
    }

    async fn permit(&self, of: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, Exception> {
        of.clone().acquire_owned().await.map_err(|_| self.closed())
    }
}

/// Times are told in UTC wherever this runs, and what Windrow keeps for itself has a place. Folders can't be named when the
/// database is opened; what is forbidden behind them can't be allowed again.
fn at_start(options: &DuckDbOptions) -> Vec<String> {
    let folders: Vec<_> = options.allowed_folders.iter().map(|folder| literal(&text_of(folder))).collect();
    let always = ["SET GLOBAL TimeZone = 'UTC'", "CREATE SCHEMA IF NOT EXISTS windrow", crate::batches::TABLE];
    let mut statements: Vec<_> = always.into_iter().map(str::to_owned).collect();
    if !folders.is_empty() {
        statements.push(format!("SET GLOBAL allowed_directories = [{}]", folders.join(", ")));
    }
    if !options.external_access {
        statements.push("SET GLOBAL enable_external_access = false".to_owned());
    }
    statements
}

/// Runs something that blocks.
pub(crate) fn spawn(name: &str, job: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    std::thread::Builder::new().name(name.to_owned()).spawn(job).map(|_| ())
}

fn settings(options: &DuckDbOptions) -> Vec<(OptionDatabase, OptionValue)> {
    let mut settings = vec![("path".to_owned(), options.path.as_deref().map_or(":memory:".into(), text_of))];
    let mut set = |name: &str, value: String| settings.push((name.to_owned(), value));
    if let Some(bytes) = options.memory_limit_bytes {
        set("memory_limit", format!("{bytes}B"));
    }
    if let Some(threads) = options.threads {
        set("threads", threads.to_string());
    }
    // Types that Arrow doesn't have come as themselves, marked, rather than as texts and floats.
    set("arrow_lossless_conversion", "true".to_owned());
    let option = |(name, value)| (OptionDatabase::Other(name), OptionValue::String(value));
    settings.into_iter().map(option).collect()
}

fn text_of(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// DuckDB makes its files as the process's mask says.
fn own_alone(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))
}

fn version(connection: &mut Connection) -> Result<String, Exception> {
    let batches = connection.rows("SELECT version()")?;
    let column = batches.first().and_then(|batch| batch.columns().first()?.as_string_opt::<i32>());
    Ok(column.filter(|column| column.len() == 1).map_or("", |column| column.value(0)).to_owned())
}

fn describe(options: &DuckDbOptions, message: &str) -> String {
    let place = options.path.as_deref().map_or(":memory:".into(), text_of);
    format!("The database {place} can't be opened: {message}")
}
