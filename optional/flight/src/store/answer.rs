//! Reads an answer of ClickHouse in Arrow's stream format as it comes.

use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use arrow_ipc::reader::StreamDecoder;
use arrow_schema::SchemaRef;
use tokio::sync::{mpsc, oneshot};
use windrow_clickhouse::{Begun, ErrorCode, Exception};

use super::clickhouse::SILENCE;
use super::tail::Tail;
use crate::error;

type Opened = oneshot::Sender<Result<Option<SchemaRef>, Exception>>;

/// The task that waits for an answer: first for its schema (`None`: the statement has no rows), then for its batches.
struct Reader {
    opened: Option<Opened>,
    batches: mpsc::Sender<Result<RecordBatch, Exception>>,
}

/// Reads an answer to its end, or until no more is wanted: then the connection is closed, which ends the query.
pub(super) async fn read(begun: Begun, opened: Opened, batches: mpsc::Sender<Result<RecordBatch, Exception>>) {
    let mut reader = Reader { opened: Some(opened), batches };
    let Begun { mut lease, head } = begun;
    let mut tail = Tail::new(head.field_str("x-clickhouse-exception-tag"));
    let mut decoder = StreamDecoder::new();
    let mut body = lease.connection().body(&head);
    let outcome = loop {
        let next = tokio::select! {
            next = body.next(SILENCE) => next,
            () = reader.batches.closed() => return,
        };
        let bytes = match next {
            Ok(Some(bytes)) => bytes,
            Ok(None) => break Ok(()),
            Err(error) => break Err(error.to_string()),
        };
        tail.keep(&bytes);
        match reader.decode(&mut decoder, Buffer::from(bytes)).await {
            Decoded::Taken => {}
            Decoded::Broken(text) => break Err(text),
            Decoded::NobodyThere => return,
        }
    };
    // What the database says of an error counts more than how it looks from here.
    let exception = tail.exception().or_else(|| outcome.err().map(|text| error::own(ErrorCode::STD_EXCEPTION, &text)));
    match exception {
        Some(exception) => reader.fail(exception).await,
        None => {
            reader.end();
            lease.give_back(&head);
        }
    }
}

fn broken(error: &arrow_schema::ArrowError) -> String {
    let text = error.to_string();
    match text.contains("UTF8") || text.contains("utf-8") {
        true => format!(
            "{text}. Texts that are not UTF-8 come as bytes with SETTINGS output_format_arrow_string_as_string = 0"
        ),
        false => text,
    }
}

enum Decoded {
    Taken,
    Broken(String),
    NobodyThere,
}

impl Reader {
    async fn decode(&mut self, decoder: &mut StreamDecoder, mut bytes: Buffer) -> Decoded {
        while !bytes.is_empty() {
            let batch = match decoder.decode(&mut bytes) {
                Ok(batch) => batch,
                Err(error) => return Decoded::Broken(broken(&error)),
            };
            if let Some(schema) = decoder.schema() {
                self.opened.take().map(|opened| opened.send(Ok(Some(schema))));
            }
            if let Some(batch) = batch {
                if self.batches.send(Ok(batch)).await.is_err() {
                    return Decoded::NobodyThere;
                }
            }
        }
        Decoded::Taken
    }

    async fn fail(self, exception: Exception) {
        match self.opened {
            Some(opened) => drop(opened.send(Err(exception))),
            None => drop(self.batches.send(Err(exception)).await),
        }
    }

    fn end(self) {
        if let Some(opened) = self.opened {
            let _ = opened.send(Ok(None));
        }
    }
}
