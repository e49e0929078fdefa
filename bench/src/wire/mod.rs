//! The little HTTP/1.1 that a load generator needs: requests are written by hand, answers are parsed in place.
//! Anything more would be measured along with the server.

mod body;
mod endpoint;
mod head;

pub use body::{BodyDecoder, Framing};
pub use endpoint::{url_encode, Endpoint};
pub use head::{parse_head, Head};

use std::fmt;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WireError {
    BadHead,
    HeadTooLarge,
    BadContentLength,
    BadChunk,
    /// The connection ended before the answer did.
    Truncated,
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            WireError::BadHead => "the server's answer does not begin like HTTP/1.1; is the address right?",
            WireError::HeadTooLarge => "the server's answer has a head of more than 64 KiB or 64 headers",
            WireError::BadContentLength => "the server sent a Content-Length that is no number",
            WireError::BadChunk => "the server sent a broken chunk",
            WireError::Truncated => "the server closed the connection in the middle of an answer; look into its log",
        })
    }
}

impl std::error::Error for WireError {}
