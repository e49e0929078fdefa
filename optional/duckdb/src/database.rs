//! The database: opened once, and what gives out connections to it.

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

/// A DuckDB database. Clones are of the same one.
#[derive(Clone)]
pub struct DuckDb {
    inner: Arc<Inner>,
}

struct Inner {
    instance: Instance,
    query_permits: QueryPermits,
    transactions: Arc<Semaphore>,
    /// Of facts about tables, which inserts wait for: slow readers of results must not be in their way.
    lookups: Arc<Semaphore>,
    tables: Tables,
    max_transactions: u32,
}

const MAX_LOOKUPS: u32 = 4;

impl DuckDb {
    /// Loads the library, opens the database and makes Windrow's own schema. Blocks.
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

    /// What stands behind the texts of errors: `(DuckDB v1.5.6)`.
    pub fn version_suffix(&self) -> &str {
        self.inner.instance.version()
    }

    /// Runs one statement of those that are taken. DDL gives an empty or one-row stream as DuckDB does.
    pub async fn query(&self, sql: &str, session: &Session) -> Result<RecordStream, Exception> {
        let approved = Approved::of(sql, session, self.version_suffix())?;
        query::run(self.clone(), self.query_permit(session).await?, approved).await
    }

    /// Runs a statement of Windrow's own, whatever it is. Nothing that comes from outside may stand in it but as a
    /// literal.
    pub async fn own_query(&self, sql: &str) -> Result<RecordStream, Exception> {
        query::run(self.clone(), self.permit(&self.inner.lookups).await?, Approved::own(sql)).await
    }

    /// What a table (or view) is made of. `None`: there is none of that name.
    pub async fn table(&self, name: &TableRef) -> Result<Option<TableInfo>, Exception> {
        let permit = self.permit(&self.inner.lookups).await?;
        table::look_up(self.clone(), permit, name.clone()).await
    }

    /// The whole name, as it stands in a statement, of a table of Windrow's own.
    pub fn own_table(&self, table: &str) -> String {
        own_table(self.inner.instance.catalog(), table)
    }

    /// The schema that such tables are in, as it stands in a statement.
    pub fn own_schema(&self) -> String {
        own_schema(self.inner.instance.catalog())
    }

    /// The schema of functions that every statement finds.
    pub fn own_functions(&self) -> String {
        own_functions(self.inner.instance.catalog())
    }

    /// `listener` is called whenever tables may have changed, whoever changed them, before that one hears that it is
    /// done. It must not block, nor hold on to the database.
    pub fn when_tables_change(&self, listener: impl Fn() + Send + Sync + 'static) {
        self.inner.tables.tell(Box::new(listener));
    }

    /// Begins a transaction on a connection and a thread of its own.
    pub async fn begin(&self) -> Result<Transaction, Exception> {
        let (permit, database) = (self.transaction_permit().await?, self.clone());
        let begin = move || Work::begin(database);
        Transaction::begin(self.closed(), self.version_suffix().to_owned(), permit, begin).await
    }

    /// Waits for what is under way, writes all into the database's file and closes it. Calls that come later fail.
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

/// Runs something that blocks.
pub(crate) fn spawn(name: &str, job: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    std::thread::Builder::new().name(name.to_owned()).spawn(job).map(|_| ())
}
