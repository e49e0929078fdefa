//! Pings of replicas, and the wait for an answer of a replica that may be gone.

use std::future::Future;
use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use windrow_http::{ClientConnection, ClientError};

use super::{ReplicaId, Replicas};

/// Pause between two pings of a replica.
const PING_INTERVAL: Duration = Duration::from_millis(250);
/// Time limit of a ping.
const PING_TIMEOUT: Duration = Duration::from_millis(500);
/// The most bytes of an answer to a ping, which says `Ok.`.
const MAX_PONG_BYTES: usize = 4096;

impl Replicas {
    /// Pings each of several replicas again and again, as long as the list of replicas exists. It is called
    /// again when other replicas were named, to ping these too.
    pub fn watch(self: &Arc<Self>) {
        if !self.are_several() {
            return;
        }
        for id in self.ids() {
            if !std::mem::replace(&mut self.replica(id).lock().is_watched, true) {
                tokio::spawn(watch(Arc::downgrade(self), id));
            }
        }
    }

    /// Says whether a replica is not pinged any more: it is not named, no request on it is under way, and it
    /// is not the first, which alone may have some tables.
    fn is_let_go(&self, id: ReplicaId) -> bool {
        let replica = self.replica(id);
        let mut health = replica.lock();
        let is_let_go =
            self.first.get() != Some(&id) && !self.is_named(id) && replica.requests.load(Ordering::Relaxed) == 0;
        health.is_watched &= !is_let_go;
        is_let_go
    }

    async fn ping(&self, id: ReplicaId) -> io::Result<()> {
        let replica = self.replica(id);
        let mut connection = ClientConnection::new(replica.dialer.connect().await?);
        let authority = replica.endpoint.authority();
        let request = format!("GET /ping HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n\r\n");
        connection.send(request.as_bytes(), PING_TIMEOUT).await?;
        let lost = |error: ClientError| io::Error::other(error.to_string());
        let head = connection.read_head(false, PING_TIMEOUT).await.map_err(lost)?;
        // Read to its end: a server reports a connection that is reset while it writes.
        let pong = connection.body(&head).collect(MAX_PONG_BYTES, PING_TIMEOUT).await.map_err(lost)?;
        match (head.status(), pong.trim_ascii()) {
            (200, b"Ok.") => Ok(()),
            (200, _) => Err(io::Error::other("it does not answer a ping as ClickHouse does")),
            (status, _) => Err(io::Error::other(format!("it answers a ping with status {status}"))),
        }
    }

    /// Ends when this replica is gone. It never ends if there is only one replica.
    pub(super) async fn wait_until_gone(&self, id: ReplicaId) {
        if !self.are_several() {
            return std::future::pending().await;
        }
        let replica = self.replica(id);
        let mut gone = std::pin::pin!(replica.gone.notified());
        // Registered before the look, so that the news in between is not missed.
        gone.as_mut().enable();
        if !replica.lock().is_gone {
            gone.await;
        }
    }
}

async fn watch(replicas: Weak<Replicas>, id: ReplicaId) {
    while let Some(replicas) = replicas.upgrade() {
        if replicas.is_let_go(id) {
            return;
        }
        let began = Instant::now();
        match tokio::time::timeout(PING_TIMEOUT, replicas.ping(id)).await {
            Ok(Ok(())) => replicas.note_up(id, began.elapsed()),
            Ok(Err(error)) => replicas.note_down(id, &error),
            Err(_) => replicas.note_down(id, &io::ErrorKind::TimedOut.into()),
        }
        drop(replicas);
        tokio::time::sleep(PING_INTERVAL).await;
    }
}

/// A watch on a replica, which tells when it is gone.
pub(crate) struct ReplicaWatch {
    /// The replica. `None`: an answer is waited for, even if the replica is gone.
    pub(crate) of: Option<(Arc<Replicas>, ReplicaId)>,
}

impl ReplicaWatch {
    /// Waits for an answer as long as its replica is there. Returns `None` where the replica has not answered
    /// for so long that the request had better go elsewhere. A single server is always waited for, since
    /// there is nowhere else to go.
    pub(crate) async fn wait_for<T>(&self, answer: impl Future<Output = T>) -> Option<T> {
        let Some((replicas, replica)) = &self.of else { return Some(answer.await) };
        tokio::select! {
            biased;
            answer = answer => Some(answer),
            () = replicas.wait_until_gone(*replica) => None,
        }
    }
}
