//! The database, which is opened once and gives out connections.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use windrow_clickhouse::{ErrorCode, Exception};

use crate::connection::Connection;
use crate::errors::OpenError;
use crate::instance::Instance;
use crate::options::DuckDbOptions;
use crate::query::{self, Approved, Session};
use crate::query_permits::{NoPermit, QueryPermits};
use crate::stream::RecordStream;
use crate::table::{self, own_functions, own_schema, own_table, TableInfo, TableRef};
use crate::tables::Tables;
use crate::transaction::Transaction;
use crate::user_permits::UserPermit;
use crate::work::Work;

/// A DuckDB database. Clones share the same database.
#[derive(Clone)]
pub struct DuckDb {
    inner: Arc<Inner>,
}

struct Inner {
    instance: Instance,
    query_permits: QueryPermits,
    transactions: Arc<Semaphore>,
    /// Permits for queries about tables, which inserts wait for: slow readers of results must not be in their way.
    lookups: Arc<Semaphore>,
    tables: Tables,
    max_transactions: u32,
}

const MAX_LOOKUPS: u32 = 4;

impl DuckDb {
    /// Loads the library, opens the database and makes Windrow's own schema. Blocks.
    ///
    /// # Errors
    /// Fails where the library is missing, or the database can't be opened.
    pub fn open(options: DuckDbOptions) -> Result<DuckDb, OpenError> {
        let query_permits = QueryPermits::new(options.max_result_connections.clamp(1, 10_000), options.max_wait);
        let max_transactions = options.max_transactions.clamp(1, 10_000);
        let inner = Inner {
            instance: Instance::open(options)?,
            query_permits,
            transactions: Arc::new(Semaphore::new(max_transactions)),
            lookups: Arc::new(Semaphore::new(MAX_LOOKUPS as usize)),
            tables: Tables::default(),
            max_transactions: max_transactions as u32,
        };
        Ok(DuckDb { inner: Arc::new(inner) })
    }

    /// Returns the suffix of errors' texts: `(DuckDB v1.5.6)`.
    pub fn version_suffix(&self) -> &str {
        self.inner.instance.version()
    }

    /// Runs one statement, if it is of a kind that Windrow runs. DDL gives an empty or one-row stream as DuckDB does.
    ///
    /// # Errors
    /// Fails where the statement may not run, no permit comes free in time, DuckDB refuses the statement, or
    /// the database is closed.
    pub async fn query(&self, sql: &str, session: &Session) -> Result<RecordStream, Exception> {
        let approved = Approved::of(sql, session, self.version_suffix())?;
        query::run(self.clone(), self.query_permit(session).await?, approved).await
    }

    /// Runs a statement of Windrow's own, of any kind. Text from outside may stand in it only as a literal.
    ///
    /// # Errors
    /// Fails where DuckDB refuses the statement, or the database is closed.
    pub async fn own_query(&self, sql: &str) -> Result<RecordStream, Exception> {
        query::run(self.clone(), self.permit(&self.inner.lookups).await?, Approved::own(sql)).await
    }

    /// Returns the description of a table or a view, or `None` where there is none of that name.
    ///
    /// # Errors
    /// Fails where DuckDB can't be asked, or the database is closed.
    pub async fn table(&self, name: &TableRef) -> Result<Option<TableInfo>, Exception> {
        let permit = self.permit(&self.inner.lookups).await?;
        table::look_up(self.clone(), permit, name.clone()).await
    }

    /// Returns the whole name of one of Windrow's own tables, as it stands in a statement.
    pub fn own_table(&self, table: &str) -> String {
        own_table(self.inner.instance.catalog(), table)
    }

    /// Returns the schema of Windrow's own tables, as it stands in a statement.
    pub fn own_schema(&self) -> String {
        own_schema(self.inner.instance.catalog())
    }

    /// Returns the schema of the functions that every statement finds.
    pub fn own_functions(&self) -> String {
        own_functions(self.inner.instance.catalog())
    }

    /// Registers a `listener` that is called whenever tables may have changed, whoever changed them. It is
    /// called before the caller of that statement learns that it is done. It must not block, nor keep the
    /// database.
    pub fn when_tables_change(&self, listener: impl Fn() + Send + Sync + 'static) {
        self.inner.tables.tell(Box::new(listener));
    }

    /// Begins a transaction on a connection and a thread of its own.
    ///
    /// # Errors
    /// Fails where DuckDB can't begin it, or the database is closed.
    pub async fn begin(&self) -> Result<Transaction, Exception> {
        let (permit, database) = (self.transaction_permit().await?, self.clone());
        let begin = move || Work::begin(database);
        Transaction::begin(self.closed(), self.version_suffix().to_owned(), permit, begin).await
    }

    /// Waits for running calls, writes everything into the database's file and closes it. Later calls fail.
    pub async fn close(&self) {
        let inner = &self.inner;
        inner.query_permits.close().await;
        let transactions = inner.transactions.acquire_many(inner.max_transactions).await;
        let lookups = inner.lookups.acquire_many(MAX_LOOKUPS).await;
        inner.lookups.close();
        inner.transactions.close();
        drop((transactions, lookups));
        let database = self.clone();
        let (done, closed) = tokio::sync::oneshot::channel();
        if spawn("windrow-duckdb", move || {
            database.inner.instance.close();
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

    /// Opens a connection for the caller alone. Blocks.
    pub(crate) fn connect(&self) -> Result<Connection, Exception> {
        self.inner.instance.connect()
    }

    pub(crate) fn tables(&self) -> &Tables {
        &self.inner.tables
    }

    pub(crate) fn closed(&self) -> Exception {
        self.inner.instance.closed()
    }

    async fn query_permit(&self, session: &Session) -> Result<UserPermit, Exception> {
        self.inner.query_permits.acquire(session).await.map_err(|none| match none {
            NoPermit::Closed => self.closed(),
            NoPermit::Busy(text) => {
                Exception::new(ErrorCode::TOO_MANY_SIMULTANEOUS_QUERIES, &text, self.version_suffix())
            }
        })
    }

    async fn permit(&self, of: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, Exception> {
        of.clone().acquire_owned().await.map_err(|_| self.closed())
    }
}

/// Runs a blocking job on a thread of its own.
pub(crate) fn spawn(name: &str, job: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    std::thread::Builder::new().name(name.to_owned()).spawn(job).map(|_| ())
}
