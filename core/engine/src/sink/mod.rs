//! Sinks: the systems where batches are stored.
//!
//! [`Sink`] states what the gatherer may rely on; [`ClickHouseSink`] keeps it for a ClickHouse reached over
//! HTTP.

mod batch;
mod clickhouse;
mod conclude;
mod contract;
mod converting;
mod spread;

pub(crate) use batch::PhysicalTable;
pub use batch::{Again, Batch, BatchId, Destination, Form, Partitioning, ShardTable, TableKey};
pub use clickhouse::{settings_of_flushes, ClickHouseSink, ONE_BLOCK};
pub use contract::{Load, PartCount, Sink, StoreError, Stored};
pub(crate) use converting::is_about_types;
pub use converting::{needs_no_cast, NO_CASTS};
