//! A client of Kafka, written for reading much: what a broker sends is decoded batch by batch, without an allocation per record.
//!
//! Layers, lowest first: `wire` (the protocol's bytes), `batch` (records inside), `client` (connections to a cluster's brokers).

mod batch;
mod client;
mod error;
mod error_code;
mod wire;

pub use batch::*;
pub use client::*;
pub use error::Error;
pub use error_code::ErrorCode;
pub use wire::*;
