//! What senders are told: that all rows were taken, or how many never will be, or why nothing was.

use std::time::Duration;

use crate::kind::Signal;
use crate::request::Encoding;

/// Rows that can never be taken. Their sender is told, and does not send them again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartialSuccess {
    pub rejected: usize,
    pub message: String,
}

/// `google.rpc.Status`, as it stands in the body of a refusal over HTTP, and in `grpc-status-details-bin` over gRPC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// Of gRPC.
    pub code: i32,
    pub message: String,
    /// When the request may come again.
    pub retry_after: Option<Duration>,
    /// The request itself is wrong: what is said of it.
    pub bad_request: Option<String>,
}

/// The answer to a request that was taken.
pub fn success(_signal: Signal, _encoding: Encoding, _partial: Option<&PartialSuccess>) -> Vec<u8> {
    Vec::new()
}

impl Status {
    pub fn encode(&self, _encoding: Encoding) -> Vec<u8> {
        Vec::new()
    }
}
