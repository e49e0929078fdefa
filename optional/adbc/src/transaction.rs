//! A transaction as its thread sees it: blocking, on a connection that was never used before.
//!
//! SQLite lets only one transaction write at a time, and it may take hours until the last of an append's rows
//! has come. So rows wait there in temporary tables, which block nobody, and go into their own table when all
//! are there. In PostgreSQL rows pass through temporary tables where a column has to be cast, one table for
//! all batches.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::RecordBatch;
use tokio::sync::OwnedMutexGuard;
use windrow_clickhouse::{ErrorCode, Exception};
use windrow_duckdb::statement::NotTaken;
use windrow_duckdb::{may_change_tables, not_taken, CommitError, TableRef, TransactionWork};

use crate::connection::Connection;
use crate::database::Adbc;
use crate::errors;
use crate::table::Table;
use crate::write::{self, Staging};

/// Time limit for a lock that others have.
const LOCKED_AT_MOST: Duration = Duration::from_secs(300);
const LOCK_PAUSE: Duration = Duration::from_millis(100);

pub(crate) struct Work {
    database: Adbc,
    connection: Connection,
    /// Descriptions of tables as this transaction sees them.
    tables: HashMap<TableRef, Arc<Table>>,
    staged: Vec<Staged>,
    has_begun: bool,
    /// The turn to write into a database with one writer. Appends and small inserts wait here for each other,
    /// since waiting for the database's own lock has a time limit.
    turn: Option<OwnedMutexGuard<()>>,
    failed: Option<Exception>,
    /// Says whether the transaction may have changed tables. Others see that when it is committed.
    has_changed: bool,
}

/// Rows that wait for the transaction to begin, or that are cast.
struct Staged {
    table: Arc<Table>,
    staging: Staging,
}

impl Work {
    pub(crate) fn begin(database: Adbc) -> Result<Work, Exception> {
        let mut connection = database.transactions().fresh()?;
        if !database.look_for_transactions(&mut connection)? {
            let text = "This database's driver has no transactions: what belongs together can't be stored as a whole";
            return Err(Exception::new(ErrorCode::NOT_IMPLEMENTED, text, connection.version()));
        }
        let mut work = Work {
            database,
            connection,
            tables: HashMap::new(),
            staged: Vec::new(),
            has_begun: false,
            turn: None,
            failed: None,
            has_changed: false,
        };
        if !work.database.system().has_one_writer() {
            work.start()?;
        }
        Ok(work)
    }

    fn start(&mut self) -> Result<(), Exception> {
        if !self.has_begun {
            self.turn = self.database.take_turn();
            self.connection.begin()?;
            self.has_begun = true;
        }
        Ok(())
    }

    fn alive(&self) -> Result<(), Exception> {
        self.failed.clone().map_or(Ok(()), Err)
    }

    /// Notes an error; after it nothing more is done in the transaction.
    fn noted<T>(&mut self, done: Result<T, Exception>) -> Result<T, Exception> {
        done.inspect_err(|exception| self.failed = Some(exception.clone()))
    }

    fn table(&mut self, name: &TableRef) -> Result<Arc<Table>, Exception> {
        if let Some(table) = self.tables.get(name) {
            return Ok(table.clone());
        }
        let found = self.connection.system().describe(&mut self.connection, name)?;
        let table = Arc::new(found.ok_or_else(|| {
            let text = format!("Table {} does not exist", self.connection.system().table(name));
            Exception::new(ErrorCode::UNKNOWN_TABLE, &text, self.connection.version())
        })?);
        self.tables.insert(name.clone(), table.clone());
        Ok(table)
    }

    fn append(
        &mut self,
        name: &TableRef,
        columns: Option<&[String]>,
        batches: &[RecordBatch],
    ) -> Result<u64, Exception> {
        let Some(first) = batches.first() else { return Ok(0) };
        let table = self.table(name)?;
        let of_batch = || first.schema_ref().fields().iter().map(|field| field.name().clone()).collect();
        let columns: Vec<String> = columns.map_or_else(of_batch, <[String]>::to_vec);
        let fitted = write::fitted(self.connection.system(), &table, &columns, batches);
        let fitted = fitted.map_err(|not_held| not_held.exception(self.connection.version()))?;
        match self.has_begun {
            true => self.write(table, fitted)?,
            false => {
                let at = self.staging(table, write::names(&fitted))?;
                self.staged[at].staging.add(&mut self.connection, fitted)?;
            }
        }
        Ok(batches.iter().map(|batch| batch.num_rows() as u64).sum())
    }

    fn write(&mut self, table: Arc<Table>, batches: Vec<RecordBatch>) -> Result<(), Exception> {
        write::check_shape(&mut self.connection, &table)?;
        let names = write::names(&batches);
        if !table.casts_any(&names) {
            return self.connection.ingest(&table.info.name, batches);
        }
        let at = self.staging(table, names)?;
        let Staged { table, staging } = &self.staged[at];
        staging.add(&mut self.connection, batches)?;
        staging.move_to(&mut self.connection, table, "")?;
        staging.empty(&mut self.connection)
    }

    /// Returns the index of the staging for rows with these columns, made if it is missing.
    fn staging(&mut self, table: Arc<Table>, names: Vec<String>) -> Result<usize, Exception> {
        let known = self.staged.iter().position(|staged| staged.table == table && staged.staging.names == names);
        if let Some(at) = known {
            return Ok(at);
        }
        let staging = Staging::make(&mut self.connection, &table, names, self.staged.len())?;
        self.staged.push(Staged { table, staging });
        Ok(self.staged.len() - 1)
    }

    fn move_held(&mut self) -> Result<(), Exception> {
        if self.has_begun {
            return Ok(());
        }
        self.start()?;
        for held in std::mem::take(&mut self.staged) {
            let moved = self.in_the_end(|connection| held.staging.move_to(connection, &held.table, ""));
            moved.map_err(|exception| self.located(&held, exception))?;
        }
        Ok(())
    }

    /// Tries a step until it succeeds or the time limit is over. Another program, or a client that reads for
    /// long, may keep a database with one writer locked for longer than its driver waits. Uploaded rows are
    /// not given up at their last step for that.
    fn in_the_end<T>(&mut self, step: impl Fn(&mut Connection) -> Result<T, Exception>) -> Result<T, Exception> {
        let (waits, since) = (self.database.system().has_one_writer(), Instant::now());
        loop {
            match step(&mut self.connection) {
                Err(exception) if waits && exception.code == ErrorCode::ABORTED && since.elapsed() < LOCKED_AT_MOST => {
                    tracing::warn!(%exception, "an ordered append waits for a lock that others have on the database");
                    std::thread::sleep(LOCK_PAUSE);
                }
                done => return done,
            }
        }
    }

    /// Finds the row of an error. SQLite doesn't say which row violates a constraint, but it can keep the
    /// rows before it, which are counted.
    fn located(&mut self, held: &Staged, exception: Exception) -> Exception {
        if !exception.comes_of_values() || held.staging.move_to(&mut self.connection, &held.table, "OR FAIL").is_ok() {
            return exception;
        }
        let counted = self.connection.rows("SELECT changes()").unwrap_or_default();
        let count = counted.first().and_then(|batch| batch.columns().first()?.as_primitive_opt::<Int64Type>().cloned());
        let row = count.and_then(|count| u64::try_from(count.iter().next()??).ok()).map(|before| before + 1);
        row.map_or(exception.clone(), |row| errors::at_row(&exception, row))
    }
}

impl TransactionWork for Work {
    fn use_schema(&mut self, schema: &str) -> Result<(), Exception> {
        self.alive()?;
        let done = self.connection.use_schema(schema);
        self.noted(done)
    }

    fn execute(&mut self, sql: &str) -> Result<u64, Exception> {
        self.write_held()?;
        if may_change_tables(sql) {
            self.tables.clear();
            self.has_changed = true;
        }
        let done = self.connection.execute(sql);
        self.noted(done)
    }

    fn ingest(
        &mut self,
        name: &TableRef,
        columns: Option<&[String]>,
        batches: &[RecordBatch],
    ) -> Result<u64, Exception> {
        self.alive()?;
        if Adbc::is_windrows(&name.table) {
            return Err(not_taken(NotTaken::Windrows, self.connection.version()));
        }
        let done = self.append(name, columns, batches);
        self.noted(done)
    }

    fn write_held(&mut self) -> Result<(), Exception> {
        self.alive()?;
        let done = self.move_held();
        self.noted(done)
    }

    fn commit(mut self) -> Result<(), CommitError> {
        if let Err(exception) = self.write_held() {
            self.connection.rollback();
            return Err(CommitError::Refused(exception));
        }
        let done = self.in_the_end(Connection::commit);
        if self.has_changed {
            self.database.tables().have_changed();
        }
        done.map_err(|exception| {
            self.connection.rollback();
            match self.connection.system().has_undone(&exception) {
                true => CommitError::Refused(exception),
                false => CommitError::Unknown(exception),
            }
        })
    }

    fn rollback(mut self) {
        self.connection.rollback();
    }
}
