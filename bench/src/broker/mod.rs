//! A Kafka broker of one node, and as much of its protocol as it takes to fill topics and to watch how far a group has
//! come. What is measured against it are others' readers; it is written to by this.

mod batch;
mod client;
mod process;
mod producer;
mod wire;

pub use client::BrokerClient;
pub use process::Broker;
pub use producer::{fill, Filled, Producer, Topic};
