//! The data port: one connection at a time, one request after another.

mod answer;
mod appends;
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
mod on_sql;
pub(crate) mod own_tables;
mod progress;
mod request;
mod serve;
mod sessions;
mod sql;
mod strangers;
mod stripped;
mod text;

pub(crate) use answer::{after, unreadable, After};
pub(crate) use body::{BodyRoom, Read, ReadError, Room};
pub(crate) use known_heads::KnownHeads;
pub(crate) use request::{caller, Caller, Identity};
pub use serve::{Certificates, DataServer, Port};
pub(crate) use sessions::Sessions;
pub use sql::{install_duckdb_functions, prepare_temporary_folder};
pub(crate) use sql::{statement_text, Elsewhere, Failure, KeptFiles, Question, Run, Statement, TemporaryFiles, Who};
pub(crate) use strangers::{behind, find_sender, Peer, Sender};
