//! Rows on their way to a client, which gets them as fast as it takes them. A few batches wait for it.
//!
//! A task of its own takes batches from the database and holds at most [`AHEAD_KIB`] of them, or one batch,
//! until the client has taken them; until then the database waits. A client that takes nothing for too long
//! gets an error at the end of what it has, since an answer that merely stopped would look complete.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arrow_array::RecordBatch;
use arrow_flight::encode::FlightDataEncoderBuilder;
use arrow_flight::error::FlightError;
use arrow_flight::{FlightData, IpcMessage, SchemaAsIpc};
use arrow_ipc::writer::IpcWriteOptions;
use arrow_schema::{Schema, SchemaRef};
use bytes::Bytes;
use futures::stream::{self, Stream, StreamExt};
use prometheus_client::metrics::counter::Counter;
use tokio::sync::{mpsc, oneshot, OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tonic::{Code, Status};
use windrow_clickhouse::{ErrorCode, Exception};

use crate::error;
use crate::metrics::{Call, OpenStream};
use crate::pieces::{batch_bytes, pieces};
use crate::store::Rows;

const BATCHES_AHEAD: usize = 4;
/// The most memory of batches that the client has not taken, in KiB. A larger batch waits alone.
const AHEAD_KIB: u32 = 8 << 10;
/// Bytes of a message, roughly. All clients accept messages of 4 MiB, and most accept 16 MiB.
const PIECE_BYTES: usize = 2 << 20;

pub(crate) type Outgoing<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// The things that belong to an answer of rows until its end.
pub(crate) struct Answering {
    pub(crate) call: Call,
    pub(crate) open: OpenStream,
    /// A permit for one of the results that are read at once.
    pub(crate) place: OwnedSemaphorePermit,
    /// Time for which a client may take nothing: its query holds a connection to the database.
    pub(crate) idle_timeout: Duration,
}

/// Returns the messages for some rows. If they are dropped, the query ends.
pub(crate) fn outgoing(rows: Rows, answering: Answering) -> Outgoing<FlightData> {
    let Answering { call, open, place, idle_timeout } = answering;
    let schema = rows.schema.clone();
    let (sender, batches) = mpsc::channel(BATCHES_AHEAD);
    let (told, end) = oneshot::channel();
    let taking = Taking { last: Arc::new(Mutex::new(Instant::now())), idle_timeout };
    tokio::spawn({
        let taking = taking.clone();
        async move {
            let ended = pump(rows, sender, &taking).await;
            drop(place);
            let _ = told.send(ended);
        }
    });
    let rows_sent = open.traffic.rows.clone();
    let taken = stream::unfold(Taken { batches, pieces: None, taking, rows_sent }, Taken::next).map(Ok);
    let ended = stream::once(end).filter_map(|end| async {
        let ended =
            end.unwrap_or_else(|_| Err(Status::internal("the task that takes rows from the database has failed")));
        ended.err().map(|status| Err(FlightError::Tonic(Box::new(status))))
    });
    // Cut to size already.
    let encoded = encoder(schema).with_max_flight_data_size(usize::MAX).build(taken.chain(ended).boxed());
    stream::unfold(Some(Sending { encoded: encoded.boxed(), call, open }), Sending::next).boxed()
}

struct Sending {
    encoded: stream::BoxStream<'static, Result<FlightData, FlightError>>,
    call: Call,
    open: OpenStream,
}

impl Sending {
    async fn next(sending: Option<Sending>) -> Option<(Result<FlightData, Status>, Option<Sending>)> {
        let mut sending = sending?;
        match sending.encoded.next().await {
            None => {
                sending.call.end(Code::Ok);
                None
            }
            Some(Ok(data)) => {
                let bytes = data.data_header.len() + data.data_body.len();
                sending.open.traffic.bytes.inc_by(bytes as u64);
                Some((Ok(data), Some(sending)))
            }
            Some(Err(error)) => {
                let status = status_of(error);
                sending.call.end(status.code());
                Some((Err(status), None))
            }
        }
    }
}

/// A batch that the client has not taken, and its share of the allowed memory.
struct Ahead {
    batch: RecordBatch,
    _share: OwnedSemaphorePermit,
}

/// The time when the client took something last.
#[derive(Clone)]
struct Taking {
    last: Arc<Mutex<Instant>>,
    idle_timeout: Duration,
}

impl Taking {
    fn note(&self) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    fn last(&self) -> Instant {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until nothing was taken for too long after `since`.
    async fn too_long(&self, since: Instant) {
        loop {
            let end = self.last().max(since) + self.idle_timeout;
            if Instant::now() >= end {
                return;
            }
            tokio::time::sleep_until(end).await;
        }
    }
}

/// The batches in pieces, one piece at a time.
struct Taken {
    batches: mpsc::Receiver<Ahead>,
    pieces: Option<Box<dyn Iterator<Item = RecordBatch> + Send>>,
    taking: Taking,
    rows_sent: Counter,
}

impl Taken {
    async fn next(mut self) -> Option<(RecordBatch, Taken)> {
        self.taking.note();
        loop {
            if let Some(piece) = self.pieces.as_mut().and_then(Iterator::next) {
                self.rows_sent.inc_by(piece.num_rows() as u64);
                return Some((piece, self));
            }
            // Before the wait: its share may be what the next one needs.
            self.pieces = None;
            let ahead = self.batches.recv().await?;
            self.pieces = Some(Box::new(cut(ahead)));
        }
    }
}

/// Cuts a batch into pieces. Its share is given back with the last piece.
fn cut(ahead: Ahead) -> impl Iterator<Item = RecordBatch> + Send {
    let Ahead { batch, _share } = ahead;
    pieces(batch, PIECE_BYTES).inspect(move |_| {
        let _held = &_share;
    })
}

/// Moves batches from the database to the client's stream. It is no error if the client wants no more.
async fn pump(mut rows: Rows, sender: mpsc::Sender<Ahead>, taking: &Taking) -> Result<(), Status> {
    let room = Arc::new(Semaphore::new(AHEAD_KIB as usize));
    loop {
        let batch = tokio::select! {
            batch = rows.next() => batch,
            () = sender.closed() => return Ok(()),
        };
        let Some(batch) = batch else { return Ok(()) };
        let batch = batch.map_err(|exception| error::status(&exception))?;
        let handed_over = async {
            let kib = u32::try_from(batch_bytes(&batch) / 1024 + 1).unwrap_or(AHEAD_KIB).min(AHEAD_KIB);
            let share = room.clone().acquire_many_owned(kib).await.ok()?;
            sender.send(Ahead { batch, _share: share }).await.ok()
        };
        tokio::select! {
            handed_over = handed_over => if handed_over.is_none() { return Ok(()) },
            () = taking.too_long(Instant::now()) => return Err(takes_nothing(taking.idle_timeout)),
        }
    }
}

fn takes_nothing(idle_timeout: Duration) -> Status {
    let text = format!(
        "Nothing of the result was taken for {} ms (flight.idle_timeout_ms), so its query was ended: these are not all rows",
        idle_timeout.as_millis()
    );
    error::status(&error::own(ErrorCode::TIMEOUT_EXCEEDED, &text))
}

fn encoder(schema: SchemaRef) -> FlightDataEncoderBuilder {
    FlightDataEncoderBuilder::new().with_schema(schema)
}

pub(crate) fn status_of(error: FlightError) -> Status {
    match error {
        FlightError::Tonic(status) => *status,
        other => error::with_text(Code::Internal, &other.to_string()),
    }
}

/// The schema that rows of `schema` have when they are sent: dictionaries are sent as their values.
pub(crate) fn sent_schema(schema: &SchemaRef) -> SchemaRef {
    encoder(schema.clone()).build(stream::empty()).known_schema().unwrap_or_else(|| schema.clone())
}

pub(crate) fn schema_bytes(schema: &Schema) -> Result<Bytes, Exception> {
    let message: Result<IpcMessage, _> = SchemaAsIpc::new(schema, &IpcWriteOptions::default()).try_into();
    message.map(|IpcMessage(bytes)| bytes).map_err(|error| error::own(ErrorCode::STD_EXCEPTION, &error.to_string()))
}
