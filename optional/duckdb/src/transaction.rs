//! A transaction: a thread and a connection of its own, which gets its orders through a channel.

use arrow_array::RecordBatch;
use tokio::sync::{mpsc, oneshot};
use windrow_clickhouse::{ErrorCode, Exception};

use crate::database::spawn;
use crate::errors::CommitError;
use crate::query::Session;
use crate::single;
use crate::table::TableRef;

/// A transaction as its thread sees it: blocking, on one connection. After an error everything but a rollback fails.
pub trait TransactionWork {
    /// Makes `schema` the one where the following statements look up names.
    ///
    /// # Errors
    /// Fails where there is no such schema, or the transaction has failed before.
    fn use_schema(&mut self, schema: &str) -> Result<(), Exception>;

    /// Runs a statement and returns how many rows it changed.
    ///
    /// # Errors
    /// Fails where the database refuses the statement, or the transaction has failed before.
    fn execute(&mut self, sql: &str) -> Result<u64, Exception>;

    /// Appends rows and returns how many. `columns` names the columns of the batches; `None` stands for all
    /// of the table.
    ///
    /// # Errors
    /// Fails where a value can't be stored, the database refuses the rows, or the transaction has failed before.
    fn ingest(
        &mut self,
        table: &TableRef,
        columns: Option<&[String]>,
        batches: &[RecordBatch],
    ) -> Result<u64, Exception>;

    /// Writes rows into their tables that were kept elsewhere until now.
    ///
    /// # Errors
    /// Fails where the database refuses the rows.
    fn write_held(&mut self) -> Result<(), Exception> {
        Ok(())
    }

    /// Commits the transaction.
    ///
    /// # Errors
    /// Fails where nothing was stored (`Refused`), or nobody knows whether it was (`Unknown`).
    fn commit(self) -> Result<(), CommitError>;

    fn rollback(self);
}

/// A transaction. Dropping it rolls back. After an error everything but a rollback fails.
pub struct Transaction {
    orders: mpsc::Sender<Order>,
    gone: Exception,
    version: String,
}

enum Order {
    Ingest { table: TableRef, columns: Option<Vec<String>>, batches: Vec<RecordBatch>, reply: Reply<u64> },
    Execute { sql: String, schema: Option<String>, reply: Reply<u64> },
    WriteHeld { reply: Reply<u64> },
    Commit { reply: oneshot::Sender<Result<(), CommitError>> },
    Rollback { reply: Reply<u64> },
}

type Reply<T> = oneshot::Sender<Result<T, Exception>>;

impl Transaction {
    /// Begins a transaction on a thread of its own. `gone` is the error if the thread ends without an answer,
    /// and `version` the suffix of errors' texts. The permit is kept until the thread ends.
    ///
    /// # Errors
    /// Fails where no thread can be started, or `begin` fails.
    pub async fn begin<W: TransactionWork>(
        gone: Exception,
        version: String,
        permit: impl Send + 'static,
        begin: impl FnOnce() -> Result<W, Exception> + Send + 'static,
    ) -> Result<Transaction, Exception> {
        let (orders, received) = mpsc::channel(1);
        let (begun, answer) = oneshot::channel();
        let job = move || {
            match begin() {
                Ok(work) => {
                    if begun.send(Ok(())).is_ok() {
                        serve(work, received);
                    }
                }
                Err(exception) => drop(begun.send(Err(exception))),
            }
            drop(permit);
        };
        spawn("windrow-transaction", job)
            .map_err(|error| Exception::new(ErrorCode::CANNOT_SCHEDULE_TASK, &error.to_string(), ""))?;
        answer.await.map_err(|_| gone.clone())??;
        Ok(Transaction { orders, gone, version })
    }

    /// Appends rows and returns how many. With `None`, the batches have all columns of the table, in its
    /// order. With `Some`, they have these columns, and the others take their defaults.
    ///
    /// # Errors
    /// Fails where a value can't be stored, the database refuses the rows, or the transaction has failed before.
    pub async fn ingest(
        &mut self,
        table: &TableRef,
        columns: Option<&[String]>,
        batches: Vec<RecordBatch>,
    ) -> Result<u64, Exception> {
        let (table, columns) = (table.clone(), columns.map(<[String]>::to_vec));
        self.order(|reply| Order::Ingest { table, columns, batches, reply }).await
    }

    /// Runs a user's statement, if the session allows it, and returns how many rows it changed.
    ///
    /// # Errors
    /// Fails where the session does not allow the statement, the database refuses it, or the transaction has
    /// failed before.
    pub async fn execute_for(&mut self, session: &Session, sql: &str) -> Result<u64, Exception> {
        single::check(sql, session, &self.version)?;
        let (sql, schema) = (sql.to_owned(), Some(session.schema.clone()));
        self.order(|reply| Order::Execute { sql, schema, reply }).await
    }

    /// Runs a statement of Windrow's own and returns how many rows it changed.
    ///
    /// # Errors
    /// Fails where the database refuses the statement, or the transaction has failed before.
    pub async fn execute(&mut self, sql: &str) -> Result<u64, Exception> {
        let sql = sql.to_owned();
        self.order(|reply| Order::Execute { sql, schema: None, reply }).await
    }

    /// Writes rows into their tables that were kept elsewhere until now: errors of these rows show here.
    ///
    /// # Errors
    /// Fails where the database refuses the rows, or the transaction has failed before.
    pub async fn write_held(&mut self) -> Result<(), Exception> {
        self.order(|reply| Order::WriteHeld { reply }).await.map(|_| ())
    }

    /// Commits the transaction. On success everything is stored, and visible to every transaction that begins
    /// from now on.
    ///
    /// # Errors
    /// Fails where nothing was stored (`Refused`), or nobody knows whether it was (`Unknown`).
    pub async fn commit(self) -> Result<(), CommitError> {
        let (reply, answer) = oneshot::channel();
        let sent = self.orders.send(Order::Commit { reply }).await;
        sent.map_err(|_| CommitError::Refused(self.gone.clone()))?;
        answer.await.map_err(|_| CommitError::Unknown(self.gone.clone()))?
    }

    pub async fn rollback(self) {
        // What fails here is gone anyway.
        let _ = self.order(|reply| Order::Rollback { reply }).await;
    }

    async fn order(&self, order: impl FnOnce(Reply<u64>) -> Order) -> Result<u64, Exception> {
        let (reply, answer) = oneshot::channel();
        self.orders.send(order(reply)).await.map_err(|_| self.gone.clone())?;
        answer.await.map_err(|_| self.gone.clone())?
    }
}

fn serve(mut work: impl TransactionWork, mut orders: mpsc::Receiver<Order>) {
    while let Some(order) = orders.blocking_recv() {
        match order {
            Order::Ingest { table, columns, batches, reply } => {
                let _ = reply.send(work.ingest(&table, columns.as_deref(), &batches));
            }
            Order::Execute { sql, schema, reply } => {
                let begun = schema.map_or(Ok(()), |schema| work.use_schema(&schema));
                drop(reply.send(begun.and_then(|()| work.execute(&sql))));
            }
            Order::WriteHeld { reply } => drop(reply.send(work.write_held().map(|()| 0))),
            Order::Commit { reply } => return drop(reply.send(work.commit())),
            Order::Rollback { reply } => {
                work.rollback();
                return drop(reply.send(Ok(0)));
            }
        }
    }
    // Nobody is there any more.
    work.rollback();
}
