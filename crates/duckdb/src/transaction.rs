//! A transaction: a thread and a connection of its own, told what to do through a channel.

use adbc_core::options::IngestMode;
use arrow_array::RecordBatch;
use tokio::sync::{mpsc, oneshot, OwnedSemaphorePermit};
use windrow_client::Exception;

use crate::connection::Connection;
use crate::database::{spawn, DuckDb};
use crate::errors::{is_fatal, CommitError};
use crate::table::{quoted, TableRef};

/// Dropping it rolls back. After an error everything but a rollback fails.
pub struct Transaction {
    orders: mpsc::Sender<Order>,
    gone: Exception,
}

enum Order {
    Ingest { table: TableRef, columns: Option<Vec<String>>, batches: Vec<RecordBatch>, reply: Reply<u64> },
    Execute { sql: String, reply: Reply<u64> },
    Commit { reply: oneshot::Sender<Result<(), CommitError>> },
    Rollback { reply: Reply<u64> },
}

type Reply<T> = oneshot::Sender<Result<T, Exception>>;

impl Transaction {
    pub(crate) async fn begin(database: DuckDb, permit: OwnedSemaphorePermit) -> Result<Transaction, Exception> {
        let gone = database.closed();
        let (orders, received) = mpsc::channel(1);
        let (begun, answer) = oneshot::channel();
        let job = move || {
            match begin(&database) {
                Ok(connection) => {
                    if begun.send(Ok(())).is_ok() {
                        serve(connection, received);
                    }
                }
                Err(exception) => drop(begun.send(Err(exception))),
            }
            drop(permit);
        };
        spawn("windrow-transaction", job).map_err(|error| Exception::new(439, &error.to_string(), ""))?;
        answer.await.map_err(|_| gone.clone())??;
        Ok(Transaction { orders, gone })
    }

    /// Appends rows and tells how many. `None`: the batches have all columns of the table, in its order. `Some`: they have
    /// these, and the others take their defaults.
    pub async fn ingest(
        &mut self,
        table: &TableRef,
        columns: Option<&[String]>,
        batches: Vec<RecordBatch>,
    ) -> Result<u64, Exception> {
        let (table, columns) = (table.clone(), columns.map(<[String]>::to_vec));
        self.order(|reply| Order::Ingest { table, columns, batches, reply }).await
    }

    /// Runs a statement and tells how many rows it changed.
    pub async fn execute(&mut self, sql: &str) -> Result<u64, Exception> {
        let sql = sql.to_owned();
        self.order(|reply| Order::Execute { sql, reply }).await
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

fn begin(database: &DuckDb) -> Result<Connection, Exception> {
    let mut connection = database.connect()?;
    connection.execute("BEGIN TRANSACTION")?;
    Ok(connection)
}

fn serve(mut connection: Connection, mut orders: mpsc::Receiver<Order>) {
    while let Some(order) = orders.blocking_recv() {
        match order {
            Order::Ingest { table, columns, batches, reply } => {
                let _ = reply.send(ingest(&mut connection, &table, columns.as_deref(), batches));
            }
            Order::Execute { sql, reply } => drop(reply.send(connection.execute(&sql))),
            Order::Commit { reply } => return drop(reply.send(commit(&mut connection))),
            Order::Rollback { reply } => return drop(reply.send(connection.execute("ROLLBACK"))),
        }
    }
    // Nobody is there any more. A connection that is closed with an open transaction rolls it back as well.
    let _ = connection.execute("ROLLBACK");
}

fn commit(connection: &mut Connection) -> Result<(), CommitError> {
    let done = connection.execute("COMMIT").map(|_| ());
    done.map_err(|exception| match is_fatal(&exception) {
        true => CommitError::Unknown(exception),
        false => CommitError::Refused(exception),
    })
}

/// Where rows of some columns wait to be inserted.
const STAGING: &str = "windrow_staging";

fn ingest(
    connection: &mut Connection,
    table: &TableRef,
    columns: Option<&[String]>,
    batches: Vec<RecordBatch>,
) -> Result<u64, Exception> {
    let Some(first) = batches.first() else { return Ok(0) };
    let (schema, rows) = (first.schema(), batches.iter().map(|batch| batch.num_rows() as u64).sum());
    let Some(columns) = columns else {
        connection.append(table, schema, batches, IngestMode::Append, false)?;
        return Ok(rows);
    };
    let staging = TableRef::new("", STAGING);
    connection.append(&staging, schema, batches, IngestMode::Replace, true)?;
    let names: Vec<_> = columns.iter().map(|name| quoted(name)).collect();
    connection.execute(&format!("INSERT INTO {} ({}) FROM temp.{STAGING}", table.quoted(), names.join(", ")))?;
    connection.execute(&format!("DROP TABLE temp.{STAGING}"))?;
    Ok(rows)
}
