//! One connection. Its calls block, so the caller needs a thread for it.

use adbc_core::error::Status;
use adbc_core::options::{IngestMode, OptionConnection, OptionStatement, OptionValue};
use adbc_core::{CancelHandle, Connection as _, Database as _, Optionable, Statement as _};
use adbc_driver_manager::{ManagedConnection, ManagedStatement};
use arrow_array::{RecordBatch, RecordBatchIterator, RecordBatchReader};
use arrow_schema::Schema;
use windrow_clickhouse::{ErrorCode, Exception};
use windrow_duckdb::TableRef;

use crate::driver::Source;
use crate::errors;
use crate::system::System;

pub(crate) struct Connection {
    inner: ManagedConnection,
    system: System,
    version: String,
    /// Says whether the connection may be used again: nothing has failed on it.
    pub(crate) is_sound: bool,
    /// Says whether the connection has lain idle, and may have been lost meanwhile.
    pub(crate) is_used: bool,
}

/// A query that has begun. The statement has to live as long as its result is read.
pub(crate) struct Running {
    pub(crate) reader: Box<dyn RecordBatchReader + Send>,
    pub(crate) _statement: ManagedStatement,
}

impl Connection {
    pub(crate) fn open(source: &Source, system: System, version: &str) -> Result<Connection, Exception> {
        let made = source.database().and_then(|database| database.new_connection());
        let inner = made.map_err(|error| errors::exception(&error, version))?;
        let mut connection = Connection { inner, system, version: version.to_owned(), is_sound: true, is_used: false };
        for statement in system.at_connect() {
            connection.execute(statement)?;
        }
        Ok(connection)
    }

    pub(crate) fn system(&self) -> System {
        self.system
    }

    pub(crate) fn version(&self) -> &str {
        &self.version
    }

    fn checked<T>(&mut self, done: Result<T, adbc_core::error::Error>) -> Result<T, Exception> {
        done.map_err(|error| {
            self.is_sound = false;
            errors::exception(&error, &self.version)
        })
    }

    fn set(&mut self, option: OptionConnection, value: &str) -> Result<(), adbc_core::error::Error> {
        self.inner.set_option(option, OptionValue::String(value.to_owned()))
    }

    /// Says whether the driver has transactions, for a database where that is not known.
    pub(crate) fn has_transactions(&mut self) -> Result<bool, Exception> {
        let told = self.set(OptionConnection::AutoCommit, "false");
        match told.map_err(|error| error.status) {
            Ok(()) => {
                let ended = self.set(OptionConnection::AutoCommit, "true");
                self.checked(ended).map(|()| true)
            }
            Err(Status::NotImplemented | Status::InvalidArguments | Status::InvalidState) => Ok(false),
            Err(status) => {
                let error = adbc_core::error::Error::with_message_and_status("a transaction can't be begun", status);
                self.checked(Err(error))
            }
        }
    }

    pub(crate) fn begin(&mut self) -> Result<(), Exception> {
        let begun = self.set(OptionConnection::AutoCommit, "false");
        self.checked(begun)
    }

    /// Commits the transaction, and leaves the connection without one.
    pub(crate) fn commit(&mut self) -> Result<(), Exception> {
        let done = self.inner.commit();
        self.checked(done)?;
        // The driver has begun another one, which must not stay open while nobody works.
        let ended = self.set(OptionConnection::AutoCommit, "true");
        self.is_sound &= ended.is_ok();
        Ok(())
    }

    /// Rolls back. The connection is not used again.
    pub(crate) fn rollback(&mut self) {
        self.is_sound = false;
        // Fails where the connection is gone, and then nothing was stored either.
        let _ = self.inner.rollback();
    }

    fn statement(&mut self, sql: &str) -> Result<ManagedStatement, Exception> {
        let made = self.inner.new_statement().and_then(|mut statement| {
            statement.set_sql_query(sql)?;
            Ok(statement)
        });
        self.checked(made)
    }

    /// Runs a statement and returns its result. `cancellable` gets the handle to stop the statement before it
    /// runs, and says whether it may run at all.
    pub(crate) fn query(
        &mut self,
        sql: &str,
        cancellable: impl FnOnce(Box<dyn CancelHandle>) -> bool,
    ) -> Result<Running, Exception> {
        let mut statement = self.statement(sql)?;
        if !cancellable(statement.get_cancel_handle()) {
            return Err(Exception::new(ErrorCode::QUERY_WAS_CANCELLED, "The query was cancelled", &self.version));
        }
        let begun = statement.execute();
        Ok(Running { reader: self.checked(begun)?, _statement: statement })
    }

    /// Runs a statement whose result is not read. Returns how many rows it changed, or 0 where the driver
    /// doesn't say so.
    pub(crate) fn execute(&mut self, sql: &str) -> Result<u64, Exception> {
        let mut statement = self.statement(sql)?;
        let done = statement.execute_update();
        let changed = self.checked(done)?;
        Ok(changed.map_or(0, |changed| u64::try_from(changed).unwrap_or(0)))
    }

    /// Returns all batches of a small result.
    pub(crate) fn rows(&mut self, sql: &str) -> Result<Vec<RecordBatch>, Exception> {
        let Running { reader, _statement } = self.query(sql, |_| true)?;
        let rows: Result<Vec<_>, _> = reader.collect();
        rows.map_err(|error| {
            self.is_sound = false;
            errors::of_arrow(&error, &self.version)
        })
    }

    /// Returns the schema of a table as the driver reads it from the catalogue: this waits for no lock on the table.
    pub(crate) fn table_schema(&mut self, table: &TableRef) -> Result<Schema, Exception> {
        let schema = Some(table.schema.as_str()).filter(|schema| !schema.is_empty());
        let found = self.inner.get_table_schema(None, schema, &table.table);
        self.checked(found)
    }

    /// Appends rows. Their columns are matched with the table's by name.
    pub(crate) fn ingest(&mut self, table: &TableRef, batches: Vec<RecordBatch>) -> Result<(), Exception> {
        let schema = Some(table.schema.as_str()).filter(|schema| !schema.is_empty());
        self.ingest_into(&table.table, schema.map(|schema| (OptionStatement::TargetDbSchema, schema)), batches)
    }

    /// Appends rows like [`ingest`](Connection::ingest), but into a temporary table.
    pub(crate) fn ingest_temporary(&mut self, table: &str, batches: Vec<RecordBatch>) -> Result<(), Exception> {
        let place = match self.system {
            System::Sqlite => (OptionStatement::Temporary, "true"),
            System::PostgreSql | System::Other { .. } => (OptionStatement::TargetDbSchema, self.system.temporary()),
        };
        self.ingest_into(table, Some(place), batches)
    }

    fn ingest_into(
        &mut self,
        table: &str,
        place: Option<(OptionStatement, &str)>,
        batches: Vec<RecordBatch>,
    ) -> Result<(), Exception> {
        let Some(schema) = batches.first().map(RecordBatch::schema) else { return Ok(()) };
        let reader = RecordBatchIterator::new(batches.into_iter().map(Ok), schema);
        let done = self.inner.new_statement().and_then(|mut statement| {
            let text = |text: &str| OptionValue::String(text.to_owned());
            statement.set_option(OptionStatement::TargetTable, text(table))?;
            if let Some((option, value)) = place {
                statement.set_option(option, text(value))?;
            }
            statement.set_option(OptionStatement::IngestMode, IngestMode::Append.into())?;
            statement.bind_stream(Box::new(reader))?;
            statement.execute_update()
        });
        self.checked(done).map(|_| ())
    }

    /// Makes the connection read-only, if the database supports that.
    pub(crate) fn only_read(&mut self) -> Result<(), Exception> {
        match self.system.read_only() {
            Some(statement) => self.execute(statement).map(|_| ()),
            // What a driver without it runs is judged by its text alone.
            None => {
                let _ = self.set(OptionConnection::ReadOnly, "true");
                Ok(())
            }
        }
    }

    pub(crate) fn use_schema(&mut self, schema: &str) -> Result<(), Exception> {
        if schema.is_empty() {
            return Ok(());
        }
        match self.system.use_schema(schema) {
            Some(statement) => self.execute(&statement).map(|_| ()),
            None => {
                let set = self.set(OptionConnection::CurrentSchema, schema);
                self.checked(set)
            }
        }
    }
}
