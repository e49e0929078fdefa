//! Rows on their way to a client: as many as it takes, and two batches ahead.

use std::pin::Pin;
use std::time::Duration;

use arrow_array::RecordBatch;
use arrow_flight::encode::FlightDataEncoderBuilder;
use arrow_flight::error::FlightError;
use arrow_flight::{FlightData, IpcMessage, SchemaAsIpc};
use arrow_ipc::writer::IpcWriteOptions;
use arrow_schema::{Schema, SchemaRef};
use bytes::Bytes;
use futures::stream::{self, Stream, StreamExt};
use tokio::sync::{mpsc, OwnedSemaphorePermit};
use tonic::Status;
use windrow_exception::Exception;

use crate::error;
use crate::store::Rows;

/// A client that takes nothing for so long is given up: its query holds a connection to the database.
const TAKES_NOTHING: Duration = Duration::from_secs(600);
const BATCHES_AHEAD: usize = 2;
/// Clients take messages of 4 MiB at least, and of 16 MiB mostly.
const MAX_MESSAGE_BYTES: usize = 2 << 20;

pub(crate) type Outgoing<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// What is to be sent of some rows. Dropped, it ends their query.
pub(crate) fn outgoing(rows: Rows, permit: OwnedSemaphorePermit) -> Outgoing<FlightData> {
    let schema = rows.schema.clone();
    let (sender, batches) = mpsc::channel(BATCHES_AHEAD);
    tokio::spawn(pump(rows, sender, permit));
    let batches =
        stream::unfold(batches, |mut batches| async move { batches.recv().await.map(|next| (next, batches)) });
    let batches = batches.map(|batch| batch.map_err(|status| FlightError::Tonic(Box::new(status))));
    let encoded = encoder(schema).build(batches);
    encoded.map(|data| data.map_err(status_of)).boxed()
}

async fn pump(mut rows: Rows, sender: mpsc::Sender<Result<RecordBatch, Status>>, permit: OwnedSemaphorePermit) {
    loop {
        let batch = tokio::select! {
            batch = rows.next() => batch,
            () = sender.closed() => break,
        };
        let Some(batch) = batch else { break };
        let batch = batch.map_err(|exception| error::status(&exception));
        let failed = batch.is_err();
        let sent = tokio::time::timeout(TAKES_NOTHING, sender.send(batch)).await;
        if failed || !matches!(sent, Ok(Ok(()))) {
            break;
        }
    }
    drop((rows, permit));
}

fn encoder(schema: SchemaRef) -> FlightDataEncoderBuilder {
    FlightDataEncoderBuilder::new().with_schema(schema).with_max_flight_data_size(MAX_MESSAGE_BYTES)
}

pub(crate) fn status_of(error: FlightError) -> Status {
    match error {
        FlightError::Tonic(status) => *status,
        other => error::with_text(tonic::Code::Internal, &other.to_string()),
    }
}

/// The schema that rows of `schema` have when they are sent: dictionaries are sent as their values.
pub(crate) fn sent_schema(schema: &SchemaRef) -> SchemaRef {
    encoder(schema.clone()).build(stream::empty()).known_schema().unwrap_or_else(|| schema.clone())
}

pub(crate) fn schema_bytes(schema: &Schema) -> Result<Bytes, Exception> {
    let message: Result<IpcMessage, _> = SchemaAsIpc::new(schema, &IpcWriteOptions::default()).try_into();
    message.map(|IpcMessage(bytes)| bytes).map_err(|error| error::own(1001, &error.to_string()))
}
