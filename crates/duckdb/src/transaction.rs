//! A transaction: a thread and a connection of its own, told what to do through a channel.

use arrow_array::RecordBatch;
use tokio::sync::{mpsc, oneshot, OwnedSemaphorePermit};
use windrow_clickhouse::Exception;

use crate::database::{spawn, DuckDb};
use crate::errors::CommitError;
use crate::query::Session;
use crate::single;
use crate::table::TableRef;
use crate::work::Work;

/// Dropping it rolls back. After an error everything but a rollback fails.
pub struct Transaction {
    orders: mpsc::Sender<Order>,
    gone: Exception,
    version: String,
}

enum Order {
    Ingest { table: TableRef, columns: Option<Vec<String>>, batches: Vec<RecordBatch>, reply: Reply<u64> },
    Execute { sql: String, schema: Option<String>, reply: Reply<u64> },
    Commit { reply: oneshot::Sender<Result<(), CommitError>> },
    Rollback { reply: Reply<u64> },
}

type Reply<T> = oneshot::Sender<Result<T, Exception>>;

impl Transaction {
    pub(crate) async fn begin(database: DuckDb, permit: OwnedSemaphorePermit) -> Result<Transaction, Exception> {
        let (gone, version) = (database.closed(), database.version_suffix().to_owned());
        let (orders, received) = mpsc::channel(1);
        let (begun, answer) = oneshot::channel();
        let job = move || {
            match Work::begin(database) {
                Ok(work) => {
                    if begun.send(Ok(())).is_ok() {
                        serve(work, received);
                    }
                }
                Err(exception) => drop(begun.send(Err(exception))),
            }
            drop(permit);
        };
        spawn("windrow-transaction", job).map_err(|error| Exception::new(439, &error.to_string(), ""))?;
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

fn serve(mut work: Work, mut orders: mpsc::Receiver<Order>) {
    while let Some(order) = orders.blocking_recv() {
        match order {
            Order::Ingest { table, columns, batches, reply } => {
                let _ = reply.send(work.ingest(&table, columns.as_deref(), &batches));
            }
            Order::Execute { sql, schema, reply } => {
                let begun = schema.map_or(Ok(()), |schema| work.use_schema(&schema));
                drop(reply.send(begun.and_then(|()| work.execute(&sql))));
            }
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
