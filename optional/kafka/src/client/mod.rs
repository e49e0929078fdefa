//! Connections to a cluster's brokers, and what every user of a cluster asks first: the leaders, the
//! coordinator, and the offsets where partitions begin and end.
//!
//! A broker answers the requests of one connection strictly in turn, also those that it lets wait. Hence
//! there is a connection for each [`Purpose`]. A [`Connection`] serves any number of callers at once and ends
//! with its first failure; [`Client::connection`] then makes a new one. Only requests that change nothing
//! (metadata, coordinator, offsets) are repeated without the caller's knowledge.

mod backoff;
mod cluster;
mod connection;
mod dial;
mod frame_pool;
mod frames;
mod offsets;
mod options;
mod pending;
mod sasl;

pub use backoff::Backoff;
pub(crate) use backoff::Retry;
pub use cluster::{Client, Purpose};
pub use connection::Connection;
pub use options::{ClientOptions, Sasl, ScramHash, TlsOptions, TokenSource};
