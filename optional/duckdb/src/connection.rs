//! One connection to DuckDB. Its calls block, so the caller needs a thread for it.

use std::sync::Arc;

use adbc_core::error::Error;
use adbc_core::options::{IngestMode, OptionStatement, OptionValue};
use adbc_core::{CancelHandle, Connection as _, Optionable, Statement as _};
use adbc_driver_manager::{ManagedConnection, ManagedStatement};
use arrow_array::{RecordBatch, RecordBatchIterator, RecordBatchReader};
use arrow_schema::SchemaRef;
use windrow_clickhouse::{ErrorCode, Exception};

use crate::errors;
use crate::instance::Health;
use crate::table::{literal, own_functions, own_schema, own_table, quoted, TableRef};

pub(crate) type Reader = Box<dyn RecordBatchReader + Send>;

pub(crate) struct Connection {
    inner: ManagedConnection,
    version: String,
    /// The name of the database, which DuckDB makes from the file's name.
    catalog: Arc<str>,
    health: Arc<Health>,
}

/// A query that has begun. The statement has to live as long as its result is read.
pub(crate) struct Running {
    pub(crate) reader: Reader,
    pub(crate) _statement: ManagedStatement,
}

impl Connection {
    pub(crate) fn new(inner: ManagedConnection, version: String, catalog: Arc<str>, health: Arc<Health>) -> Connection {
        Connection { inner, version, catalog, health }
    }

    /// Returns the table's whole name, as it stands in a statement. Without the name of the database it would
    /// be ambiguous where a schema has the name of the file.
    pub(crate) fn whole_name(&self, table: &TableRef) -> String {
        format!("{}.{}", quoted(&self.catalog), table.quoted())
    }

    fn exception(&self, error: &Error) -> Exception {
        let exception = errors::exception(error, &self.version);
        self.health.note(&exception);
        exception
    }

    pub(crate) fn version(&self) -> &str {
        &self.version
    }

    /// Returns the schema of the tables that Windrow keeps for itself.
    pub(crate) fn own_schema(&self) -> String {
        own_schema(&self.catalog)
    }

    /// Returns the schema of the functions that every statement finds.
    pub(crate) fn own_functions(&self) -> String {
        own_functions(&self.catalog)
    }

    /// Returns the whole name of a table in Windrow's own schema.
    pub(crate) fn own_table(&self, table: &str) -> String {
        own_table(&self.catalog, table)
    }

    /// Makes `schema` the one where names without a schema are looked up. After it come the functions that
    /// Windrow defines for all statements. Windrow's tables are not among them: a statement that means one
    /// has to name its schema.
    pub(crate) fn use_schema(&mut self, schema: &str) -> Result<(), Exception> {
        let path = literal(&format!("{}.{},{}", quoted(&self.catalog), quoted(schema), self.own_functions()));
        self.execute(&format!("SET search_path = {path}")).map(|_| ())
    }

    fn statement(&mut self, sql: &str) -> Result<ManagedStatement, Exception> {
        let made = self.inner.new_statement().and_then(|mut statement| {
            statement.set_sql_query(sql)?;
            Ok(statement)
        });
        made.map_err(|error| self.exception(&error))
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
        let reader = statement.execute().map_err(|error| self.exception(&error))?;
        Ok(Running { reader, _statement: statement })
    }

    /// Runs a statement whose result is not read. Returns how many rows it changed, or 0 where DuckDB doesn't say so.
    pub(crate) fn execute(&mut self, sql: &str) -> Result<u64, Exception> {
        let mut statement = self.statement(sql)?;
        let changed = statement.execute_update().map_err(|error| self.exception(&error))?;
        Ok(changed.map_or(0, |changed| u64::try_from(changed).unwrap_or(0)))
    }

    /// Returns all batches of a small result.
    pub(crate) fn rows(&mut self, sql: &str) -> Result<Vec<RecordBatch>, Exception> {
        let running = self.query(sql, |_| true)?;
        let failed = |error: arrow_schema::ArrowError| arrow_exception(&error, &self.version);
        running.reader.map(|batch| batch.map_err(failed)).collect()
    }

    /// Appends batches by position: DuckDB does not look at the columns' names.
    pub(crate) fn append(
        &mut self,
        table: &TableRef,
        schema: SchemaRef,
        batches: Vec<RecordBatch>,
        mode: IngestMode,
        temporary: bool,
    ) -> Result<(), Exception> {
        let reader = RecordBatchIterator::new(batches.into_iter().map(Ok), schema);
        let done = self.inner.new_statement().and_then(|mut statement| {
            statement.set_option(OptionStatement::TargetTable, OptionValue::String(table.table.clone()))?;
            if temporary {
                statement.set_option(OptionStatement::Temporary, OptionValue::String("true".to_owned()))?;
            } else {
                statement.set_option(OptionStatement::TargetCatalog, OptionValue::String(self.catalog.to_string()))?;
                statement.set_option(OptionStatement::TargetDbSchema, OptionValue::String(table.schema.clone()))?;
            }
            statement.set_option(OptionStatement::IngestMode, mode.into())?;
            statement.bind_stream(Box::new(reader))?;
            statement.execute_update()
        });
        done.map(|_| ()).map_err(|error| self.exception(&error))
    }
}

/// Makes an exception of an error that comes while a result is read. It has DuckDB's text inside an error of Arrow.
pub(crate) fn arrow_exception(error: &arrow_schema::ArrowError, version: &str) -> Exception {
    let text = match error {
        arrow_schema::ArrowError::CDataInterface(text) => text.clone(),
        other => other.to_string(),
    };
    // What stands before it is Arrow's; the error's kind is the first that DuckDB says.
    let text = text.split_once("Producer error: ").map_or(text.as_str(), |(_, told)| told);
    errors::of_text(text, adbc_core::error::Status::Unknown, version)
}
