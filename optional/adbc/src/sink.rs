//! The sink for any database: a batch's id is stored in the same transaction as its rows, where there are
//! transactions.
//!
//! The id comes first. It is a primary key, so a second attempt under the same id waits there until the first
//! has ended, even an attempt whose connection is long gone. So the rows that follow were surely not stored
//! by another attempt:
//!
//! - `Ok`: the commit said so, or the id is there.
//! - `Refused`: the database itself has answered, with an error; the transaction has ended with it. Or the connection
//!   broke while the rows were sent, for which they may be the reason.
//! - `NotSent`: the connection could not be made, or broke before any rows were sent.
//! - `Unknown`: the connection broke during the commit. The id was looked for, and isn't there yet.
//!
//! Without transactions, it is not known after an error what is stored. Then a batch that failed is
//! [`StoreError::Failed`] as a whole, and a batch whose connection broke may be stored twice.

use std::sync::Arc;

use arrow_array::RecordBatch;
use tokio::sync::oneshot;
use windrow_clickhouse::{ErrorCode, Exception};
use windrow_columns::Rows;
use windrow_duckdb::{record_batch, TableRef};
use windrow_engine::sink::{Batch, BatchId, Destination, Form, Sink, StoreError, Stored};

use crate::batches::{self, Noted};
use crate::connection::Connection;
use crate::database::{spawn, Adbc};
use crate::errors;
use crate::system::System;
use crate::table::Table;
use crate::write;

/// The sink that stores batches of parsed rows.
pub struct AdbcSink {
    database: Adbc,
}

impl AdbcSink {
    pub fn new(database: Adbc) -> AdbcSink {
        AdbcSink { database }
    }
}

impl Sink for AdbcSink {
    async fn store(&self, batch: &Batch) -> Result<Stored, StoreError> {
        let Some(permit) = self.database.stores().permit().await else {
            return Err(StoreError::NotSent(self.database.closed().line));
        };
        let attempt = Attempt {
            database: self.database.clone(),
            id: batch.id,
            destination: batch.destination.clone(),
            rows: batch.rows.clone(),
        };
        let (sender, outcome) = oneshot::channel();
        let job = move || {
            let stored = attempt.run();
            drop(permit);
            let _ = sender.send(stored);
        };
        spawn("windrow-store", job).map_err(|error| StoreError::NotSent(error.to_string()))?;
        outcome.await.unwrap_or_else(|_| Err(StoreError::Unknown("the attempt ended without an outcome".to_owned())))
    }
}

struct Attempt {
    database: Adbc,
    id: BatchId,
    destination: Arc<Destination>,
    rows: Rows,
}

/// The cause of a transaction that was not committed.
enum Failure {
    /// The failure came before any of the rows were sent.
    Before(Exception),
    OfRows(Exception),
    AtCommit(Exception),
}

impl Attempt {
    fn run(self) -> Result<Stored, StoreError> {
        let stored = Stored { written_rows: Some(self.rows.count() as u64), ..Stored::default() };
        let batches = self.record_batches().map_err(StoreError::Refused)?;
        let pool = self.database.stores();
        let mut connection = pool.take().map_err(not_sent)?;
        let done = self.store(&mut connection, &batches);
        match &done {
            Err(StoreError::NotSent(_) | StoreError::Unknown(_)) => pool.let_go(),
            Err(StoreError::Refused(exception)) if errors::is_lost(exception) => pool.let_go(),
            _ => {}
        }
        pool.give_back(connection);
        done.map(|()| stored)
    }

    fn record_batches(&self) -> Result<Vec<RecordBatch>, Exception> {
        let version = self.database.version_suffix();
        let (Some(blocks), Form::Native { types }) = (self.rows.blocks(), &self.destination.form) else {
            return Err(Exception::new(
                ErrorCode::NOT_IMPLEMENTED,
                "Only parsed rows are stored through ADBC",
                version,
            ));
        };
        let batch = |block| record_batch(block, &self.destination.columns, types);
        blocks.iter().map(batch).collect::<Result<_, _>>().map_err(|not_held| not_held.exception(version))
    }

    fn store(&self, connection: &mut Connection, batches: &[RecordBatch]) -> Result<(), StoreError> {
        let transactions = self.database.look_for_transactions(connection).map_err(not_sent)?;
        let name = TableRef::new(Adbc::schema_of(&self.destination.database), &self.destination.table);
        let tables = self.database.tables();
        let known = tables.known(&name);
        let first = known.as_ref().map(|table| self.attempt(connection, table, batches, transactions));
        // What was refused for good may fit into the table as it is now.
        match first {
            Some(Err(StoreError::Refused(exception))) if !exception.is_passing() => {
                *connection = self.database.stores().fresh().map_err(not_sent)?;
                let now = tables.look_up(connection, &name).map_err(not_sent)?;
                match now.filter(|now| known.as_ref() != Some(now)) {
                    Some(now) => self.attempt(connection, &now, batches, transactions),
                    None => Err(StoreError::Refused(exception)),
                }
            }
            Some(done) => done,
            None => match tables.look_up(connection, &name).map_err(not_sent)? {
                Some(table) => self.attempt(connection, &table, batches, transactions),
                None => Err(StoreError::Refused(self.unknown_table())),
            },
        }
    }

    fn unknown_table(&self) -> Exception {
        let Destination { database, table, .. } = &*self.destination;
        let text = format!("Table {database}.{table} does not exist");
        Exception::new(ErrorCode::UNKNOWN_TABLE, &text, self.database.version_suffix())
    }

    fn attempt(
        &self,
        connection: &mut Connection,
        table: &Table,
        batches: &[RecordBatch],
        transactions: bool,
    ) -> Result<(), StoreError> {
        if !transactions {
            let fitted = self.fitted(connection, table, batches).map_err(StoreError::Refused)?;
            return write::write(connection, table, fitted).map_err(|exception| match errors::is_lost(&exception) {
                true => StoreError::Unknown(exception.line),
                false => StoreError::Failed(exception),
            });
        }
        let _turn = self.database.take_turn();
        self.transaction(connection, table, batches).or_else(|failure| {
            connection.rollback();
            self.concluded(failure, connection.system())
        })
    }

    fn fitted(
        &self,
        connection: &Connection,
        table: &Table,
        batches: &[RecordBatch],
    ) -> Result<Vec<RecordBatch>, Exception> {
        let fitted = write::fitted(connection.system(), table, &self.destination.columns, batches);
        fitted.map_err(|not_held| not_held.exception(connection.version()))
    }

    fn transaction(&self, connection: &mut Connection, table: &Table, batches: &[RecordBatch]) -> Result<(), Failure> {
        let ids = self.database.batches();
        ids.make(connection).and_then(|()| connection.begin()).map_err(Failure::Before)?;
        if let Noted::Known = ids.note(connection, self.id).map_err(Failure::Before)? {
            connection.rollback();
            return self.already_there();
        }
        // Not before: what doesn't fit any more may have been stored when it did.
        let fitted = self.fitted(connection, table, batches).map_err(Failure::OfRows)?;
        write::write(connection, table, fitted).map_err(Failure::OfRows)?;
        connection.commit().map_err(Failure::AtCommit)?;
        if ids.stored() {
            self.database.prune();
        }
        Ok(())
    }

    /// Checks that an id that another transaction has noted is there. It is missing if that transaction was
    /// rolled back in the end.
    fn already_there(&self) -> Result<(), Failure> {
        let mut connection = self.database.stores().fresh().map_err(Failure::Before)?;
        match batches::knows(&mut connection, self.id) {
            Ok(true) => Ok(()),
            Ok(false) => {
                let text = "Another attempt to store the same batch is under way";
                Err(Failure::Before(Exception::new(ErrorCode::STD_EXCEPTION, text, connection.version())))
            }
            Err(exception) => Err(Failure::Before(exception)),
        }
    }

    fn concluded(&self, failure: Failure, system: System) -> Result<(), StoreError> {
        match failure {
            // Of the rows it says nothing, so they wait.
            Failure::Before(exception) => Err(not_sent(exception)),
            Failure::OfRows(exception) => Err(StoreError::Refused(exception)),
            Failure::AtCommit(exception) if system.has_undone(&exception) => Err(StoreError::Refused(exception)),
            Failure::AtCommit(exception) => self.already_there().map_err(|_| StoreError::Unknown(exception.line)),
        }
    }
}

fn not_sent(exception: Exception) -> StoreError {
    StoreError::NotSent(exception.line)
}
