//! The data port: connections, each with one request after another.

mod answer;
#[cfg_attr(not(feature = "append"), path = "../without/appends.rs")]
pub(crate) mod appends;
mod body;
mod classify;
mod exchange;
mod flush;
mod forward;
mod forwarding;
mod hedge;
mod hop;
mod insert;
mod known_heads;
pub(crate) mod own_tables;
mod progress;
mod request;
mod serve;
mod sessions;
mod strangers;
mod stripped;
mod text;

pub use answer::{after, unreadable, After};
pub use body::{BodyRoom, Read, ReadError, Room};
pub use exchange::{send, Exchange};
pub(crate) use forwarding::Cause;
pub(crate) use known_heads::KnownHeads;
pub use request::Request;
pub(crate) use request::{caller, Caller, Identity};
pub use serve::{Certificates, DataServer, Port};
pub(crate) use sessions::Sessions;
pub use strangers::Peer;
pub(crate) use strangers::{behind, find_sender, Sender};
