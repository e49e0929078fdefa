//! The state of a replica, as its pings and its refusals show it.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::{Purpose, ReplicaId, Replicas};
use crate::exception::{ErrorCode, Exception};

/// Time after which a replica that does not answer is gone: its answers are lost, or as good as lost, and
/// nobody waits for them.
pub(super) const GONE_AFTER: Duration = Duration::from_secs(5);
/// Time for which a replica gets no inserts into a table after it has refused one as read-only. It doubles each time.
const FIRST_READ_ONLY: Duration = Duration::from_secs(1);
const LONGEST_READ_ONLY: Duration = Duration::from_secs(30);
/// Time for which a replica with too much to do is passed over.
const BUSY: Duration = Duration::from_secs(1);

/// The most tables that a replica is known to refuse inserts into. When there are more, all are forgotten.
const MAX_READ_ONLY: usize = 20_000;

/// State of a replica, for people to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplicaHealth {
    /// Address of the replica, without the account.
    pub address: String,
    pub is_up: bool,
    pub is_drained: bool,
    /// Count of tables that are passed over because the replica refused an insert into them as read-only.
    pub read_only_tables: usize,
    /// Time of the last ping that was answered.
    pub ping: Option<Duration>,
    /// Count of requests under way.
    pub requests: usize,
    /// The error of the last ping or request, while the replica is down.
    pub error: Option<String>,
}

#[derive(Default)]
pub(super) struct Health {
    /// Time since when the replica has not answered, and the error.
    pub(super) down: Option<(Instant, String)>,
    pub(super) is_gone: bool,
    /// Says whether a task pings the replica.
    pub(super) is_watched: bool,
    pub(super) is_drained: bool,
    pub(super) ping: Option<Duration>,
    busy_until: Option<Instant>,
    read_only: HashMap<u64, ReadOnly>,
}

/// Time for which a table is not written to.
struct ReadOnly {
    until: Instant,
    length: Duration,
}

impl Health {
    pub(super) fn is_busy(&self, now: Instant) -> bool {
        self.busy_until.is_some_and(|until| now < until)
    }

    pub(super) fn is_read_only(&self, purpose: Purpose, now: Instant) -> bool {
        let read_only = purpose.table().and_then(|table| self.read_only.get(&table));
        read_only.is_some_and(|read_only| now < read_only.until)
    }

    fn note_read_only(&mut self, table: u64, now: Instant) {
        if self.read_only.len() >= MAX_READ_ONLY {
            self.read_only.clear();
        }
        let length = match self.read_only.get(&table) {
            // Several batches were refused at once.
            Some(before) if now < before.until => return,
            Some(before) if now < before.until + LONGEST_READ_ONLY => (before.length * 2).min(LONGEST_READ_ONLY),
            _ => FIRST_READ_ONLY,
        };
        self.read_only.insert(table, ReadOnly { until: now + length, length });
    }
}

impl Replicas {
    /// Notes that a replica can't be connected to, or has not answered. Others are asked before it until it
    /// answers a ping.
    pub(crate) fn failed(&self, id: ReplicaId, error: &io::Error) {
        if self.are_several() {
            self.note_down(id, error);
        }
    }

    pub(super) fn note_down(&self, id: ReplicaId, error: &io::Error) {
        let replica = self.replica(id);
        let mut health = replica.lock();
        let (since, why) = health.down.get_or_insert_with(|| {
            tracing::warn!(replica = %replica.endpoint, %error, "a replica does not answer: others are asked");
            (Instant::now(), String::new())
        });
        *why = error.to_string();
        if since.elapsed() >= GONE_AFTER {
            health.is_gone = true;
            drop(health);
            replica.gone.notify_waiters();
        }
    }

    pub(super) fn note_up(&self, id: ReplicaId, ping: Duration) {
        let replica = self.replica(id);
        let mut health = replica.lock();
        health.ping = Some(ping);
        health.is_gone = false;
        if let Some((since, _)) = health.down.take() {
            let seconds = since.elapsed().as_secs_f32();
            tracing::info!(replica = %replica.endpoint, seconds, "a replica answers again");
        }
    }

    /// Notes what a refusal tells about the replica itself, not about the rows: another replica may take these.
    pub fn refused(&self, id: ReplicaId, purpose: Purpose, exception: &Exception) {
        if !self.are_several() || !says_something_of_a_server(exception) {
            return;
        }
        let now = Instant::now();
        let mut health = self.replica(id).lock();
        match (exception.code, purpose.table()) {
            (code, Some(table)) if is_without_keeper(code) => health.note_read_only(table, now),
            // Not of one user alone: others are no worse off.
            (ErrorCode::TOO_MANY_SIMULTANEOUS_QUERIES, _)
                if exception.line.contains("Too many simultaneous queries. ") =>
            {
                health.busy_until = Some(now + BUSY);
            }
            _ => {}
        }
    }

    /// Notes that the replica has done what it was asked for: the table of an insert is not read-only.
    pub fn did(&self, id: ReplicaId, purpose: Purpose) {
        if let (Purpose::Insert { table } | Purpose::Forwarded { table }, true) = (purpose, self.are_several()) {
            self.replica(id).lock().read_only.remove(&table);
        }
    }

    pub fn health(&self) -> Vec<ReplicaHealth> {
        let now = Instant::now();
        let health = |id: ReplicaId| {
            let replica = self.replica(id);
            let health = replica.lock();
            ReplicaHealth {
                address: replica.endpoint.to_string(),
                is_up: health.down.is_none(),
                is_drained: health.is_drained,
                read_only_tables: health.read_only.values().filter(|read_only| now < read_only.until).count(),
                ping: health.ping,
                requests: replica.requests.load(Ordering::Relaxed),
                error: health.down.as_ref().map(|(_, error)| error.clone()),
            }
        };
        self.ids().into_iter().map(health).collect()
    }
}

/// Says whether the error means that the replica's tables can't be written to: it has lost its Keeper, or has
/// not found it yet.
pub(crate) fn is_without_keeper(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::NO_ZOOKEEPER
            | ErrorCode::TABLE_IS_READ_ONLY
            | ErrorCode::NOT_INITIALIZED
            | ErrorCode::KEEPER_EXCEPTION
    )
}

/// Says whether the error tells something about the server. It doesn't if another server raised it, or a
/// function that a user called.
fn says_something_of_a_server(exception: &Exception) -> bool {
    !exception.is_of_another_server() && !exception.line.contains("while executing 'FUNCTION")
}
