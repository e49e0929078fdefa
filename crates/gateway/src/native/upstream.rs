//! Native connections to the backend: one for each client that needs one.

use std::io;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use windrow_clickhouse::{Credentials, Dialer};
use windrow_native::{read_server_packet, revision, server, Addendum, ClientHello, Fault, Input, ServerHello};

use super::wire::Wire;
use crate::backend::ClickHouse;

/// How long the backend may take to answer a Hello, connecting included.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the backend may be silent while a statement runs there. The client's own patience is shorter, or endless.
const SILENCE: Duration = Duration::from_secs(24 * 3600);

/// The backend's native port.
pub struct NativeBackend {
    dialer: Dialer,
    connect_timeout: Duration,
    /// As it introduced itself last.
    known: RwLock<Option<Arc<ServerHello>>>,
}

/// Why there is no connection to the backend.
#[derive(Debug)]
pub(super) enum NotConnected {
    Unreachable(String),
    /// It refuses this client: a packet that is the client's to read.
    Refused(Vec<u8>),
}

/// A connection on which the backend knows the client.
pub(super) struct Upstream {
    pub(super) wire: Wire,
    pub(super) hello: Arc<ServerHello>,
}

impl ClickHouse {
    pub(super) fn native(&self) -> Result<&NativeBackend, NotConnected> {
        self.native.as_deref().ok_or_else(|| NotConnected::Unreachable("its native port is not known".to_owned()))
    }
}

impl NativeBackend {
    pub fn new(dialer: Dialer, connect_timeout: Duration) -> NativeBackend {
        NativeBackend { dialer, connect_timeout, known: RwLock::default() }
    }

    /// What the backend says of itself: what it said last, or it is asked with the gateway's own account.
    pub(super) async fn introduction(&self, own: &Credentials) -> Result<Arc<ServerHello>, NotConnected> {
        if let Some(known) = self.known.read().unwrap_or_else(PoisonError::into_inner).clone() {
            return Ok(known);
        }
        let hello = ClientHello {
            name: "Windrow".to_owned(),
            revision: revision::NEWEST,
            user: own.user.clone(),
            password: own.password.clone(),
            ..ClientHello::default()
        };
        Ok(self.connect(&hello).await?.hello)
    }

    /// As the client that says `hello`.
    pub(super) async fn connect(&self, hello: &ClientHello) -> Result<Upstream, NotConnected> {
        let connected = tokio::time::timeout(HANDSHAKE_TIMEOUT, self.shake_hands(hello)).await;
        let silent = || Err(self.unreachable("it has not answered in time"));
        let upstream = connected.unwrap_or_else(|_| silent())?;
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = Some(upstream.hello.clone());
        Ok(upstream)
    }

    pub(super) async fn dial(&self) -> Result<Wire, NotConnected> {
        let stream = tokio::time::timeout(self.connect_timeout, self.dialer.connect()).await;
        let stream = stream.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
        Ok(Wire::new(stream.map_err(|error| self.unreachable(error))?, SILENCE))
    }

    async fn shake_hands(&self, hello: &ClientHello) -> Result<Upstream, NotConnected> {
        let mut wire = self.dial().await?;
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
        Ok(Upstream { wire, hello: Arc::new(answer.map_err(NotConnected::Refused)?) })
    }

    fn unreachable(&self, cause: impl std::fmt::Display) -> NotConnected {
        NotConnected::Unreachable(format!(
            "its native port {} does not answer: {cause} (see the setting `backend_native.address`)",
            self.dialer
        ))
    }
}

impl Upstream {
    /// What the client says once it knows the server's revision.
    pub(super) async fn send_addendum(&mut self, addendum: &Addendum, revision: u64) -> io::Result<()> {
        let mut out = Vec::new();
        addendum.write(&mut out, revision);
        match out.is_empty() {
            true => Ok(()),
            false => self.wire.send(&out).await,
        }
    }
}
