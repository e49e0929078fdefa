//! The database: opened once, and what gives out connections to it.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use windrow_client::Exception;

use crate::connection::Connection;
use crate::errors::OpenError;
use crate::instance::Instance;
use crate::options::DuckDbOptions;
use crate::query::{self, RecordStream, Session};
use crate::table::{self, TableInfo, TableRef};
use crate::tables::Tables;
use crate::transaction::Transaction;

/// A DuckDB database. Clones are of the same one.
#[derive(Clone)]
pub struct DuckDb {
    inner: Arc<Inner>,
}

struct Inner {
    instance: Instance,
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
        let max_queries = options.max_result_connections.clamp(1, 10_000);
        let max_transactions = options.max_transactions.clamp(1, 10_000);
        let inner = Inner {
            instance: Instance::open(options)?,
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
        self.inner.instance.version()
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

    /// The whole name, as it stands in a statement, of a table of Windrow's own.
    pub fn own_table(&self, table: &str) -> String {
        self.inner.instance.own_table(table)
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

    /// A connection of one's own. Blocks.
    pub(crate) fn connect(&self) -> Result<Connection, Exception> {
        self.inner.instance.connect()
    }

    pub(crate) fn tables(&self) -> &Tables {
        &self.inner.tables
    }

    pub(crate) fn closed(&self) -> Exception {
        self.inner.instance.closed()
    }

    async fn permit(&self, of: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, Exception> {
        of.clone().acquire_owned().await.map_err(|_| self.closed())
    }
}

/// Runs something that blocks.
pub(crate) fn spawn(name: &str, job: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    std::thread::Builder::new().name(name.to_owned()).spawn(job).map(|_| ())
}
