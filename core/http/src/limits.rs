use std::sync::Arc;
use std::time::Duration;

use crate::shares::Shares;

/// Limits of the memory and time that a peer can take. ClickHouse's own limits are the defaults.
#[derive(Debug, Clone)]
pub struct Limits {
    /// The most bytes of a message's head, request line and fields together.
    pub max_head_bytes: usize,
    /// Memory for all heads on this port that are longer than usual.
    pub long_heads: Arc<Shares>,
    /// The most header fields of a message.
    pub max_fields: usize,
    /// The longest time from the first byte of a head to its last. A new connection may also be silent for as
    /// long.
    pub head_timeout: Duration,
    /// The longest silence inside a body.
    pub body_idle_timeout: Duration,
    /// The longest time that a connection may stay open between two requests.
    pub keep_alive_timeout: Duration,
    /// The longest time in which the peer takes none of the bytes that are written to it.
    pub write_idle_timeout: Duration,
    /// The most requests that are answered on one connection, announced as `Keep-Alive: max`.
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
