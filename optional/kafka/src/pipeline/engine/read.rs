//! Reading of fetched messages, on a thread that may block.

use std::sync::{Arc, Mutex, PoisonError};

use crate::messages::{Message, MessageError, MessageReader, Unread};
use crate::{Decompressor, Record, TopicPartition, VisibleBatches};
use bytes::Bytes;
use tokio::runtime::Handle;
use windrow_clickhouse::ErrorCode;

use crate::pipeline::engine::chunk::{BadMessage, Chunk, Reading};
use crate::pipeline::latency::{wall_ms, Timing};
use crate::pipeline::metrics::ErrorKind;
use crate::pipeline::options::OnError;
use crate::pipeline::registry::{RegistryError, SchemaRegistry};
use crate::pipeline::tables::{AskError, FormatQuestion, Tables};

/// Largest size of a decompressed batch.
const MAX_BATCH_BYTES: usize = 128 << 20;
/// Approximate size of a chunk's rows, since fetched bytes may become many times as many. The rest is read as
/// another chunk.
const MAX_CHUNK_BYTES: usize = 16 << 20;
/// Number of messages between two looks at this size.
const LOOK_EVERY: u64 = 64;

/// State that readers on all threads share.
pub(crate) struct Readers {
    pub(crate) tables: Arc<dyn Tables>,
    pub(crate) registry: Option<SchemaRegistry>,
    pub(crate) on_error: OnError,
    pub(crate) format_settings: Vec<(String, String)>,
    decompressors: Mutex<Vec<Decompressor>>,
}

impl Readers {
    pub(crate) fn new(
        tables: Arc<dyn Tables>,
        registry: Option<SchemaRegistry>,
        on_error: OnError,
        format_settings: Vec<(String, String)>,
    ) -> Readers {
        Readers { tables, registry, on_error, format_settings, decompressors: Mutex::default() }
    }

    /// Reads a single message. Returns its number of rows, or the error in the message.
    pub(crate) fn read_one(
        &self,
        reading: &Reading,
        reader: &mut MessageReader<'_>,
        message: &Message<'_>,
    ) -> Result<Result<u32, String>, ReadTrouble> {
        match reader.read(message) {
            Ok(rows) => Ok(Ok(rows)),
            Err(unread) => self.recover(reading, reader, message, unread),
        }
    }

    /// Tries the other ways to read a message that could not be read. Returns the error in the message, if
    /// they don't help.
    #[cold]
    fn recover(
        &self,
        reading: &Reading,
        reader: &mut MessageReader<'_>,
        message: &Message<'_>,
        unread: Unread,
    ) -> Result<Result<u32, String>, ReadTrouble> {
        let unread = match unread {
            Unread::MissingSchema(id) => match self.fetch_schema(reading, id)? {
                Ok(()) => match reader.read(message) {
                    Ok(rows) => return Ok(Ok(rows)),
                    Err(unread) => unread,
                },
                Err(text) => return Ok(Err(text)),
            },
            refused => refused,
        };
        match unread {
            Unread::Refused(error) if error.certain => Ok(Err(error.text)),
            Unread::Refused(error) => self.ask(reading, reader, message, error),
            missing @ Unread::MissingSchema(_) => Ok(Err(missing.to_string())),
        }
    }

    fn fetch_schema(&self, reading: &Reading, id: u32) -> Result<Result<(), String>, ReadTrouble> {
        let Some(registry) = &self.registry else {
            return Ok(Err(format!("the message has the schema {id}, and no schema_registry is set")));
        };
        match Handle::current().block_on(registry.schema(id)) {
            Ok(schema) => Ok(reading.plan.add_schema(id, &schema).map_err(|error| error.to_string())),
            Err(RegistryError::Unavailable(text)) => Err(ReadTrouble::Registry(text)),
            Err(RegistryError::Refused(text)) => Ok(Err(text)),
        }
    }

    /// Asks ClickHouse to read a message, if it isn't certain here how ClickHouse would read it.
    fn ask(
        &self,
        reading: &Reading,
        reader: &mut MessageReader<'_>,
        message: &Message<'_>,
        error: MessageError,
    ) -> Result<Result<u32, String>, ReadTrouble> {
        let Some(question) = reading.plan.question() else { return Ok(Err(error.text)) };
        let settings: Vec<(String, String)> = self.format_settings.iter().cloned().chain(question.settings).collect();
        let asked = FormatQuestion {
            format: question.format,
            columns: &question.columns,
            settings: &settings,
            payload: Bytes::copy_from_slice(message.value.unwrap_or_default()),
        };
        match Handle::current().block_on(self.tables.ask_format(asked)) {
            Ok(block) => Ok(reader.take_block(block, message).map_err(|unread| unread.to_string())),
            // An account that is not let in says nothing of the message, and is mended one day.
            Err(AskError::Refused(exception)) if exception.is_about_identity() => {
                Err(ReadTrouble::Backend(exception.line))
            }
            Err(AskError::Refused(exception)) => Ok(Err(exception.line)),
            Err(AskError::Nobody) => Ok(Err(error.text)),
            Err(AskError::Unavailable(text)) => Err(ReadTrouble::Backend(text)),
        }
    }

    pub(crate) fn with_decompressor<T>(&self, work: impl FnOnce(&mut Decompressor) -> T) -> T {
        let kept = self.decompressors.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut decompressor = kept.unwrap_or_else(|| Decompressor::new(MAX_BATCH_BYTES));
        let result = work(&mut decompressor);
        self.decompressors.lock().unwrap_or_else(PoisonError::into_inner).push(decompressor);
        result
    }
}

/// Batches of a partition that follow each other.
#[derive(Debug, Clone)]
pub(crate) struct Fetch {
    pub(crate) partition: TopicPartition,
    pub(crate) batches: Vec<VisibleBatches>,
    /// Offset before which messages are left out.
    pub(crate) first_offset: i64,
    /// Offset from which on messages are left out.
    pub(crate) next_offset: i64,
    pub(crate) fetched_ms: i64,
}

/// The cause why a fetch could not be read for now. It can be tried again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ReadTrouble {
    /// The bytes from the broker are damaged.
    Fetched(String),
    /// ClickHouse has to be asked, and can't be.
    Backend(String),
    Registry(String),
}

impl ReadTrouble {
    pub(crate) fn kind(&self) -> ErrorKind {
        match self {
            ReadTrouble::Fetched(_) => ErrorKind::Kafka,
            ReadTrouble::Backend(_) => ErrorKind::Table,
            ReadTrouble::Registry(_) => ErrorKind::Registry,
        }
    }

    pub(crate) fn into_text(self) -> String {
        match self {
            ReadTrouble::Fetched(text) => format!("what the broker sent can't be read: {text}"),
            ReadTrouble::Backend(text) => format!("ClickHouse can't be asked how it reads a message: {text}"),
            ReadTrouble::Registry(text) => format!("the schema registry gives no schema: {text}"),
        }
    }
}

/// Reads the messages of a fetch. Where they become very many rows, it reads only the first of them.
/// `left_out` are offsets, ascending, of messages that are dead letters already. It has to be called on a
/// thread that may block.
pub(crate) fn read(readers: &Readers, reading: &Reading, fetch: Fetch, left_out: &[i64]) -> Result<Chunk, ReadTrouble> {
    let Fetch { partition, batches, first_offset, next_offset, fetched_ms } = fetch;
    let mut chunk = ChunkReader {
        readers,
        reading,
        reader: MessageReader::new(&reading.plan, &partition.topic, partition.partition),
        messages: 0,
        oldest_ms: i64::MAX,
        newest_ms: i64::MIN,
        row_count: 0,
        bytes: 0,
        tombstones: 0,
        bad: Vec::new(),
        stopped_by: None,
        next_offset,
    };
    readers.with_decompressor(|decompressor| {
        for batch in batches.into_iter().flatten() {
            let damaged = |error: crate::BatchError| ReadTrouble::Fetched(format!("{partition}: {error}"));
            let batch = batch.map_err(damaged)?;
            for record in decompressor.records(&batch).map_err(damaged)? {
                let record = record.map_err(damaged)?;
                if record.offset < first_offset {
                    continue;
                }
                if record.offset >= chunk.next_offset {
                    return Ok(());
                }
                if chunk.is_full() {
                    chunk.next_offset = record.offset;
                    return Ok(());
                }
                if left_out.is_empty() || left_out.binary_search(&record.offset).is_err() {
                    chunk.take(record)?;
                }
            }
        }
        Ok(())
    })?;
    Ok(chunk.finish(fetched_ms))
}

struct ChunkReader<'r> {
    readers: &'r Readers,
    reading: &'r Reading,
    reader: MessageReader<'r>,
    messages: u64,
    oldest_ms: i64,
    newest_ms: i64,
    row_count: u64,
    bytes: u64,
    tombstones: u64,
    bad: Vec<BadMessage>,
    stopped_by: Option<BadMessage>,
    /// Offset where the chunk ends.
    next_offset: i64,
}

impl ChunkReader<'_> {
    #[inline]
    fn is_full(&self) -> bool {
        self.messages % LOOK_EVERY == LOOK_EVERY - 1 && self.reader.bytes() > MAX_CHUNK_BYTES
    }

    #[inline]
    fn take(&mut self, record: Record<'_>) -> Result<(), ReadTrouble> {
        let message = Message::from(record);
        match self.reader.read(&message) {
            Ok(rows) => self.row_count += u64::from(rows),
            Err(unread) => match self.readers.recover(self.reading, &mut self.reader, &message, unread)? {
                Ok(rows) => self.row_count += u64::from(rows),
                Err(error) => self.refuse(bad_message(&record, ErrorCode::OK, error)),
            },
        }
        if self.stopped_by.is_some() {
            return Ok(());
        }
        self.messages += 1;
        self.tombstones += u64::from(message.value.is_none_or(<[u8]>::is_empty));
        self.bytes += (record.key.map_or(0, <[u8]>::len) + record.value.map_or(0, <[u8]>::len)) as u64;
        if record.timestamp_ms >= 0 {
            self.oldest_ms = self.oldest_ms.min(record.timestamp_ms);
            self.newest_ms = self.newest_ms.max(record.timestamp_ms);
        }
        Ok(())
    }

    #[cold]
    fn refuse(&mut self, bad: BadMessage) {
        match self.readers.on_error {
            OnError::DeadLetter | OnError::Skip => self.bad.push(bad),
            OnError::Stop => {
                self.next_offset = bad.offset;
                self.stopped_by = Some(bad);
            }
        }
    }

    fn finish(self, fetched_ms: i64) -> Chunk {
        let held_bytes = self.reader.bytes() as u64;
        let reading = self.reading;
        let rows = self.reader.finish().into_iter().map(|run| reading.rows(run)).collect();
        let has_timestamps = self.newest_ms >= self.oldest_ms;
        let (oldest_ms, newest_ms) =
            if has_timestamps { (self.oldest_ms, self.newest_ms) } else { (fetched_ms, fetched_ms) };
        let timing = Timing { messages: self.messages, oldest_ms, newest_ms, fetched_ms, read_ms: wall_ms() };
        Chunk {
            next_offset: self.next_offset,
            rows,
            bad: self.bad,
            tombstones: self.tombstones,
            row_count: self.row_count,
            bytes: self.bytes,
            held_bytes,
            timing,
            stopped_by: self.stopped_by,
        }
    }
}

pub(crate) fn bad_message(record: &Record<'_>, code: ErrorCode, error: String) -> BadMessage {
    BadMessage {
        offset: record.offset,
        timestamp_ms: record.timestamp_ms,
        key: record.key.map(<[u8]>::to_vec),
        headers: record.headers.iter().map(|header| (header.key.to_vec(), header.value.map(<[u8]>::to_vec))).collect(),
        value: record.value.map(<[u8]>::to_vec),
        code,
        error,
        was_read: false,
    }
}

#[cfg(test)]
mod tests {
    use crate::messages::Headers;
    use windrow_columns::{ColumnSpec, DataType, DefaultKind};

    use super::*;
    use crate::pipeline::engine::replay::on_thread;
    use crate::pipeline::options::FormatOptions;
    use crate::pipeline::plan::plan_for;
    use crate::pipeline::tables::tests::{description, NoTable};

    /// Reads a message that ClickHouse has to be asked about, and that it refuses with this code.
    async fn asked(code: ErrorCode) -> Result<Result<u32, String>, ReadTrouble> {
        let work = move || {
            let description = description(&[("a", "UInt8")]);
            let format = FormatOptions { name: "JSONEachRow".to_owned(), ..FormatOptions::default() };
            let data_type = DataType::parse("UInt8").unwrap();
            let columns = vec![ColumnSpec { name: "a".to_owned(), data_type, default_kind: DefaultKind::None }];
            let plan = plan_for(&format, &[], columns, &description).unwrap();
            let reading = Reading::new(Arc::new(plan), description);
            let readers = Readers::new(Arc::new(NoTable::Refused(code)), None, OnError::DeadLetter, Vec::new());
            let mut reader = MessageReader::new(&reading.plan, "events", 0);
            let message =
                Message { offset: 0, timestamp_ms: 0, key: None, value: Some(b"x"), headers: Headers::Kept(&[]) };
            let error = MessageError { text: "perhaps".to_owned(), row: 1, column: None, certain: false };
            readers.ask(&reading, &mut reader, &message, error)
        };
        on_thread(work).await
    }

    #[tokio::test]
    async fn an_account_that_is_not_let_in_is_no_fault_of_a_message() {
        assert!(matches!(asked(ErrorCode::CANNOT_PARSE_INPUT_ASSERTION_FAILED).await, Ok(Err(_))));
        assert!(matches!(asked(ErrorCode::AUTHENTICATION_FAILED).await, Err(ReadTrouble::Backend(_))));
    }
}
