use std::sync::Arc;
use std::time::Duration;

use crate::shares::Shares;

/// What a peer may make us hold or wait for. ClickHouse's own limits are the defaults.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Bytes of a message head, request line and fields together.
    pub max_head_bytes: usize,
    /// What all heads on this port may take that are longer than usual.
    pub long_heads: Arc<Shares>,
    /// Header fields of a message.
    pub max_fields: usize,
    /// From the first byte of a head to its last.
    pub head_timeout: Duration,
    /// The longest silence inside a body.
    pub body_idle_timeout: Duration,
    /// How long a connection may stay open between two requests.
    pub keep_alive_timeout: Duration,
    /// How long the peer may take no byte of what we write.
    pub write_idle_timeout: Duration,
    /// Requests answered on one connection, announced as `Keep-Alive: max`.
    pub max_requests: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            max_head_bytes: 1 << 20,
            long_heads: Shares::new(64 << 20),
            max_fields: 1000,
            head_timeout: Duration::from_secs(30),
            body_idle_timeout: Duration::from_secs(30),
            keep_alive_timeout: Duration::from_secs(30),
            write_idle_timeout: Duration::from_secs(300),
            max_requests: 10_000,
        }
    }
}
