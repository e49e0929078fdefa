//! A transaction of DuckDB as its thread sees it: blocking, on one connection.
//!
//! DuckDB's appender can't be trusted. When its last rows violate a constraint, it reports success; the
//! transaction is aborted then, and its COMMIT reports success too and stores nothing. So each append is
//! followed by a query that shows whether the transaction still lives, and after a failure only a rollback is
//! allowed. The error that the appender did not report is found in another way: the same rows are inserted by
//! an INSERT, in a transaction of their own that is rolled back.

use std::collections::HashMap;

use adbc_core::options::IngestMode;
use arrow_array::RecordBatch;
use windrow_clickhouse::{ErrorCode, Exception};

use crate::connection::Connection;
use crate::database::DuckDb;
use crate::errors::{is_aftermath, is_fatal, CommitError};
use crate::fit::Fitted;
use crate::single::not_taken;
use crate::statement::NotTaken;
use crate::table::{is_windrows, quoted, TableInfo, TableRef};
use crate::tables::may_change;
use crate::transaction::TransactionWork;

pub(crate) struct Work {
    database: DuckDb,
    connection: Connection,
    /// Descriptions of tables as this transaction sees them.
    tables: HashMap<TableRef, TableInfo>,
    failed: Option<Exception>,
    /// Says whether the transaction may have changed tables. Others see that when it is committed.
    has_changed: bool,
}

/// Name of the temporary table where rows wait to be inserted by a statement.
const STAGING: &str = "windrow_staging";

impl Work {
    pub(crate) fn begin(database: DuckDb) -> Result<Work, Exception> {
        let mut connection = database.connect()?;
        connection.execute("BEGIN TRANSACTION")?;
        Ok(Work { database, connection, tables: HashMap::new(), failed: None, has_changed: false })
    }

    /// Rolls back and returns the connection, for other queries.
    pub(crate) fn undone(mut self) -> Connection {
        // Fails where DuckDB has rolled back by itself.
        let _ = self.connection.execute("ROLLBACK");
        self.connection
    }

    fn alive(&self) -> Result<(), Exception> {
        self.failed.clone().map_or(Ok(()), Err)
    }

    fn append(
        &mut self,
        name: &TableRef,
        columns: Option<&[String]>,
        batches: &[RecordBatch],
    ) -> Result<u64, Exception> {
        let Some(first) = batches.first() else { return Ok(0) };
        let version = self.connection.version().to_owned();
        let info = self.info(name)?;
        let fitting = info.fitting_in_order(first.schema_ref(), columns);
        let fitting = fitting.map_err(|not_held| not_held.exception(&version))?;
        let name = info.name.clone();
        let mut fitted = Vec::with_capacity(batches.len());
        for batch in batches {
            let same = batch.schema_ref().fields() == first.schema_ref().fields();
            let fits = if same {
                fitting.fit(batch)
            } else {
                info.fitting_in_order(batch.schema_ref(), columns).and_then(|own| own.fit(batch))
            };
            fitted.push(fits.map_err(|not_held| not_held.exception(&version))?);
        }
        let rows = batches.iter().map(|batch| batch.num_rows() as u64).sum();
        for group in fitted.chunk_by(|one, next| one.batch.schema() == next.batch.schema()) {
            self.append_alike(&name, fitting.columns(), group)?;
        }
        Ok(rows)
    }

    /// Appends batches of one schema.
    fn append_alike(&mut self, name: &TableRef, columns: Option<&[String]>, group: &[Fitted]) -> Result<(), Exception> {
        let Some(first) = group.first() else { return Ok(()) };
        let batches: Vec<_> = group.iter().map(|fitted| fitted.batch.clone()).collect();
        if columns.is_some() || group.iter().any(|fitted| fitted.through_sql) {
            return self.insert(name, columns, batches);
        }
        let appended = self.connection.append(name, first.batch.schema(), batches.clone(), IngestMode::Append, false);
        let checked = appended.and_then(|()| self.connection.execute("SELECT 1").map(|_| ()));
        checked.map_err(|exception| match is_aftermath(&exception) {
            true => self.reason(name, batches),
            false => exception,
        })
    }

    /// Inserts batches by way of a temporary table.
    fn insert(
        &mut self,
        name: &TableRef,
        columns: Option<&[String]>,
        batches: Vec<RecordBatch>,
    ) -> Result<(), Exception> {
        let Some(first) = batches.first() else { return Ok(()) };
        let (staging, schema) = (TableRef::new("", STAGING), first.schema());
        self.connection.append(&staging, schema, batches, IngestMode::Replace, true)?;
        let columns = columns.map_or(String::new(), |columns| {
            let names: Vec<_> = columns.iter().map(|name| quoted(name)).collect();
            format!("({})", names.join(", "))
        });
        self.connection
            .execute(&format!("INSERT INTO {} {columns} FROM temp.{STAGING}", self.connection.whole_name(name)))?;
        self.connection.execute(&format!("DROP TABLE temp.{STAGING}")).map(|_| ())
    }

    /// Finds the error for which the appender aborted the transaction.
    fn reason(&mut self, name: &TableRef, batches: Vec<RecordBatch>) -> Exception {
        let _ = self.connection.execute("ROLLBACK");
        let tried = self.connection.execute("BEGIN TRANSACTION").and_then(|_| self.insert(name, None, batches));
        let _ = self.connection.execute("ROLLBACK");
        tried.err().unwrap_or_else(|| {
            let text = "Constraint Error: rows of the transaction violate a constraint together";
            Exception::new(ErrorCode::VIOLATED_CONSTRAINT, text, self.connection.version())
        })
    }

    /// Returns the description of a table. It is looked up once for each transaction: in it, nobody else
    /// changes the table.
    fn info(&mut self, name: &TableRef) -> Result<TableInfo, Exception> {
        if let Some(info) = self.tables.get(name) {
            return Ok(info.clone());
        }
        let unknown = || {
            let text = format!("Table {}.{} does not exist", name.schema, name.table);
            Exception::new(ErrorCode::UNKNOWN_TABLE, &text, self.connection.version())
        };
        let unknown = unknown();
        let info = self.database.tables().look_up_within(&mut self.connection, name, self.has_changed)?;
        let info = info.ok_or(unknown)?;
        self.tables.insert(name.clone(), info.clone());
        Ok(info)
    }
}

impl TransactionWork for Work {
    fn use_schema(&mut self, schema: &str) -> Result<(), Exception> {
        self.alive()?;
        let done = self.connection.use_schema(schema);
        done.inspect_err(|exception| self.failed = Some(exception.clone()))
    }

    fn execute(&mut self, sql: &str) -> Result<u64, Exception> {
        self.alive()?;
        if may_change(sql) {
            self.tables.clear();
            self.has_changed = true;
        }
        let done = self.connection.execute(sql);
        done.inspect_err(|exception| self.failed = Some(exception.clone()))
    }

    fn ingest(
        &mut self,
        name: &TableRef,
        columns: Option<&[String]>,
        batches: &[RecordBatch],
    ) -> Result<u64, Exception> {
        self.alive()?;
        if is_windrows(&name.schema) {
            return Err(not_taken(NotTaken::Windrows, self.connection.version()));
        }
        let done = self.append(name, columns, batches);
        done.inspect_err(|exception| self.failed = Some(exception.clone()))
    }

    fn commit(mut self) -> Result<(), CommitError> {
        if let Err(exception) = self.alive() {
            let _ = self.connection.execute("ROLLBACK");
            return Err(CommitError::Refused(exception));
        }
        let done = self.connection.execute("COMMIT").map(|_| ());
        if self.has_changed {
            self.database.tables().have_changed();
        }
        done.map_err(|exception| match is_fatal(&exception) {
            true => CommitError::Unknown(exception),
            false => CommitError::Refused(exception),
        })
    }

    fn rollback(self) {
        drop(self.undone());
    }
}
