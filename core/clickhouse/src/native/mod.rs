//! ClickHouse's native protocol, which its own clients speak on port 9000: the packets of both sides as bytes.
//!
//! There is no I/O here: the owner of a socket hands over the bytes that have come so far, and learns how
//! many more are needed. A packet is a type and a body without a length, so a packet that is to be skipped
//! has to be parsed to its last byte. The form of packets depends on the revision that both sides have agreed
//! on, the lesser of the two that they know; `revision.rs` has each step.
//!
//! - `input.rs`: input whose end may not have come yet.
//! - `hello.rs`: the beginning of a connection. `query.rs`: the client's query. `block/`: columns, as they come in.
//!   `data.rs`: Data packets, compressed or not. `chunked.rs`: the lengths that may stand around packets.
//! - `answer.rs`: packets that a server writes. `server_packet.rs`: the same packets, read, as far as answers to an
//!   INSERT need them.
//!
//! The sources are ClickHouse's specification of the protocol and its code (`src/Server/TCPHandler.cpp`,
//! `src/Client/Connection.cpp`, `src/Formats/NativeReader.cpp`).

mod answer;
mod block;
mod chunked;
mod data;
mod hello;
mod input;
mod query;
pub mod revision;
mod server_packet;

pub use answer::{Answer, Counter};
pub use block::{BlockEnd, BlockReader, RowShape};
pub use chunked::{write_chunked, ChunkReader, Chunked};
pub use data::{DataReader, ReadProgress};
pub use hello::{Addendum, ClientHello, ServerHello, Startup, MAX_HELLO_STRING_BYTES};
pub use input::{write_string, write_varint, Fault, Input};
pub use query::{Query, Setting, TraceContext, FLAG_CUSTOM, FLAG_IMPORTANT, STAGE_COMPLETE};
pub use server_packet::{read_server_packet, ServerPacket};

/// Types of the packets that a client sends.
pub mod client {
    pub const HELLO: u64 = 0;
    pub const QUERY: u64 = 1;
    pub const DATA: u64 = 2;
    pub const CANCEL: u64 = 3;
    pub const PING: u64 = 4;
    pub const TABLES_STATUS_REQUEST: u64 = 5;
    /// A type that has a number, but that no server knows.
    pub const KEEP_ALIVE: u64 = 6;
    pub const SCALAR: u64 = 7;
    pub const IGNORED_PART_UUIDS: u64 = 8;
    pub const SSH_CHALLENGE_REQUEST: u64 = 11;
    /// The greatest type there is: a server's answer to another server.
    pub const LAST: u64 = 14;
}

/// Types of the packets that a server sends.
pub mod server {
    pub const HELLO: u64 = 0;
    pub const DATA: u64 = 1;
    pub const EXCEPTION: u64 = 2;
    pub const PROGRESS: u64 = 3;
    pub const PONG: u64 = 4;
    pub const END_OF_STREAM: u64 = 5;
    pub const PROFILE_INFO: u64 = 6;
    pub const TOTALS: u64 = 7;
    pub const EXTREMES: u64 = 8;
    pub const LOG: u64 = 10;
    pub const TABLE_COLUMNS: u64 = 11;
    pub const PROFILE_EVENTS: u64 = 14;
    pub const TIMEZONE_UPDATE: u64 = 17;
}
