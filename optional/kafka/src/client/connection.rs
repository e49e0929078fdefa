//! One connection to a broker, for any number of callers at once.
//!
//! One task writes the requests, another reads the answers, so that a caller who gives up in the middle
//! leaves no half frame behind. The first failure, a request that isn't answered in time included, ends the
//! connection for all. Every caller that waits gets the reason.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use crate::client::frame_pool::FramePool;
use crate::client::frames::read_frame;
use crate::client::pending::Pending;
use crate::error::Error;
use crate::wire::{self, ApiVersionsResponse, Request};

/// Number of requests that can wait to be written. Callers with more have to wait.
const MAX_UNWRITTEN_REQUESTS: usize = 64;
/// The longest pause that a broker is given when it asks for one. The broker enforces longer ones itself.
const MAX_THROTTLE: Duration = Duration::from_secs(30);
/// Bytes of the read buffer, so that a small answer is read with one system call.
const READ_BUFFER_BYTES: usize = 8 << 10;

/// A connection. Cloning is cheap; the last clone to be dropped closes it.
#[derive(Clone)]
pub struct Connection {
    inner: Arc<Inner>,
}

struct Inner {
    settings: ConnectionSettings,
    versions: Mutex<Option<Arc<ApiVersionsResponse>>>,
    requests: mpsc::Sender<Vec<u8>>,
    pending: Arc<Pending>,
    quiet_until: Mutex<Option<Instant>>,
    /// Time from which a new connection, with a new authentication, should be made.
    expires_at: Mutex<Option<Instant>>,
    reading: AbortHandle,
}

#[derive(Debug, Clone)]
pub(crate) struct ConnectionSettings {
    /// Name of the broker in errors.
    pub broker: String,
    pub client_id: String,
    pub request_timeout_ms: u64,
    pub max_answer_bytes: usize,
    pub pool: Arc<FramePool>,
}

impl Connection {
    pub(crate) fn start<R, W>(settings: ConnectionSettings, reader: R, writer: W) -> Self
    where
        R: AsyncRead + Unpin + Send + 'static,
        W: AsyncWrite + Unpin + Send + 'static,
    {
        let pending = Arc::new(Pending::default());
        let (requests, to_write) = mpsc::channel(MAX_UNWRITTEN_REQUESTS);
        tokio::spawn(write_requests(writer, to_write, pending.clone(), settings.broker.clone()));
        let reading = read_answers(reader, pending.clone(), settings.clone());
        let reading = tokio::spawn(reading).abort_handle();
        let inner = Inner {
            settings,
            versions: Mutex::default(),
            requests,
            pending,
            quiet_until: Mutex::default(),
            expires_at: Mutex::default(),
            reading,
        };
        Self { inner: Arc::new(inner) }
    }

    /// Sends a request and waits for its answer. Error codes inside the answer are left to the caller.
    ///
    /// # Errors
    /// Fails where both sides share no version of the request, or the connection breaks, times out, or brings
    /// an answer that can't be read.
    pub async fn call<R: Request>(&self, request: &R) -> Result<R::Response, Error> {
        let version = self.version_of(request)?;
        self.call_version(request, version).await
    }

    /// Says whether the connection is closed, so that no request can be sent any more.
    pub fn is_closed(&self) -> bool {
        self.inner.pending.is_closed()
    }

    /// Says whether the authentication ends soon: the connection still works, but the next requests need a new one.
    pub(crate) fn is_expired(&self) -> bool {
        lock(&self.inner.expires_at).is_some_and(|at| at <= Instant::now())
    }

    pub(crate) fn set_expiry(&self, at: Instant) {
        *lock(&self.inner.expires_at) = Some(at);
    }

    pub(crate) fn set_versions(&self, versions: ApiVersionsResponse) {
        *lock(&self.inner.versions) = Some(Arc::new(versions));
    }

    fn version_of<R: Request>(&self, request: &R) -> Result<i16, Error> {
        let versions = lock(&self.inner.versions).clone();
        versions.and_then(|versions| versions.common(&R::API, request.newest_version())).ok_or_else(|| {
            Error::Unsupported {
                broker: self.inner.settings.broker.clone(),
                what: format!("no version of {} is known to both sides; Kafka 2.4 to 4.1 are spoken", R::API.name),
            }
        })
    }

    pub(crate) async fn call_version<R: Request>(&self, request: &R, version: i16) -> Result<R::Response, Error> {
        let timeout_ms = self.inner.settings.request_timeout_ms.saturating_add(request.wait_ms());
        let exchange = self.exchange(request, version);
        match tokio::time::timeout(Duration::from_millis(timeout_ms), exchange).await {
            Ok(outcome) => outcome,
            Err(_) => Err(self.give_up(R::API.name, Duration::from_millis(timeout_ms))),
        }
    }

    /// Closes the connection of a caller that has waited too long: a stuck request holds up all that come after it.
    pub(crate) fn give_up(&self, doing: &str, after: Duration) -> Error {
        let (broker, doing) = (self.inner.settings.broker.clone(), doing.to_owned());
        let error = Error::Timeout { broker, doing, after_ms: after.as_millis() as u64 };
        self.close(error.clone());
        error
    }

    pub(crate) fn close(&self, error: Error) {
        self.inner.pending.close(error);
        self.inner.reading.abort();
    }

    async fn exchange<R: Request>(&self, request: &R, version: i16) -> Result<R::Response, Error> {
        self.wait_until_welcome().await;
        let ticket = self.inner.pending.enter()?;
        let frame = wire::encode(request, version, ticket.id, &self.inner.settings.client_id);
        let gone = || self.broken("the connection is closed");
        // When the writing task is gone, it has told the ticket why.
        let _ = self.inner.requests.send(frame).await;
        let answer = ticket.answer.await.map_err(|_| gone())??;
        let answer = wire::decode::<R>(&answer, version).map_err(|what| {
            let error = Error::Malformed { broker: self.inner.settings.broker.clone(), api: R::API.name, what };
            self.close(error.clone());
            error
        })?;
        self.heed_throttle(answer.throttle_time_ms);
        Ok(answer.response)
    }

    fn broken(&self, reason: &str) -> Error {
        broken(&self.inner.settings.broker, "send a request", reason)
    }

    fn heed_throttle(&self, throttle_time_ms: i32) {
        if let Some(wanted_ms) = u64::try_from(throttle_time_ms).ok().filter(|wanted_ms| *wanted_ms > 0) {
            let quiet = Duration::from_millis(wanted_ms).min(MAX_THROTTLE);
            *lock(&self.inner.quiet_until) = Some(Instant::now() + quiet);
        }
    }

    async fn wait_until_welcome(&self) {
        let until = *lock(&self.inner.quiet_until);
        if let Some(until) = until {
            tokio::time::sleep_until(until.into()).await;
        }
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Connection({})", self.inner.settings.broker)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.reading.abort();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn broken(broker: &str, doing: &str, reason: impl fmt::Display) -> Error {
    Error::Network { broker: broker.to_owned(), doing: doing.to_owned(), reason: reason.to_string() }
}

async fn write_requests(
    mut writer: impl AsyncWrite + Unpin,
    mut requests: mpsc::Receiver<Vec<u8>>,
    pending: Arc<Pending>,
    broker: String,
) {
    while let Some(frame) = requests.recv().await {
        let written = async {
            writer.write_all(&frame).await?;
            writer.flush().await
        };
        if let Err(error) = written.await {
            pending.close(broken(&broker, "send a request", error));
            return;
        }
    }
    // Nobody is left who could ask; that the other side doesn't hear of it is no loss.
    let _ = writer.shutdown().await;
}

async fn read_answers(reader: impl AsyncRead + Unpin, pending: Arc<Pending>, settings: ConnectionSettings) {
    let ConnectionSettings { broker, max_answer_bytes, pool, .. } = settings;
    let mut reader = BufReader::with_capacity(READ_BUFFER_BYTES, reader);
    let reason = loop {
        let frame = match read_frame(&mut reader, max_answer_bytes, &pool).await {
            Ok(Some(frame)) => frame,
            Ok(None) => break "it closed the connection".to_owned(),
            Err(error) => break error.to_string(),
        };
        let known = wire::correlation_id(&frame).is_some_and(|id| pending.answer(id, frame));
        if !known {
            break "an answer to nothing that was asked".to_owned();
        }
    };
    pending.close(broken(&broker, "read an answer", reason));
}
