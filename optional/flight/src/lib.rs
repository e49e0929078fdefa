//! Arrow Flight SQL on a port of its own: queries, prepared statements and bulk ingest.
//!
//! [`FlightServer`] answers any client of Flight SQL over the database behind the gateway ([`Store`]), for
//! the users of the data port ([`Users`]). Only bearer tokens and prepared statements are kept between calls,
//! and both are limited: a ticket has its statement in itself. Rows are sent as they come from the database,
//! a few batches ahead of the client. Rows that are received are an ordered append, all of them or none.
//!
//! Flight SQL's messages are defined here (`messages.rs`) rather than taken from `arrow-flight`, whose
//! messages need three more crates.

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
