//! The start of a connection: who the client is, and what the client is told of the server.

use std::time::Duration;

use windrow_clickhouse::native::{revision, Addendum, Answer, Chunked, ClientHello, ServerHello, Setting, Startup};
use windrow_clickhouse::{Credentials, ErrorCode, Purpose};

use super::relay::{splice, RelayState};
use super::reply::{exception, misread};
use super::upstream::{knows_database, NotConnected, Upstream};
use super::wire::Wire;
use crate::admission::UserKey;
use crate::backend::ClickHouse;
use crate::data::{behind, find_sender, Caller, Identity, Peer, Sender};
use crate::error::Refusal;
use crate::forward_reason::ForwardReason;
use crate::state::State;

/// Time that a client may take to say who it is.
const HELLO_TIMEOUT: Duration = Duration::from_secs(10);
/// User names that stand for no user, but for another way of authentication.
const INTERSERVER: &str = " INTERSERVER SECRET ";
const SSH_KEYS: &str = " SSH KEY AUTHENTICATION ";
const JWT: &str = " JWT AUTHENTICATION ";
/// Version of a protocol between servers, as newer ClickHouses send it; no client uses it.
const UNUSED_VERSION: u64 = 0;

/// A client whose account is known.
pub(crate) struct Client {
    /// The client's Hello, as the backend is to get it.
    pub(super) hello: ClientHello,
    pub(super) credentials: Credentials,
    /// The revision of the protocol that both sides write.
    pub(crate) revision: u64,
    /// Says whether the backend can't be reached natively.
    pub(super) is_over_http: bool,
    /// The backend's side of the connection, once it was needed.
    pub(super) upstream: Option<Upstream>,
}

/// Reads and answers a client's Hello. Returns `None` if nothing is left to do for the client: the client was refused,
/// has gone, or was served by the backend alone.
pub(super) async fn shake_hands(state: &State, peer: &Peer, wire: &mut Wire) -> Option<Client> {
    let startup = tokio::time::timeout(HELLO_TIMEOUT, wire.parse(0, Startup::read)).await.ok()?.ok()?;
    let (hello, length) = match startup {
        Ok((Startup::Hello(hello), length)) => (hello, length),
        Ok((Startup::Http, _)) => {
            // As ClickHouse does it: a browser shows it.
            let http = state.http_port.get().copied().unwrap_or_default();
            let text = format!(
                "HTTP/1.0 400 Bad Request\r\n\r\nThis port is for clickhouse-client program\r\n\
                 You must use port {http} for HTTP.\r\n"
            );
            let _ = wire.send(text.as_bytes()).await;
            return None;
        }
        Ok((Startup::Tls, _)) => {
            let text = "Unexpected packet from client (a TLS handshake on the plain port: use the setting \
                        `native.tls_listen`)";
            return refuse(wire, &Refusal::statement(ErrorCode::UNEXPECTED_PACKET_FROM_CLIENT, text.to_owned())).await;
        }
        Err(windrow_clickhouse::native::Fault::Malformed(what)) => {
            let text = format!("Unexpected packet from client ({what})");
            return refuse(wire, &Refusal::statement(ErrorCode::UNEXPECTED_PACKET_FROM_CLIENT, text)).await;
        }
        Err(fault) => return refuse(wire, &misread(&fault)).await,
    };
    wire.consume(length);
    greet(state, peer, wire, hello).await
}

async fn greet(state: &State, peer: &Peer, wire: &mut Wire, mut hello: ClientHello) -> Option<Client> {
    if hello.user.starts_with(SSH_KEYS) || hello.user == INTERSERVER || hello.user == JWT {
        let what = match hello.user.as_str() {
            INTERSERVER => "a cluster's secret: let remote_servers name a user and a password for it",
            JWT => "a token: use a user and a password, or the HTTP port, where tokens are passed on",
            _ => "SSH keys: use a password",
        };
        let text = format!("Authentication failed: Windrow does not take {what}");
        return refuse(wire, &Refusal::authentication(&text)).await;
    }
    // The embedded one aborts when it refuses a native client; there, nobody is `default`, as over HTTP.
    let is_embedded = state.options.default_user.is_some();
    if hello.user.is_empty() && (is_embedded || !state.backend.takes_requests()) {
        hello.user = "default".to_owned();
    }
    if let (true, Some(clickhouse)) = (hello.user.is_empty(), state.backend.clickhouse()) {
        // Old ones refuse it, others have a user for it: only the backend knows which.
        return pass_on(state, peer, wire, clickhouse, &hello).await;
    }
    let user = hello.user.clone();
    let claimed = Identity::Claimed(Credentials { user, password: hello.password.clone() });
    let credentials = match state.backend.caller(claimed, state.options.default_user.as_ref()) {
        Caller::Itself(credentials) | Caller::Default(credentials) => credentials,
        Caller::WrongPassword { user } => return refuse(wire, &Refusal::wrong_password(&user)).await,
        Caller::Unclear => return None,
    };
    (hello.user, hello.password) = (credentials.user.clone(), credentials.password.clone());
    let announced = hello.revision.min(revision::NEWEST);
    let key = UserKey {
        credentials: credentials.clone(),
        roles: Vec::new(),
        quota_key: String::new(),
        database: Some(hello.database.clone()).filter(|database| !database.is_empty()),
    };
    match find_sender(state, peer, &key).await {
        Sender::User => {}
        Sender::Nobody | Sender::Unclear => return refuse(wire, &Refusal::wrong_password(&credentials.user)).await,
        Sender::Behind => return refuse(wire, &behind()).await,
        Sender::Away(cause) => return refuse(wire, &Refusal::unreachable(&cause)).await,
    }
    // What is known of the user holds while the backend is away.
    let knows = state.admission.unless_away(async { Ok(knows_database(state, &key).await) }).await;
    if let Ok(Err(refusal)) = knows {
        return refuse(wire, &refusal).await;
    }
    let Introduction { hello: introduction, is_over_http } = introduction(state, &key).await;
    if let (true, false, Some(clickhouse)) = (announced < revision::OLDEST, is_over_http, state.backend.clickhouse()) {
        // What it writes is for its server alone to read.
        peer.permit.is_of_user();
        return pass_on(state, peer, wire, clickhouse, &hello).await;
    }
    if announced < revision::OLDEST {
        let text = "This client's protocol is too old: update it, or use HTTP".to_owned();
        return refuse(wire, &Refusal::statement(ErrorCode::SUPPORT_IS_DISABLED, text)).await;
    }
    let spoken = introduction.revision.min(revision::NEWEST);
    let revision = announced.min(spoken);
    let own = ServerHello {
        revision: spoken,
        settings: settings_of_user(state, &key),
        parallel_replicas_version: introduction.parallel_replicas_version,
        query_plan_version: UNUSED_VERSION,
        cluster_function_version: introduction.cluster_function_version,
        // The client chooses, whatever the backend has.
        chunked: Chunked::default(),
        ..introduction
    };
    let mut out = Vec::with_capacity(256);
    own.write(&mut out, revision, fastrand::u64(..));
    wire.send(&out).await.ok()?;
    peer.permit.is_of_user();
    hello.revision = revision;
    Some(Client { hello, credentials, revision, is_over_http, upstream: None })
}

/// The server as the client is told of it.
struct Introduction {
    hello: ServerHello,
    is_over_http: bool,
}

/// Returns the backend's native introduction, or what is known of the backend from HTTP.
async fn introduction(state: &State, key: &UserKey) -> Introduction {
    if let Some(ClickHouse { client, native: Some(native), .. }) = state.backend.clickhouse() {
        let asked = async { Ok(native.introduction(&client.endpoint().credentials).await) };
        if let Ok(Ok(hello)) = state.admission.unless_away(asked).await {
            return Introduction { hello: (*hello).clone(), is_over_http: false };
        }
    }
    let (facts, user) = (state.admission.facts.get(), state.admission.user(key.clone()).await.ok());
    let version = user.as_ref().map(|user| user.version).unwrap_or_default();
    // `(version 26.7.2.1)`
    let patch = facts.version_suffix().split('.').nth(2).and_then(|patch| patch.parse().ok());
    let hello = ServerHello {
        major: version.major.into(),
        minor: version.minor.into(),
        patch: patch.unwrap_or_default(),
        revision: revision::NEWEST,
        timezone: user.map_or_else(|| "UTC".to_owned(), |user| user.timezone.clone()),
        display_name: facts.display_name().to_owned(),
        ..ServerHello::default()
    };
    Introduction { hello, is_over_http: true }
}

/// Returns the settings that differ from ClickHouse's defaults for this user: some clients go by them.
fn settings_of_user(state: &State, key: &UserKey) -> Vec<Setting> {
    let Some(user) = state.admission.known_user(key) else { return Vec::new() };
    let settings = user.changed_settings.iter();
    settings.map(|(name, value)| Setting { name: name.clone(), flags: 0, value: value.clone() }).collect()
}

async fn or_refuse<T>(wire: &mut Wire, result: Result<T, NotConnected>) -> Option<T> {
    match result {
        Ok(connected) => Some(connected),
        Err(NotConnected::Unreachable(cause)) => refuse(wire, &Refusal::unreachable(&cause)).await,
        Err(NotConnected::Refused(packet)) => {
            let _ = wire.send(&packet).await;
            None
        }
        Err(NotConnected::Unknown(refusal)) => refuse(wire, &refusal).await,
    }
}

/// Refuses the client. Nothing comes after that.
async fn refuse<T>(wire: &mut Wire, refusal: &Refusal) -> Option<T> {
    let mut out = Vec::new();
    exception(&mut Answer { out: &mut out, revision: revision::OLDEST, is_compressed: false }, refusal);
    let _ = wire.send(&out).await;
    None
}

/// Leaves the client to the backend alone.
async fn pass_on<T>(
    state: &State,
    peer: &Peer,
    wire: &mut Wire,
    clickhouse: &ClickHouse,
    hello: &ClientHello,
) -> Option<T> {
    state.metrics.forwarded(ForwardReason::Hello);
    let turn = state.strangers.turn(peer.address).await;
    let native = or_refuse(wire, clickhouse.native()).await?;
    let (mut upstream, _use) = or_refuse(wire, native.dial(Purpose::Statement).await).await?;
    let mut first = Vec::new();
    hello.write(&mut first);
    first.append(&mut wire.input);
    upstream.send(&first).await.ok()?;
    // What it answers tells whether it knows them.
    tokio::time::timeout(HELLO_TIMEOUT, upstream.fill(1)).await.ok()?.ok()?;
    drop(turn);
    splice(wire, &mut upstream, &mut RelayState::default()).await;
    None
}

/// Opens the backend's side of a client's session.
pub(super) async fn upstream_of(
    clickhouse: &ClickHouse,
    client: &Client,
    key: &UserKey,
    addendum: &Addendum,
    purpose: Purpose,
) -> Result<Upstream, NotConnected> {
    let native = clickhouse.native()?;
    native.surely_knows(&clickhouse.client, key).await?;
    let upstream = native.connect(&client.hello, addendum, purpose).await?;
    match upstream.hello.revision.min(client.revision) == client.revision {
        true => Ok(upstream),
        // It was exchanged for an older one.
        false => Err(NotConnected::Unreachable(
            "it speaks an older protocol than when this connection began; connect anew".to_owned(),
        )),
    }
}
