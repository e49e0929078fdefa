//! Rows that a client sends: its messages are decoded one by one, within limits. A client may take its time
//! between them: the pings of its connection tell whether it is still there.

use arrow_array::RecordBatch;
use arrow_flight::decode::FlightRecordBatchStream;
use arrow_flight::error::FlightError;
use arrow_flight::FlightData;
use arrow_ipc::root_as_message;
use arrow_schema::SchemaRef;
use bytes::Bytes;
use futures::stream::{self, StreamExt};
use prometheus_client::metrics::counter::Counter;
use tonic::{Status, Streaming};
use windrow_clickhouse::{ErrorCode, Exception};

use crate::error;
use crate::metrics::{OpenStream, Traffic};
use crate::outgoing::status_of;

/// The most bytes of a message. `adbc_ingest` makes one message of a data frame, however large that is.
pub(crate) const MAX_MESSAGE_BYTES: usize = 256 << 20;
/// The most bytes that a message may unpack to.
const MAX_UNPACKED_BYTES: u64 = 512 << 20;

/// A stream of rows, and the command that it is for.
pub(crate) struct Incoming {
    /// The command in the first message.
    pub(crate) command: Bytes,
    batches: FlightRecordBatchStream,
    /// A batch that was read to see the schema, and is not given out yet.
    ahead: Option<RecordBatch>,
    open: OpenStream,
}

impl Incoming {
    pub(crate) async fn open(mut messages: Streaming<FlightData>, traffic: &Traffic) -> Result<Incoming, Status> {
        let first = messages.message().await?.ok_or_else(nothing_sent)?;
        let descriptor = first.flight_descriptor.as_ref();
        let command = descriptor.map(|descriptor| descriptor.cmd.clone());
        let command =
            command.ok_or_else(|| Status::invalid_argument("the first message says nothing of what it is for"))?;
        let bytes = traffic.bytes.clone();
        Ok(Incoming { command, batches: decoded(first, messages, bytes), ahead: None, open: traffic.open() })
    }

    /// Returns the rows' columns, or `None` where the stream ends without any.
    pub(crate) async fn schema(&mut self) -> Result<Option<SchemaRef>, Exception> {
        if self.batches.schema().is_none() {
            self.ahead = self.next().await?;
        }
        Ok(self.batches.schema().cloned())
    }

    pub(crate) async fn next(&mut self) -> Result<Option<RecordBatch>, Exception> {
        match self.ahead.take() {
            Some(batch) => Ok(Some(batch)),
            None => {
                let batch = self.batches.next().await.transpose().map_err(exception_of)?;
                let rows = batch.as_ref().map_or(0, RecordBatch::num_rows);
                self.open.traffic.rows.inc_by(rows as u64);
                Ok(batch)
            }
        }
    }
}

/// Makes the error of an empty stream. Without rows, ADBC's driver does not even send the command.
fn nothing_sent() -> Status {
    Status::invalid_argument("nothing was sent: no rows, and not the name of a table either")
}

fn decoded(first: FlightData, rest: Streaming<FlightData>, bytes: Counter) -> FlightRecordBatchStream {
    let messages = stream::once(async { Ok(first) }).chain(rest);
    // Messages without a header are about no rows: a command alone, metadata.
    let of_rows = |message: &Result<FlightData, Status>| !matches!(message, Ok(data) if data.data_header.is_empty());
    let messages = messages.filter(move |message| std::future::ready(of_rows(message)));
    let capped = messages.map(move |message| {
        let message = message.map_err(|status| FlightError::Tonic(Box::new(status)))?;
        bytes.inc_by((message.data_header.len() + message.data_body.len()) as u64);
        cap(&message).map_err(|status| FlightError::Tonic(Box::new(status)))?;
        Ok(message)
    });
    FlightRecordBatchStream::new_from_flight_data(capped)
}

/// Checks how much a message unpacks to. Each compressed buffer begins with the length that it claims to
/// unpack to, and the decoder trusts it.
pub(crate) fn cap(message: &FlightData) -> Result<(), Status> {
    let unreadable = || Status::invalid_argument("a message is no Arrow");
    let header = root_as_message(&message.data_header).map_err(|_| unreadable())?;
    let dictionary = header.header_as_dictionary_batch().and_then(|dictionary| dictionary.data());
    let Some(batch) = header.header_as_record_batch().or(dictionary) else { return Ok(()) };
    if batch.compression().is_none() {
        return Ok(());
    }
    let mut unpacked_bytes = 0u64;
    for buffer in batch.buffers().iter().flatten() {
        let at = usize::try_from(buffer.offset()).map_err(|_| unreadable())?;
        if buffer.length() < 8 {
            continue;
        }
        let length = at.checked_add(8).and_then(|end| message.data_body.get(at..end)).ok_or_else(unreadable)?;
        let length = i64::from_le_bytes(length.try_into().map_err(|_| unreadable())?);
        // -1: not compressed after all.
        unpacked_bytes = unpacked_bytes.saturating_add(u64::try_from(length).unwrap_or(0));
    }
    match unpacked_bytes > MAX_UNPACKED_BYTES {
        true => Err(Status::resource_exhausted(format!("a batch unpacks to more than {MAX_UNPACKED_BYTES} bytes"))),
        false => Ok(()),
    }
}

fn exception_of(error: FlightError) -> Exception {
    match &error {
        FlightError::Arrow(_) | FlightError::DecodeError(_) => {
            error::own(ErrorCode::CANNOT_READ_ALL_DATA, &format!("the rows can't be read: {error}"))
        }
        _ => error::own(
            ErrorCode::SOCKET_TIMEOUT,
            &format!("the rows have not come to their end: {}", status_of(error).message()),
        ),
    }
}
