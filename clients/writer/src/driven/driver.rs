//! The driver: sends the batches that the core gives, when the core gives them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use windrow_clickhouse::{Call, CallError, Client, Purpose};

use crate::failure::Failure;
use crate::gathering::{Gathering, Next, Outgoing};

/// The time for which the server may be silent while it writes a batch.
const STORE_TIMEOUT: Duration = Duration::from_secs(300);

/// The largest batch that is sent without settings that make it one block. A part of a larger batch might be
/// stored, and the rest not: ClickHouse cuts at a million rows, or 256 MiB in its memory.
const BLOCK_ROWS: usize = 100_000;
const BLOCK_BYTES: usize = 32 << 20;

pub(super) struct Driver {
    pub(super) gathering: Arc<Gathering>,
    pub(super) client: Arc<Client>,
    pub(super) settings: Vec<(String, String)>,
    pub(super) woken: Arc<Notify>,
    pub(super) started: Instant,
}

impl Driver {
    /// Sends batches until the writer is closed and drained.
    pub(super) async fn run(self: Arc<Driver>) {
        let mut sends = JoinSet::new();
        loop {
            match self.next().await {
                Next::Send(outgoing) => drop(sends.spawn(self.clone().send(outgoing))),
                Next::Wait { until_ms } => {
                    tokio::select! {
                        () = self.woken.notified() => {}
                        () = self.sleep_until(until_ms) => {}
                        Some(_) = sends.join_next() => {}
                    }
                }
                Next::Drained => return,
            }
        }
    }

    fn now_ms(&self) -> u64 {
        self.started.elapsed().as_millis() as u64
    }

    async fn sleep_until(&self, until_ms: Option<u64>) {
        match until_ms {
            Some(until_ms) => tokio::time::sleep_until((self.started + Duration::from_millis(until_ms)).into()).await,
            None => std::future::pending().await,
        }
    }

    async fn next(self: &Arc<Driver>) -> Next {
        let driver = self.clone();
        self.off_the_loop(move || driver.gathering.next(driver.now_ms())).await.unwrap_or(Next::Wait { until_ms: None })
    }

    /// Runs `act` on a thread that may block if the buffer survives, since it may read and write files then.
    /// Returns `None` when the runtime is ending.
    async fn off_the_loop<T: Send + 'static>(&self, act: impl FnOnce() -> T + Send + 'static) -> Option<T> {
        match self.gathering.buffer().survives() {
            true => tokio::task::spawn_blocking(act).await.ok(),
            false => Some(act()),
        }
    }

    async fn send(self: Arc<Driver>, outgoing: Outgoing) {
        let id = outgoing.id;
        let failure = self.attempt(&outgoing).await.err();
        drop(outgoing);
        let driver = self.clone();
        self.off_the_loop(move || match failure {
            None => driver.gathering.stored(id),
            Some(failure) => driver.gathering.failed(id, failure, driver.now_ms()),
        })
        .await;
    }

    async fn attempt(&self, outgoing: &Outgoing) -> Result<(), Failure> {
        let destination = &outgoing.destination;
        let body = [Bytes::from(destination.header()), outgoing.body.bytes()];
        let statement = destination.insert_statement();
        let mut call = Call::new(&self.client.endpoint().credentials, &statement)
            .param("async_insert", "0")
            .param("insert_deduplication_token", &outgoing.id.to_string())
            .timeout(STORE_TIMEOUT)
            .purpose(Purpose::Statement)
            .body(&body);
        if outgoing.body.count() > BLOCK_ROWS || body[1].len() > BLOCK_BYTES {
            let rows = outgoing.body.count().to_string();
            call = call.param("max_insert_block_size", &rows).param("min_insert_block_size_rows", &rows);
            call = call.param("min_insert_block_size_bytes", "0");
        }
        for (name, value) in &self.settings {
            call = call.param(name, value);
        }
        match self.client.call(call).await {
            Ok(_) => Ok(()),
            Err(CallError::Exception(exception)) => Err(Failure::of_exception(&exception)),
            Err(error) => Err(Failure::passing(error.to_string())),
        }
    }
}
