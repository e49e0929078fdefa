//! Arrow Flight SQL on a port of its own: queries, prepared statements and bulk ingest.
//!
//! [`FlightServer`] answers any client of Flight SQL over the database that stands behind the gateway ([`Store`]), for
//! the users of the data port ([`Users`]). Nothing is kept between calls but bearer tokens and prepared statements,
//! both bounded: a ticket holds its statement itself. Rows go out as they come from the database, two batches ahead of
//! the client; rows that come in are an ordered append, all of them or none.
//!
//! Flight SQL's messages are defined here (`messages.rs`) rather than taken from `arrow-flight`, which asks for three
//! more crates with them.

mod catalog;
mod command;
mod error;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod incoming;
mod login;
mod messages;
mod metrics;
mod outgoing;
mod pieces;
mod prepared;
mod server;
mod service;
mod sql;
mod store;
mod whole;

pub use login::{Access, DefaultUser, Users};
pub use server::{FlightOptions, FlightServer, TlsFiles, MAX_CONNECTIONS};
pub use store::Store;
