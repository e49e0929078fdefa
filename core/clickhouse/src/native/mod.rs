//! ClickHouse's native protocol, which its own clients speak on port 9000: the packets of both sides as bytes.
//!
//! No I/O: whoever has a socket hands over what has come so far, and is told how much more it takes. A packet is a type and a
//! body without a length, so one that is to be passed over has to be parsed to its last byte. What both sides may write
//! depends on the revision that they have agreed on, the lesser of what the two know; `revision.rs` has each step.
//!
//! - `input.rs`: bytes of which more may come.
//! - `hello.rs`: how a connection begins. `query.rs`: what is asked. `block/`: columns, taken apart as they come in.
//!   `data.rs`: Data packets, compressed or not. `chunked.rs`: the lengths that may stand around packets.
//! - `answer.rs`: what a server writes. `server_packet.rs`: the same, read, as far as answers to an INSERT have it.
//!
//! The source of all of this is ClickHouse's specification of the protocol and its code (`src/Server/TCPHandler.cpp`,
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

/// What a client sends.
pub mod client {
    pub const HELLO: u64 = 0;
    pub const QUERY: u64 = 1;
    pub const DATA: u64 = 2;
    pub const CANCEL: u64 = 3;
    pub const PING: u64 = 4;
    pub const TABLES_STATUS_REQUEST: u64 = 5;
    /// It has a number, and no server knows it.
    pub const KEEP_ALIVE: u64 = 6;
    pub const SCALAR: u64 = 7;
    pub const IGNORED_PART_UUIDS: u64 = 8;
    pub const SSH_CHALLENGE_REQUEST: u64 = 11;
    /// Of those that there are: a server's answer to another.
    pub const LAST: u64 = 14;
}

/// What a server sends.
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
