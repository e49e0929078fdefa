//! Native connections to the backend: one for each client that needs one.

use std::io;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::{Duration, Instant};

use windrow_clickhouse::native::{
    read_server_packet, revision, server, Addendum, ClientHello, Fault, Input, ServerHello,
};
use windrow_clickhouse::{
    CallError, Client, Credentials, Dialer, Endpoint, InflightRequest, Purpose, ReplicaId, Replicas, TlsError,
};

use super::wire::Wire;
use crate::admission::UserKey;
use crate::backend::{find_database, ClickHouse};
use crate::error::Refusal;
use crate::recent::Recent;
use crate::state::State;

/// Time that the backend may take to answer a Hello, connecting included.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Time for which a native port that did not introduce itself is not asked again: the gateway does without it.
const SILENCE_TTL: Duration = Duration::from_secs(30);
/// Time that the backend may be silent while a statement runs there. The client's own patience is shorter, or endless.
const SILENCE: Duration = Duration::from_secs(24 * 3600);

/// A function that makes the dialer for the native port of a server.
pub type DialerOf = Box<dyn Fn(&Endpoint) -> Result<Dialer, TlsError> + Send + Sync>;

/// The backend's native port, or those of its replicas.
pub struct NativeBackend {
    replicas: Arc<Replicas>,
    /// Dialers, one for each replica that was asked.
    dialers: Vec<OnceLock<Dialer>>,
    dialer: DialerOf,
    connect_timeout: Duration,
    /// The backend's latest introduction.
    known: RwLock<Option<Arc<ServerHello>>>,
    /// The moment at which the backend did not introduce itself, if that was the last try.
    silent_since: Mutex<Option<Instant>>,
}

/// The reason why there is no connection to the backend.
#[derive(Debug)]
pub(super) enum NotConnected {
    Unreachable(String),
    /// The backend refuses this client, with a packet that is the client's to read.
    Refused(Vec<u8>),
    /// The backend would refuse this client.
    Unknown(Refusal),
}

impl NotConnected {
    pub(super) fn refusal(self) -> Refusal {
        match self {
            NotConnected::Unknown(refusal) => refusal,
            NotConnected::Unreachable(cause) => Refusal::unreachable(&cause),
            NotConnected::Refused(_) => Refusal::unreachable("it has just refused this user on its native port"),
        }
    }
}

/// A connection on which the backend knows the client.
pub(super) struct Upstream {
    pub(super) wire: Wire,
    pub(super) hello: Arc<ServerHello>,
    in_use: InflightRequest,
    /// A replica that was tried in place of this one.
    pub(super) tried: Option<ReplicaId>,
}

impl ClickHouse {
    pub(super) fn native(&self) -> Result<&NativeBackend, NotConnected> {
        self.native.as_deref().ok_or_else(|| NotConnected::Unreachable("its native port is not known".to_owned()))
    }
}

impl NativeBackend {
    pub fn new(replicas: Arc<Replicas>, dialer: DialerOf, connect_timeout: Duration) -> NativeBackend {
        let dialers = (0..replicas.room()).map(|_| OnceLock::new()).collect();
        let (known, silent_since) = (RwLock::default(), Mutex::default());
        NativeBackend { replicas, dialers, dialer, connect_timeout, known, silent_since }
    }

    fn dialer(&self, id: ReplicaId) -> io::Result<&Dialer> {
        let dialer = &self.dialers[id.index()];
        if dialer.get().is_none() {
            let made =
                (self.dialer)(self.replicas.endpoint(id)).map_err(|error| io::Error::other(error.to_string()))?;
            // Whoever was first has made the same.
            let _ = dialer.set(made);
        }
        dialer.get().ok_or_else(|| io::ErrorKind::Other.into())
    }

    /// Returns the backend's introduction: the latest one, or a new one for the gateway's own account.
    pub(super) async fn introduction(&self, own: &Credentials) -> Result<Arc<ServerHello>, NotConnected> {
        if let Some(known) = self.known.read().unwrap_or_else(PoisonError::into_inner).clone() {
            return Ok(known);
        }
        let silent_since = || self.silent_since.lock().unwrap_or_else(PoisonError::into_inner);
        if silent_since().is_some_and(|since| since.elapsed() < SILENCE_TTL) {
            return Err(self.unreachable("it did not answer a moment ago"));
        }
        let hello = ClientHello {
            name: "Windrow".to_owned(),
            revision: revision::NEWEST,
            user: own.user.clone(),
            password: own.password.clone(),
            ..ClientHello::default()
        };
        let connected = self.connect(&hello, &Addendum::default(), Purpose::Statement).await;
        *silent_since() = connected.is_err().then(Instant::now);
        match connected {
            Ok(upstream) => Ok(upstream.hello),
            Err(error) => {
                let port = self.names();
                let text = "the backend can't be reached natively, so what native clients ask goes over HTTP: see docs/native.md";
                tracing::warn!(port, cause = ?error, "{text}");
                Err(error)
            }
        }
    }

    /// Checks over HTTP that the backend knows the user, before the native port could refuse him.
    pub(super) async fn surely_knows(&self, client: &Client, key: &UserKey) -> Result<(), NotConnected> {
        find_database(client, key, HANDSHAKE_TIMEOUT).await.map_err(|error| match error {
            CallError::Exception(exception) => NotConnected::Unknown(Refusal::exception(exception)),
            error => NotConnected::Unreachable(error.to_string()),
        })
    }

    /// Returns the replica that is to be asked for this purpose, if it is another than the connection's. If
    /// that replica's native port was tried before and did not answer, the connection's will do.
    pub(super) fn better_than(&self, upstream: &Upstream, purpose: Purpose) -> Option<ReplicaId> {
        // A statement of the client's choice stays; to ask for the next replica would take somebody's turn.
        if purpose == Purpose::Statement {
            return None;
        }
        let first = self.replicas.order(purpose).into_iter().next()?;
        (first != upstream.in_use.replica() && Some(first) != upstream.tried).then_some(first)
    }

    /// Connects as the client with this Hello. (A ClickHouse 26.7 whose client leaves between Hello and
    /// addendum may abort.)
    pub(super) async fn connect(
        &self,
        hello: &ClientHello,
        addendum: &Addendum,
        purpose: Purpose,
    ) -> Result<Upstream, NotConnected> {
        let connected = tokio::time::timeout(HANDSHAKE_TIMEOUT, self.shake_hands(hello, addendum, purpose)).await;
        let silent = || Err(self.unreachable("it has not answered in time"));
        let upstream = connected.unwrap_or_else(|_| silent())?;
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        let of = |hello: &ServerHello| (hello.major, hello.minor, hello.patch, hello.revision);
        match hello.revision == revision::NEWEST {
            true => *known = Some(upstream.hello.clone()),
            // An older client was told less; but another server is to introduce itself anew.
            false => *known = known.take().filter(|known| of(known) == of(&upstream.hello)),
        }
        drop(known);
        Ok(upstream)
    }

    /// Connects to the next replica for this purpose. The replica has the client's session, and thus the
    /// connection as long as the session lasts.
    pub(super) async fn dial(&self, purpose: Purpose) -> Result<(Wire, InflightRequest), NotConnected> {
        let mut last = io::Error::other("all replicas are drained");
        for replica in self.replicas.order(purpose) {
            let connecting = async { self.dialer(replica)?.connect().await };
            match tokio::time::timeout(self.replicas.patience(self.connect_timeout), connecting).await {
                Ok(Ok(stream)) => {
                    stream.keep_alive();
                    return Ok((Wire::new(stream, SILENCE), InflightRequest::begin(self.replicas.clone(), replica)));
                }
                Ok(Err(error)) => last = error,
                Err(_) => last = io::ErrorKind::TimedOut.into(),
            }
        }
        Err(self.unreachable(last))
    }

    async fn shake_hands(
        &self,
        hello: &ClientHello,
        addendum: &Addendum,
        purpose: Purpose,
    ) -> Result<Upstream, NotConnected> {
        let (mut wire, in_use) = self.dial(purpose).await?;
        let mut out = Vec::with_capacity(256);
        hello.write(&mut out);
        wire.send(&out).await.map_err(|error| self.unreachable(error))?;
        let read = |bytes: &[u8]| {
            let mut input = Input::new(bytes);
            match input.varint()? {
                server::HELLO => ServerHello::read(&mut input, hello.revision).map(|hello| (Ok(hello), input.at())),
                server::EXCEPTION => {
                    let packet = read_server_packet(bytes, hello.revision, false)?;
                    Ok((Err(bytes[..packet.bytes].to_vec()), packet.bytes))
                }
                _ => Err(Fault::Malformed("no answer to a Hello")),
            }
        };
        let answer = wire.parse(0, read).await.map_err(|error| self.unreachable(error))?;
        let (answer, length) = answer.map_err(|fault| self.unreachable(format!("{fault:?}")))?;
        wire.consume(length);
        let answer = answer.map_err(NotConnected::Refused)?;
        let mut out = Vec::new();
        let addendum = Addendum { chunked: answer.chunked, ..addendum.clone() };
        addendum.write(&mut out, answer.revision.min(hello.revision));
        wire.send(&out).await.map_err(|error| self.unreachable(error))?;
        if answer.chunked.from_client {
            wire.write_chunks();
        }
        if answer.chunked.from_server {
            wire.read_chunks().map_err(|fault| self.unreachable(format!("{fault:?}")))?;
        }
        Ok(Upstream { wire, hello: Arc::new(answer), in_use, tried: None })
    }

    fn unreachable(&self, cause: impl std::fmt::Display) -> NotConnected {
        NotConnected::Unreachable(format!(
            "its native port {} does not answer: {cause} (see the setting `backend_native.address`)",
            self.names()
        ))
    }

    fn names(&self) -> String {
        let names: Vec<String> =
            self.replicas.ids().into_iter().filter_map(|id| Some(self.dialer(id).ok()?.to_string())).collect();
        names.join(", ")
    }
}

/// Databases that clients begin in, and when they were there.
pub(crate) struct KnownDatabases(Recent<UserKey, Instant>);

const MAX_DATABASES: usize = 20_000;
/// Time for which a database that was there is believed to be there.
const DATABASE_TTL: Duration = Duration::from_secs(60);

impl Default for KnownDatabases {
    fn default() -> KnownDatabases {
        KnownDatabases(Recent::new(MAX_DATABASES))
    }
}

/// Checks that a client may begin in its database: the database must be there, and the client may see it.
/// This is asked over HTTP: a ClickHouse 26.7 that runs as a library aborts when it refuses a native client.
pub(super) async fn knows_database(state: &State, key: &UserKey) -> Result<(), Refusal> {
    let is_young = |asked: Instant| asked.elapsed() < DATABASE_TTL;
    if key.database.is_none() {
        return Ok(());
    }
    if state.known_databases.0.get(key).is_some_and(is_young) {
        return Ok(());
    }
    match state.backend.find_database(key, HANDSHAKE_TIMEOUT).await {
        Ok(()) => state.known_databases.0.put(key.clone(), Instant::now()),
        Err(CallError::Exception(exception)) => return Err(Refusal::exception(exception)),
        // What is known of the user holds while the backend is away.
        Err(_) => {}
    }
    Ok(())
}
