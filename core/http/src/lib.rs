//! HTTP/1.1 on both sides of a gateway, over plain TCP or TLS.
//!
//! A drop-in for ClickHouse has to send `X-ClickHouse-Progress` fields while the head of an answer is still
//! open, pass on an answer's bytes unchanged, and notice a client that leaves in the middle of a query.
//! General HTTP libraries hide exactly that, so messages are framed here; the heads themselves are parsed by
//! `httparse`.
//!
//! - [`Connection`] is the server's side: read a request, read its body, write the answer, repeat.
//! - [`ClientConnection`] is the client's side, down to the raw bytes of an answer.
//! - [`ConnectionLimit`] bounds the connections of a port: the strangers that wait longest leave for new
//!   connections.
//! - [`AnswerHeadParser`] and [`BodyScanner`] do not use sockets: the Python package feeds them by hand.
//! - [`Limits`] caps everything that a peer decides: head, fields, body, and how slowly any of it may come.

mod answer_head;
mod body;
mod chunked;
mod client;
mod connection_limit;
mod framing;
mod head;
mod limits;
mod pass;
mod reader;
mod response;
mod server;
mod shares;
mod stream;

pub use answer_head::{AnswerHeadError, AnswerHeadParser, HeadStep};
pub use body::{BodyError, Collected, RequestBody};
pub use chunked::{ChunkedError, ChunkedScanner, Scanned};
pub use client::{AnswerBody, AnswerReader, ClientConnection, ClientError, HeadEvent};
pub use connection_limit::{ConnectionLimit, ConnectionPermit};
pub use framing::{BodyFraming, BodyScanner};
pub use head::{HeadError, Method, RequestHead, ResponseHead};
pub use limits::Limits;
pub use pass::Pass;
pub use reader::MessageReader;
pub use response::{content_type, http_date, reason_phrase, ResponseBuilder};
pub use server::{Connection, NextRequest};
pub use shares::{network_of, Share, Shares};
pub use stream::{within, ReadHalf, Stream, WriteHalf};
