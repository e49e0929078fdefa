//! The database, which is opened once and gives out connections.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arrow_array::RecordBatch;
use tokio::sync::{oneshot, Mutex, OwnedMutexGuard};
use windrow_clickhouse::{ErrorCode, Exception};
use windrow_duckdb::{RecordStream, Session, TableInfo, TableRef, Transaction, UserPermit, UserPermits};

use crate::batches::{self, Batches};
use crate::connection::Connection;
use crate::driver::Source;
use crate::options::AdbcOptions;
use crate::pool::Pool;
use crate::query;
use crate::system::{System, APPENDS, BATCHES};
use crate::tables::Tables;
use crate::transaction::Work;

/// A database behind an ADBC driver. Clones share the same database.
#[derive(Clone)]
pub struct Adbc {
    inner: Arc<Inner>,
}

struct Inner {
    system: System,
    version: String,
    stores: Pool,
    /// Connections for queries about tables, which inserts wait for: slow readers of results must not be in
    /// their way.
    lookups: Pool,
    /// Connections for queries that may have to wait for another transaction's commit, so that no look-up
    /// waits behind them.
    waits: Pool,
    transactions: Pool,
    turn: Arc<Mutex<()>>,
    query_permits: UserPermits,
    max_connections: usize,
    tables: Tables,
    batches: Batches,
    has_transactions: OnceLock<bool>,
}

const MAX_LOOKUPS: usize = 4;
const MAX_WAITS: usize = 4;
/// Transactions that are kept free for appends that have failed: such an append looks for its row in another
/// transaction.
const SPARE_TRANSACTIONS: usize = 2;
/// Time limit for a query to get a permit, and for the answer about a table.
const MAX_WAIT: Duration = Duration::from_secs(10);
const CLOSES_WITHIN: Duration = Duration::from_secs(5);

impl Adbc {
    /// Loads the driver. No connection is made yet: the database may be away.
    ///
    /// # Errors
    /// Fails where the driver can't be loaded or the address is not valid. The error says what to do.
    pub fn open(options: &AdbcOptions) -> Result<Adbc, String> {
        let system = System::of_scheme(&options.scheme);
        let version = format!("(ADBC {})", options.scheme);
        let source = Arc::new(Source::of(options)?);
        let pool = |count| Pool::new(source.clone(), system, version.clone(), count);
        let count = options.max_connections.clamp(1, 10_000);
        let inner = Inner {
            system,
            stores: pool(count),
            lookups: pool(MAX_LOOKUPS),
            waits: pool(MAX_WAITS),
            transactions: pool(count + SPARE_TRANSACTIONS),
            turn: Arc::default(),
            query_permits: UserPermits::new(count, (count - count / 4).max(1)),
            max_connections: count,
            tables: Tables::default(),
            batches: Batches::default(),
            has_transactions: OnceLock::new(),
            version,
        };
        Ok(Adbc { inner: Arc::new(inner) })
    }

    /// Returns the suffix of errors' texts: `(ADBC postgresql)`.
    pub fn version_suffix(&self) -> &str {
        &self.inner.version
    }

    /// Returns the schema for a database of ClickHouse. The empty schema is the one where the connection looks first.
    pub fn schema_of(database: &str) -> &str {
        match database {
            "default" => "",
            other => other,
        }
    }

    /// Says whether the table is one that Windrow keeps for itself.
    pub fn is_windrows(table: &str) -> bool {
        [BATCHES, APPENDS].iter().any(|own| table.eq_ignore_ascii_case(own))
    }

    /// Checks that the database answers.
    ///
    /// # Errors
    /// Fails where it can't be reached or answers with an error.
    pub async fn ping(&self) -> Result<(), Exception> {
        self.look(|database, connection| {
            connection.execute("SELECT 1")?;
            database.look_for_transactions(connection).map(|_| ())
        })
        .await
    }

    /// Returns the description of a table or a view, or `None` where there is none of that name.
    ///
    /// # Errors
    /// Fails where the database can't be asked.
    pub async fn table(&self, name: &TableRef) -> Result<Option<TableInfo>, Exception> {
        let name = name.clone();
        let found = self.look(move |database, connection| {
            database.look_for_transactions(connection)?;
            database.tables().look_up(connection, &name)
        });
        Ok(found.await?.map(|table| table.info.clone()))
    }

    /// Says whether rows can be stored as a whole, and a batch that comes again is recognised. This is known
    /// as soon as a table is.
    pub fn has_transactions(&self) -> bool {
        self.inner.has_transactions.get().copied().unwrap_or(true)
    }

    /// Runs one statement, if it is of a kind that Windrow runs.
    ///
    /// # Errors
    /// Fails where the statement may not run, no permit comes free in time, or the database refuses it or
    /// can't be reached.
    pub async fn query(&self, sql: &str, session: &Session) -> Result<RecordStream, Exception> {
        let permit = self.query_permit(&session.user).await?;
        query::run(self.clone(), permit, sql, session).await
    }

    /// Begins a transaction on a connection and a thread of its own.
    ///
    /// # Errors
    /// Fails where the database can't be reached or is closed, or its driver has no transactions.
    pub async fn begin(&self) -> Result<Transaction, Exception> {
        let permit = self.inner.transactions.permit().await.ok_or_else(|| self.closed())?;
        let database = self.clone();
        let begin = move || Work::begin(database);
        Transaction::begin(self.closed(), self.inner.version.clone(), permit, begin).await
    }

    /// Returns how many transactions may be open at once, besides those of small inserts.
    pub fn max_transactions(&self) -> usize {
        self.inner.max_connections
    }

    /// Runs a statement of Windrow's own, which may run twice. Text from outside may stand in it only as a literal.
    ///
    /// # Errors
    /// Fails where the database refuses the statement or can't be reached.
    pub async fn own_execute(&self, sql: &str) -> Result<(), Exception> {
        let sql = sql.to_owned();
        self.look(move |database, connection| {
            database.look_for_transactions(connection)?;
            connection.execute(&sql).map(|_| ())
        })
        .await
    }

    /// Runs a query like [`own_execute`](Adbc::own_execute), and returns the rows of its small result.
    ///
    /// # Errors
    /// Fails where the database refuses the query or can't be reached.
    pub async fn own_rows(&self, sql: &str) -> Result<Vec<RecordBatch>, Exception> {
        let sql = sql.to_owned();
        self.look(move |database, connection| {
            database.look_for_transactions(connection)?;
            connection.rows(&sql)
        })
        .await
    }

    /// Waits a short time for a transaction that has run `insert` into `table` and not ended. The way to wait
    /// for its row is to try the same insert; as that writes, it is done only while another transaction
    /// writes into the table. Returns false where this database can't tell for certain whether the row is
    /// there.
    pub(crate) async fn wait_for(&self, table: &str, insert: &str) -> Result<bool, Exception> {
        let system = self.system();
        let Some((is_written, wait)) = system.is_written(table).zip(system.wait_for(insert)) else {
            return Ok(system.keeps_ids_apart());
        };
        if self.own_rows(&is_written).await?.iter().all(|batch| batch.num_rows() == 0) {
            return Ok(true);
        }
        let wait = move |_: &Adbc, connection: &mut Connection| connection.execute(&wait).map(|_| true);
        self.look_in(|inner| &inner.waits, wait).await
    }

    /// Returns a query of one column: the names of the tables in a schema.
    pub fn list_tables(&self, schema: &str) -> String {
        self.inner.system.list_tables(schema)
    }

    /// Returns a query of one column: the names of the schemas.
    pub fn list_schemas(&self) -> &'static str {
        self.inner.system.list_schemas()
    }

    /// Registers a `listener` that is called when a statement has run here that may have changed tables.
    /// Changes from elsewhere are noticed by themselves, after a while.
    pub fn when_tables_change(&self, listener: impl Fn() + Send + Sync + 'static) {
        self.inner.tables.tell(Box::new(listener));
    }

    /// Waits for running calls and closes all connections. Later calls fail. If a driver waits for a server
    /// that is gone, this gives up after a while.
    pub async fn close(&self) {
        let closed = async {
            self.inner.query_permits.close().await;
            self.inner.stores.close().await;
            self.inner.transactions.close().await;
            self.inner.lookups.close().await;
            self.inner.waits.close().await;
        };
        if tokio::time::timeout(CLOSES_WITHIN, closed).await.is_err() {
            tracing::warn!("connections to the database are left open: it does not answer");
        }
    }

    /// Says whether a backslash in a string stands for itself.
    pub fn has_plain_backslashes(&self) -> bool {
        !matches!(self.inner.system, System::Other { .. })
    }

    pub(crate) fn system(&self) -> System {
        self.inner.system
    }

    pub(crate) fn stores(&self) -> &Pool {
        &self.inner.stores
    }

    pub(crate) fn transactions(&self) -> &Pool {
        &self.inner.transactions
    }

    /// Waits for the turn to write, in a database that has one writer. Blocks.
    pub(crate) fn take_turn(&self) -> Option<OwnedMutexGuard<()>> {
        self.system().has_one_writer().then(|| self.inner.turn.clone().blocking_lock_owned())
    }

    pub(crate) fn tables(&self) -> &Tables {
        &self.inner.tables
    }

    pub(crate) fn batches(&self) -> &Batches {
        &self.inner.batches
    }

    pub(crate) fn closed(&self) -> Exception {
        Exception::new(ErrorCode::ABORTED, "The database is being closed", &self.inner.version)
    }

    /// Finds out whether there are transactions, once, with the first connection.
    pub(crate) fn look_for_transactions(&self, connection: &mut Connection) -> Result<bool, Exception> {
        if let Some(known) = self.inner.has_transactions.get() {
            return Ok(*known);
        }
        let found = self.inner.system.has_transactions().map_or_else(|| connection.has_transactions(), Ok)?;
        if self.inner.has_transactions.set(found).is_ok() && !found {
            tracing::warn!(
                "this database's driver has no transactions: a batch whose answer is lost is stored AGAIN, and one that \
                 is refused is not narrowed down. Inserts are stored at least once here, not exactly once"
            );
        }
        Ok(found)
    }

    /// Removes old ids of batches on a thread of its own: no store waits for it.
    pub(crate) fn prune(&self) {
        let database = self.clone();
        let prune = move || {
            let _turn = database.take_turn();
            let pruned = database.stores().fresh().and_then(|mut connection| batches::prune(&mut connection));
            if let Err(exception) = pruned {
                tracing::warn!(%exception, "ids of stored batches could not be pruned");
            }
        };
        if let Err(error) = spawn("windrow-prune", prune) {
            tracing::warn!(%error, "ids of stored batches could not be pruned");
        }
    }

    /// Runs a query about facts. A connection that was idle may have been lost: then a new one is used.
    async fn look<T: Send + 'static>(
        &self,
        ask: impl Fn(&Adbc, &mut Connection) -> Result<T, Exception> + Send + 'static,
    ) -> Result<T, Exception> {
        self.look_in(|inner| &inner.lookups, ask).await
    }

    async fn look_in<T: Send + 'static>(
        &self,
        pool: fn(&Inner) -> &Pool,
        ask: impl Fn(&Adbc, &mut Connection) -> Result<T, Exception> + Send + 'static,
    ) -> Result<T, Exception> {
        match tokio::time::timeout(MAX_WAIT, self.look_whenever(pool, ask)).await {
            Ok(found) => found,
            Err(_) => {
                let text = format!("The database has not answered for {} s", MAX_WAIT.as_secs());
                Err(Exception::new(ErrorCode::NETWORK_ERROR, &text, &self.inner.version))
            }
        }
    }

    async fn look_whenever<T: Send + 'static>(
        &self,
        pool: fn(&Inner) -> &Pool,
        ask: impl Fn(&Adbc, &mut Connection) -> Result<T, Exception> + Send + 'static,
    ) -> Result<T, Exception> {
        let permit = pool(&self.inner).permit().await.ok_or_else(|| self.closed())?;
        let (sender, answer) = oneshot::channel();
        let database = self.clone();
        let job = move || {
            let found = database.look_now(pool(&database.inner), &ask);
            drop(permit);
            let _ = sender.send(found);
        };
        spawn("windrow-table", job).map_err(|error| self.no_thread(&error))?;
        answer.await.map_err(|_| self.closed())?
    }

    fn look_now<T>(
        &self,
        pool: &Pool,
        ask: &impl Fn(&Adbc, &mut Connection) -> Result<T, Exception>,
    ) -> Result<T, Exception> {
        let mut connection = pool.take()?;
        let mut found = ask(self, &mut connection);
        // A lock that was not to be had was waited for.
        if found.as_ref().is_err_and(|exception| exception.code != ErrorCode::ABORTED) && connection.is_used {
            pool.let_go();
            connection = pool.fresh()?;
            found = ask(self, &mut connection);
        }
        pool.give_back(connection);
        found
    }

    /// Opens a connection that was never used: its state ends with it, so a client's statement leaves nothing
    /// behind. Blocks.
    pub(crate) fn connect(&self) -> Result<Connection, Exception> {
        self.inner.lookups.fresh()
    }

    async fn query_permit(&self, user: &str) -> Result<UserPermit, Exception> {
        let permit = tokio::time::timeout(MAX_WAIT, self.inner.query_permits.acquire(user, None)).await;
        permit.map_err(|_| self.too_many_queries())?.ok_or_else(|| self.closed())
    }

    fn too_many_queries(&self) -> Exception {
        let text = format!(
            "Too many simultaneous queries for {} s. Maximum: {} (adbc.max_connections), three quarters of them for one user",
            MAX_WAIT.as_secs(),
            self.inner.max_connections
        );
        Exception::new(ErrorCode::TOO_MANY_SIMULTANEOUS_QUERIES, &text, &self.inner.version)
    }

    pub(crate) fn no_thread(&self, error: &std::io::Error) -> Exception {
        Exception::new(ErrorCode::CANNOT_SCHEDULE_TASK, &error.to_string(), &self.inner.version)
    }
}

/// Runs a blocking job on a thread of its own.
pub(crate) fn spawn(name: &str, job: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    std::thread::Builder::new().name(name.to_owned()).spawn(job).map(|_| ())
}
