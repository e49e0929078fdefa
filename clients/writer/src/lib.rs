//! A writer that gathers rows into batches and hands them to ClickHouse, losing nothing that it took.
//!
//! Rows are encoded to RowBinary when they are written ([`Rows`]), wait in a [`Buffer`] (in memory, on a
//! disk, in Redis, or one of the program's own) and are sent in batches, each under an id that never changes,
//! so that a repeat is harmless. A batch that ClickHouse refuses for good is narrowed down to the guilty
//! rows, which come back with the error.
//!
//! Two layers: [`Gathering`] decides what is to be done, sends nothing and reads no clock; [`Writer`] drives it with
//! tokio over windrow-clickhouse. Python's writers drive the same core.
//!
//! ```no_run
//! # #[cfg(feature = "client")]
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use std::sync::Arc;
//! use std::time::Duration;
//! use windrow_clickhouse::{Client, ClientOptions, Endpoint};
//! use windrow_writer::{Writer, WriterBuffer, WriterOptions};
//!
//! let endpoint = Endpoint::parse("http://default@127.0.0.1:8123")?;
//! let client = Arc::new(Client::new(endpoint, ClientOptions::default())?);
//! // CREATE TABLE events (id Int32, name String, note Nullable(String)) ENGINE = MergeTree ORDER BY id
//! //     SETTINGS non_replicated_deduplication_window = 1000
//! let options = WriterOptions { buffer: WriterBuffer::disk("./events-buffer"), ..WriterOptions::default() };
//! let writer = Writer::open(client, "events", &["id", "name", "note"], options).await?;
//! writer.write_row((1, "opened", None::<&str>)).await?;
//! writer.write_rows((2..1000).map(|id| (id, "clicked", Some("twice")))).await?;
//! writer.close(Duration::from_secs(30)).await;
//! for error in writer.errors() {
//!     eprintln!("{error}");
//! }
//! # Ok(())
//! # }
//! ```

mod buffer;
mod destination;
mod disk;
#[cfg(feature = "client")]
mod driven;
mod errors;
mod failure;
mod gathering;
mod id;
mod memory;
mod options;
mod redis;
mod retry;
mod rows;
mod statistics;

pub use buffer::{AppendError, Appended, Buffer, BufferError, BufferEvents, Kept, LeftOvers, Open, Ready, Sealed};
pub use destination::Destination;
pub use disk::{DiskBuffer, DiskOptions, DiskSync};
#[cfg(feature = "client")]
pub use driven::{
    Column, Date, DateTime, DateTime64, OnError, RawString, Row, RowError, Uuid, Value, ValueError, Writer,
    WriterBuffer, WriterError, WriterOptions,
};
pub use errors::{Reason, WriteError};
pub use failure::{Failure, FailureKind};
pub use gathering::{CloseReport, ErrorHook, Gathering, Next, OnKept, OnReached, OnSettled, Outgoing, Taken};
pub use id::BatchId;
pub use memory::MemoryBuffer;
pub use options::Options;
pub use redis::{AddressError, RedisAddress, RedisBuffer};
pub use retry::{Attempts, Backoff, Retry, MEMORY_RETRY_MS};
pub use rows::{Body, Rows};
pub use statistics::Statistics;
