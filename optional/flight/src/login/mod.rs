//! Finds out the caller: the users are the same as on the data port.
//!
//! A client sends `authorization: Basic ...` with each call, or once in a handshake, which gives it a bearer
//! token for the following calls. Without either the user is `default` with an empty password, as on the data
//! port.

mod tokens;
mod users;

pub(crate) use tokens::{random_name, Tokens};
pub use users::{Access, DefaultUser, Users};

use std::net::IpAddr;
use std::sync::Arc;

use tonic::metadata::MetadataMap;
use tonic::Status;
use windrow_clickhouse::Credentials;
use windrow_http::ConnectionPermit;

/// The user that a call is made by.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) credentials: Credentials,
    /// Says whether the user may only read. This is known of DuckDB's users only; ClickHouse knows its own users.
    pub(crate) readonly: bool,
    /// The database of tables that are named without one.
    pub(crate) database: Option<String>,
}

/// The address and the connection that a call comes from.
#[derive(Clone)]
pub(crate) struct Peer {
    pub(crate) address: IpAddr,
    pub(crate) permit: Arc<ConnectionPermit>,
}

impl Peer {
    pub(crate) fn new(address: IpAddr, permit: ConnectionPermit) -> Peer {
        Peer { address, permit: Arc::new(permit) }
    }
}

/// The users and tokens that callers log in with.
pub(crate) struct Login {
    users: Users,
    tokens: Tokens,
}

impl Login {
    pub(crate) fn new(users: Users) -> Login {
        Login { users, tokens: Tokens::default() }
    }

    pub(crate) async fn caller(&self, fields: &MetadataMap, peer: &Peer) -> Result<Caller, Status> {
        let (credentials, readonly) = match fields.get("authorization") {
            None => self.checked(anonymous(), peer).await?,
            Some(given) => match bearer(given.as_bytes()) {
                Some(token) => self.tokens.known(token).ok_or_else(unknown_token)?,
                None => self.checked(Credentials::from_basic(given.as_bytes()).ok_or_else(unreadable)?, peer).await?,
            },
        };
        peer.permit.is_of_user();
        Ok(Caller { credentials, readonly, database: database(fields) })
    }

    /// Answers a handshake with the value of the `authorization` field for the following calls.
    pub(crate) async fn hand_shake(&self, fields: &MetadataMap, payload: &[u8], peer: &Peer) -> Result<String, Status> {
        let given = match fields.get("authorization") {
            Some(field) => Credentials::from_basic(field.as_bytes()).ok_or_else(unreadable)?,
            None => basic_auth(payload).unwrap_or_else(anonymous),
        };
        let (credentials, readonly) = self.checked(given, peer).await?;
        peer.permit.is_of_user();
        let token = self.tokens.issue(credentials, readonly).map_err(|_| Status::internal("no random numbers"))?;
        Ok(format!("Bearer {token}"))
    }

    async fn checked(&self, given: Credentials, peer: &Peer) -> Result<(Credentials, bool), Status> {
        self.users.check(given, peer.address).await.map_err(|exception| crate::error::status(&exception))
    }
}

fn anonymous() -> Credentials {
    Credentials { user: "default".to_owned(), password: String::new() }
}

fn bearer(field: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(field).ok()?;
    let (scheme, token) = text.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

fn database(fields: &MetadataMap) -> Option<String> {
    let field = fields.get("x-clickhouse-database").or_else(|| fields.get("database"))?;
    field.to_str().ok().filter(|name| !name.is_empty()).map(str::to_owned)
}

/// Reads user and password from the message that clients of Flight's first handshake send.
pub(crate) fn basic_auth(payload: &[u8]) -> Option<Credentials> {
    let read: arrow_flight::BasicAuth = prost::Message::decode(payload).ok()?;
    (!read.username.is_empty()).then_some(Credentials { user: read.username, password: read.password })
}

fn unreadable() -> Status {
    Status::unauthenticated(
        "the field authorization is neither `Basic` with user and password nor `Bearer` with a token",
    )
}

fn unknown_token() -> Status {
    Status::unauthenticated("this token is not known any more: connect again")
}
