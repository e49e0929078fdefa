//! The pings, and who waits for a replica that is gone.

use std::future::Future;
use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use windrow_http::{ClientConnection, ClientError};

use super::{ReplicaId, Replicas};

/// From one ping of a replica to the next.
const PING_INTERVAL: Duration = Duration::from_millis(250);
/// How long a ping may take.
const PING_TIMEOUT: Duration = Duration::from_millis(500);
/// It says `Ok.`.
const MAX_PONG_BYTES: usize = 4096;

impl Replicas {
    /// Pings each of several replicas now and then, as long as somebody has them. Once more, when others were named: then
    /// these are pinged too.
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

    /// Whether a replica is not pinged any more: it is not named, nobody waits for it, and no table is there alone.
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

    /// Ends when this replica is gone. Never, if it is the only one.
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

/// Knows whether a replica is there still.
pub(crate) struct There {
    /// `None`: it is waited for, wherever it is.
    pub(crate) of: Option<(Arc<Replicas>, ReplicaId)>,
}

impl There {
    /// Waits for an answer as long as its replica is there. `None`: it has not been heard of for so long that whoever
    /// waits had better look elsewhere. A server alone is waited for, since there is nowhere else to look.
    pub(crate) async fn wait_for<T>(&self, answer: impl Future<Output = T>) -> Option<T> {
        let Some((replicas, replica)) = &self.of else { return Some(answer.await) };
        tokio::select! {
            biased;
            answer = answer => Some(answer),
            () = replicas.wait_until_gone(*replica) => None,
        }
    }
}
