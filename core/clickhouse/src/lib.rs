//! An async client of ClickHouse's HTTP interface, and the native protocol as bytes ([`native`]).
//!
//! [`Client`] keeps a bounded pool of connections to one [`Endpoint`], or to each of several [`Replicas`].
//! [`Client::call`] is for whole requests and answers; [`Client::connection`] lends a connection to callers that stream.
//! Errors tell a caller what it must know to retry: whether the request can have been executed ([`CallError`]).
//! [`Exception`] reads ClickHouse's error texts.

mod basic;
mod call;
mod dial;
mod endpoint;
mod exception;
pub mod native;
mod pool;
mod replicas;
mod shards;
mod srv;
mod strangers;
mod tls;
mod url;

pub use crate::exception::{ErrorCode, Exception};
pub use basic::same_secret;
pub use call::{is_of_clickhouse, Answer, Begun, Call, CallError, Credentials};
pub use dial::Dialer;
pub use endpoint::{Endpoint, EndpointError};
pub use pool::{Client, ClientOptions, ConnectError, Lease};
pub use replicas::{Choice, InflightRequest, Purpose, ReplicaHealth, ReplicaId, Replicas, Target};
pub use shards::{Cluster, Shard, Topology};
pub use srv::SrvRecord;
pub use strangers::{Strangers, Turn};
pub use tls::{client_config, server_config, Identity, ServerTls, TlsError};
pub use url::{percent_decode, push_param, push_percent_encoded};
