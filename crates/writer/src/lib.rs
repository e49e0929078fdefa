//! A writer that gathers rows into batches and hands them to ClickHouse, losing nothing that it took.
//!
//! Rows are encoded to RowBinary when they are written ([`Rows`]), wait in a [`Buffer`] and are sent in batches, each under an id that never
//! changes, so that a repeat is harmless. [`Gathering`] decides; whoever drives it sends.

mod buffer;
mod destination;
mod disk;
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

pub use buffer::{AppendError, Appended, Buffer, BufferError, Kept, LeftOvers, News, Open, Ready, Sealed};
pub use destination::Destination;
pub use disk::{DiskBuffer, DiskOptions, DiskSync};
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
