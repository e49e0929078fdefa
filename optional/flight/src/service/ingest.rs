//! Runs `CommandStatementIngest`: rows for a table are an ordered append, so that all of them are published or none.

use arrow_array::RecordBatch;
use windrow_append::{AppendError, AppendId, OpenRequest, Payload};
use windrow_clickhouse::{ErrorCode, Exception};

use super::target_table::TargetTable;
use super::Inner;
use crate::error;
use crate::incoming::Incoming;
use crate::login::Caller;
use crate::messages::CommandStatementIngest;
use crate::pieces::pieces;
use windrow_sql::TableName;

pub(super) async fn ingest(
    inner: &Inner,
    caller: &Caller,
    wanted: &CommandStatementIngest,
    incoming: &mut Incoming,
) -> Result<u64, Exception> {
    if wanted.temporary {
        return Err(error::own(
            ErrorCode::NOT_IMPLEMENTED,
            "temporary tables are not supported: there are no sessions that they could live in",
        ));
    }
    if caller.readonly {
        return Err(error::own(ErrorCode::READONLY, "The user may only read."));
    }
    let catalog = wanted.catalog.as_deref().filter(|catalog| !catalog.is_empty());
    if let Some(catalog) = catalog {
        if inner.store.catalog(caller).await? != catalog {
            return Err(error::own(ErrorCode::UNKNOWN_DATABASE, &format!("there is no catalog {catalog:?}")));
        }
    }
    let target =
        TableName { database: wanted.schema.clone().filter(|name| !name.is_empty()), table: wanted.table.clone() };
    let schema = incoming.schema().await?;
    let options = wanted.table_definition_options.clone().unwrap_or_default();
    let table = TargetTable::prepare(&inner.store, caller, target, &options, schema.as_deref()).await?;
    let stream = Stream { held: Vec::new(), incoming, convert: Box::new(Ok) };
    match append(inner, caller, table.rows_go_to(), stream).await {
        Ok(rows) => table.finish(&inner.store, caller).await.map(|()| rows),
        Err(exception) => {
            table.undo(&inner.store, caller).await;
            Err(exception)
        }
    }
}

/// The rows that have come already, and the stream of those that will come.
pub(super) struct Stream<'i> {
    pub(super) held: Vec<RecordBatch>,
    pub(super) incoming: &'i mut Incoming,
    pub(super) convert: Box<dyn Fn(RecordBatch) -> Result<RecordBatch, Exception> + Send + 'i>,
}

/// Appends the rows. Returns how many rows the table has got.
pub(super) async fn append(
    inner: &Inner,
    caller: &Caller,
    target: &TableName,
    stream: Stream<'_>,
) -> Result<u64, Exception> {
    let id = AppendId::random();
    let database = inner.store.current_database(caller, target).await?;
    let opening = OpenRequest {
        id: Some(id),
        database,
        table: target.table.clone(),
        columns: None,
        ordered: true,
        source: None,
        credentials: caller.credentials.clone(),
    };
    let _attended = inner.appends.attend(opening).await.map_err(|error| error.exception)?;
    let mut appending = Appending { inner, caller, id, begins: Vec::new(), rows: 0 };
    match appending.run(stream).await {
        Ok(rows) => Ok(rows),
        Err(exception) => {
            // Whatever this says, an append that nobody goes on with is dropped.
            let _ = inner.appends.abort(id, &caller.credentials.user).await;
            Err(exception)
        }
    }
}

/// Bytes of a piece, roughly. Clients send everything in one message, and batches of an append are limited.
const PIECE_BYTES: usize = 8 << 20;

struct Appending<'a> {
    inner: &'a Inner,
    caller: &'a Caller,
    id: AppendId,
    /// The number of each batch's first row.
    begins: Vec<u64>,
    rows: u64,
}

impl Appending<'_> {
    async fn run(&mut self, stream: Stream<'_>) -> Result<u64, Exception> {
        let Stream { held, incoming, convert } = stream;
        for batch in held {
            self.put(batch).await?;
        }
        while let Some(batch) = incoming.next().await? {
            self.put(convert(batch)?).await?;
        }
        let (id, user) = (self.id, &self.caller.credentials.user);
        let batches = self.begins.len() as u64;
        let committed = self.inner.appends.commit(id, user, batches, None).await;
        committed.map(|committed| committed.rows).map_err(|error| self.located(error))
    }

    async fn put(&mut self, batch: RecordBatch) -> Result<(), Exception> {
        for piece in pieces(batch, PIECE_BYTES) {
            self.put_piece(piece).await?;
        }
        Ok(())
    }

    /// Sends one piece. It waits until there is room for it.
    async fn put_piece(&mut self, batch: RecordBatch) -> Result<(), Exception> {
        let (number, rows) = (self.begins.len() as u64, batch.num_rows() as u64);
        let user = &self.caller.credentials.user;
        loop {
            let payload = Payload::Batch(batch.clone());
            match self.inner.appends.put(self.id, user, number, payload, None).await {
                Ok(_) => break,
                Err(error) => match error.retry_after_seconds {
                    Some(seconds) => tokio::time::sleep(std::time::Duration::from_secs(u64::from(seconds))).await,
                    None => return Err(self.located(error)),
                },
            }
        }
        self.begins.push(self.rows);
        self.rows += rows;
        Ok(())
    }

    /// Adds the row to an error. Clients count rows, and do not know about batches.
    fn located(&self, error: AppendError) -> Exception {
        let mut exception = error.exception;
        let begin = error.batch.and_then(|batch| self.begins.get(usize::try_from(batch).ok()?)).copied();
        match (begin, error.row) {
            (Some(begin), Some(row)) => {
                exception.line.push_str(&format!(" [row {} of those sent, from 0]", begin + row))
            }
            (Some(begin), None) => exception.line.push_str(&format!(" [in the batch that begins with row {begin}]")),
            (None, _) => {}
        }
        exception
    }
}
