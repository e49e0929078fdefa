//! A transaction: a thread and a connection of its own, told what to do through a channel.

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
    /// For statements that come.
    fn use_schema(&mut self, schema: &str) -> Result<(), Exception>;

    fn execute(&mut self, sql: &str) -> Result<u64, Exception>;

    fn ingest(
        &mut self,
        table: &TableRef,
        columns: Option<&[String]>,
        batches: &[RecordBatch],
    ) -> Result<u64, Exception>;

    /// Brings rows to their tables that were kept elsewhere until now.
    fn write_held(&mut self) -> Result<(), Exception> {
        Ok(())
    }

    fn commit(self) -> Result<(), CommitError>;

    fn rollback(self);
}

/// Dropping it rolls back. After an error everything but a rollback fails.
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
    /// `gone` is the error if the thread ends without a word, `version` what stands behind the texts of errors. The
    /// permit is kept until the thread ends.
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

    /// Appends rows and tells how many. `None`: the batches have all columns of the table, in its order. `Some`: they
    /// have these, and the others take their defaults.
    pub async fn ingest(
        &mut self,
        table: &TableRef,
        columns: Option<&[String]>,
        batches: Vec<RecordBatch>,
    ) -> Result<u64, Exception> {
        let (table, columns) = (table.clone(), columns.map(<[String]>::to_vec));
        self.order(|reply| Order::Ingest { table, columns, batches, reply }).await
    }

    /// Runs somebody's statement, if it is one that the session allows, and tells how many rows it changed.
    pub async fn execute_for(&mut self, session: &Session, sql: &str) -> Result<u64, Exception> {
        single::check(sql, session, &self.version)?;
        let (sql, schema) = (sql.to_owned(), Some(session.schema.clone()));
        self.order(|reply| Order::Execute { sql, schema, reply }).await
    }

    /// Runs a statement of Windrow's own and tells how many rows it changed.
    pub async fn execute(&mut self, sql: &str) -> Result<u64, Exception> {
        let sql = sql.to_owned();
        self.order(|reply| Order::Execute { sql, schema: None, reply }).await
    }

    /// Brings rows to their tables that were kept elsewhere until now: what is wrong with them shows here.
    pub async fn write_held(&mut self) -> Result<(), Exception> {
        self.order(|reply| Order::WriteHeld { reply }).await.map(|_| ())
    }

    /// All is stored, and visible to whoever begins now, when this says so.
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
