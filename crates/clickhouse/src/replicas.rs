//! The servers of one ClickHouse, replicas of each other: which of them are there, and which is asked next.
//!
//! A replica is passed over while it can't be connected to, does not answer its pings, or is drained; for a moment when
//! it says that it has too much to do; and for inserts into a table while it says that this table is read-only. When
//! all are passed over, all but those that are drained are tried all the same.
//!
//! Nothing here repeats a request. What may have been executed is the caller's to decide.

use std::collections::HashMap;
use std::future::Future;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use windrow_http::{ClientConnection, ClientError, Stream};

use crate::dial::Dialer;
use crate::endpoint::Endpoint;
use crate::exception::Exception;
use crate::pool::{ClientOptions, ConnectError};
use crate::tls::TlsError;

/// From one ping of a replica to the next.
const PING_INTERVAL: Duration = Duration::from_millis(250);
/// How long a ping may take, and a connection to one of several replicas.
const PING_TIMEOUT: Duration = Duration::from_millis(500);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// Who has not answered for so long is not waited for any more: its answers are lost, or as good as lost.
const GONE_AFTER: Duration = Duration::from_secs(5);
/// How long a replica gets no inserts into a table that it has refused one into as read-only; twice as long each time.
const FIRST_READ_ONLY: Duration = Duration::from_secs(1);
const LONGEST_READ_ONLY: Duration = Duration::from_secs(30);
/// How long a replica is passed over that has too much to do.
const BUSY: Duration = Duration::from_secs(1);
/// Replicas whose pings take less than twice as long are equally near, and so are all below this.
const NEAR: Duration = Duration::from_micros(500);

/// Tables that a replica is known to refuse inserts into: more are forgotten.
const MAX_READ_ONLY: usize = 20_000;

const TOO_MANY_SIMULTANEOUS_QUERIES: i32 = 202;
const NO_ZOOKEEPER: i32 = 225;
const TABLE_IS_READ_ONLY: i32 = 242;
const NOT_INITIALIZED: i32 = 667;
const KEEPER_EXCEPTION: i32 = 999;

/// Which replica is asked, of those that are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// The first in the list.
    InOrder,
    /// The one whose pings are fastest.
    Nearest,
    /// Each in its turn.
    RoundRobin,
    /// The one that has the fewest requests of ours.
    LeastLoaded,
}

/// What a connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// One's own question. It goes to the first in the list that is there, whatever is chosen for others: answers
    /// should agree with each other.
    Question,
    /// A client's statement.
    Statement,
    /// What is better done where others of its kind were: like a question, to the first.
    InOrder,
    /// A client's statement in a session that this replica has.
    InSession(ReplicaId),
    /// Rows for a table, by a hash of its name.
    Insert { table: u64 },
    /// A client's own insert. In order, since the table may be one of the first replica alone.
    Forwarded { table: u64 },
    /// Whether rows for a table would be taken. It does nothing, and may be asked twice.
    Probe { table: u64 },
    /// What only this replica can do.
    Only(ReplicaId),
}

impl Purpose {
    pub fn insert_into(database: &str, table: &str) -> Purpose {
        Purpose::Insert { table: hash_of(database, table) }
    }

    pub fn forwarded_into(database: &str, table: &str) -> Purpose {
        Purpose::Forwarded { table: hash_of(database, table) }
    }

    pub fn probe_of(database: &str, table: &str) -> Purpose {
        Purpose::Probe { table: hash_of(database, table) }
    }

    /// Whether it does nothing, so that whoever has got no answer may ask another replica.
    pub(crate) fn may_be_repeated(self) -> bool {
        matches!(self, Purpose::Question | Purpose::Probe { .. })
    }

    fn table(self) -> Option<u64> {
        match self {
            Purpose::Insert { table } | Purpose::Forwarded { table } | Purpose::Probe { table } => Some(table),
            _ => None,
        }
    }
}

fn hash_of(database: &str, table: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (database, table).hash(&mut hasher);
    hasher.finish()
}

/// A replica's place in the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ReplicaId(u16);

impl ReplicaId {
    pub const FIRST: ReplicaId = ReplicaId(0);

    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// How a replica does, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplicaHealth {
    /// Its address, without the account.
    pub address: String,
    pub is_up: bool,
    pub is_drained: bool,
    /// How many tables it has refused an insert into lately because they are read-only.
    pub read_only_tables: usize,
    /// Of the last ping that was answered.
    pub ping: Option<Duration>,
    /// Requests under way.
    pub requests: usize,
    /// Why it is not up.
    pub error: Option<String>,
}

pub struct Replicas {
    list: Vec<Replica>,
    choice: Choice,
    turn: AtomicUsize,
    draining: Mutex<()>,
}

struct Replica {
    endpoint: Endpoint,
    dialer: Dialer,
    requests: AtomicUsize,
    health: Mutex<Health>,
    /// It has not been heard of for a long time.
    gone: Notify,
}

#[derive(Default)]
struct Health {
    /// Since when it has not answered, and why.
    down: Option<(Instant, String)>,
    is_gone: bool,
    is_drained: bool,
    ping: Option<Duration>,
    busy_until: Option<Instant>,
    read_only: HashMap<u64, ReadOnly>,
}

/// A table that is not to be written to.
struct ReadOnly {
    until: Instant,
    length: Duration,
}

impl Health {
    fn is_busy(&self, now: Instant) -> bool {
        self.busy_until.is_some_and(|until| now < until)
    }

    fn is_read_only(&self, purpose: Purpose, now: Instant) -> bool {
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

impl Replica {
    fn lock(&self) -> MutexGuard<'_, Health> {
        self.health.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Smaller is nearer.
    fn distance(health: &Health) -> u32 {
        health
            .ping
            .map_or(u32::MAX, |ping| (ping.as_micros() / NEAR.as_micros()).checked_ilog2().map_or(0, |log| log + 1))
    }
}

impl Replicas {
    /// There has to be at least one. Whoever has several should [`watch`](Self::watch) them.
    pub fn new(endpoints: Vec<Endpoint>, choice: Choice, options: &ClientOptions) -> Result<Replicas, TlsError> {
        let replica = |endpoint: Endpoint| {
            let dialer = Dialer::to(&endpoint, options)?;
            let (requests, health, gone) = (AtomicUsize::new(0), Mutex::default(), Notify::new());
            Ok(Replica { endpoint, dialer, requests, health, gone })
        };
        let list = endpoints.into_iter().map(replica).collect::<Result<Vec<_>, TlsError>>()?;
        assert!(!list.is_empty(), "a ClickHouse has a server");
        Ok(Replicas { list, choice, turn: AtomicUsize::new(0), draining: Mutex::default() })
    }

    pub fn ids(&self) -> impl Iterator<Item = ReplicaId> {
        (0..self.list.len()).map(|index| ReplicaId(index as u16))
    }

    pub fn are_several(&self) -> bool {
        self.list.len() > 1
    }

    pub fn endpoint(&self, id: ReplicaId) -> &Endpoint {
        &self.list[id.index()].endpoint
    }

    /// The replica at this address.
    pub fn at(&self, address: &str) -> Option<ReplicaId> {
        let is_meant =
            |named: &str| named == address || named.split_once("://").is_some_and(|(_, named)| named == address);
        self.ids().find(|id| is_meant(&self.endpoint(*id).to_string()))
    }

    /// Whether others of several replicas answer in place of the first.
    pub fn is_first_passed_over(&self) -> bool {
        let health = self.list[ReplicaId::FIRST.index()].lock();
        self.are_several() && (health.is_drained || health.down.is_some())
    }

    /// The ones to be tried, the best first. Empty: all that could do it are drained.
    pub fn order(&self, purpose: Purpose) -> Vec<ReplicaId> {
        if !self.are_several() {
            return vec![ReplicaId::FIRST];
        }
        let now = Instant::now();
        let turn = match (purpose, self.choice) {
            (Purpose::Statement | Purpose::Insert { .. }, Choice::RoundRobin) => {
                self.turn.fetch_add(1, Ordering::Relaxed)
            }
            _ => 0,
        };
        let rank = |id: ReplicaId| {
            let replica = &self.list[id.index()];
            let health = replica.lock();
            let is_passed_over = (health.down.is_some(), health.is_read_only(purpose, now), health.is_busy(now));
            let chosen = match (purpose, self.choice) {
                (Purpose::Statement | Purpose::Insert { .. }, Choice::Nearest) => Replica::distance(&health) as usize,
                (Purpose::Statement | Purpose::Insert { .. }, Choice::RoundRobin) => {
                    (id.index() + self.list.len() - turn % self.list.len()) % self.list.len()
                }
                (Purpose::Statement | Purpose::Insert { .. }, Choice::LeastLoaded) => {
                    replica.requests.load(Ordering::Relaxed)
                }
                _ => 0,
            };
            (is_passed_over, chosen)
        };
        let is_possible = |id: &ReplicaId| match purpose {
            // It has begun before the replica was drained.
            Purpose::InSession(there) => there == *id,
            Purpose::Only(only) if only != *id => false,
            _ => !self.list[id.index()].lock().is_drained,
        };
        let mut order: Vec<_> = self.ids().filter(is_possible).map(|id| (rank(id), id)).collect();
        order.sort_unstable();
        order.into_iter().map(|(_, id)| id).collect()
    }

    pub(crate) fn all_drained(&self, purpose: Purpose) -> ConnectError {
        let cause = io::Error::other("drained: `windrow drain --undo` gives it work again");
        ConnectError { endpoint: self.names(purpose), cause }
    }

    /// Of all that could serve the purpose.
    pub(crate) fn names(&self, purpose: Purpose) -> String {
        match purpose {
            Purpose::Only(id) | Purpose::InSession(id) => self.endpoint(id).to_string(),
            _ => self.to_string(),
        }
    }

    pub(crate) async fn connect(&self, id: ReplicaId) -> io::Result<Stream> {
        let connecting = tokio::time::timeout(self.patience(Duration::MAX), self.list[id.index()].dialer.connect());
        connecting.await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }

    /// It can't be connected to, or has not answered: others come before it until it answers a ping.
    pub(crate) fn failed(&self, id: ReplicaId, error: &io::Error) {
        if self.are_several() {
            self.note_down(id, error);
        }
    }

    fn note_down(&self, id: ReplicaId, error: &io::Error) {
        let replica = &self.list[id.index()];
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

    fn note_up(&self, id: ReplicaId, ping: Duration) {
        let replica = &self.list[id.index()];
        let mut health = replica.lock();
        health.ping = Some(ping);
        health.is_gone = false;
        if let Some((since, _)) = health.down.take() {
            let seconds = since.elapsed().as_secs_f32();
            tracing::info!(replica = %replica.endpoint, seconds, "a replica answers again");
        }
    }

    /// What a replica's refusal says of itself: not of the rows, which another one may take.
    pub fn refused(&self, id: ReplicaId, purpose: Purpose, exception: &Exception) {
        if !self.are_several() || !says_something_of_a_server(exception) {
            return;
        }
        let now = Instant::now();
        let mut health = self.list[id.index()].lock();
        match (exception.code, purpose.table()) {
            (code, Some(table)) if is_without_keeper(code) => health.note_read_only(table, now),
            // Not of one user alone: others are no worse off.
            (TOO_MANY_SIMULTANEOUS_QUERIES, _) if exception.line.contains("Too many simultaneous queries. ") => {
                health.busy_until = Some(now + BUSY);
            }
            _ => {}
        }
    }

    /// It has done what it was asked.
    pub fn did(&self, id: ReplicaId, purpose: Purpose) {
        if let (Purpose::Insert { table } | Purpose::Forwarded { table }, true) = (purpose, self.are_several()) {
            self.list[id.index()].lock().read_only.remove(&table);
        }
    }

    /// How long one of several replicas may take to be connected to, for whoever is patient for so long.
    pub fn patience(&self, patience: Duration) -> Duration {
        if self.are_several() {
            patience.min(CONNECT_TIMEOUT)
        } else {
            patience
        }
    }

    /// Gives it nothing new, or gives it work again. What it has begun it brings to an end. False: it is the last one, and
    /// stays as it is.
    pub fn drain(&self, id: ReplicaId, is_drained: bool) -> bool {
        // One after the other: two at once could leave none.
        let _alone = self.draining.lock().unwrap_or_else(PoisonError::into_inner);
        let mut others = self.ids().filter(|other| *other != id);
        let is_last = others.all(|other| self.list[other.index()].lock().is_drained);
        if is_drained && is_last {
            return false;
        }
        self.list[id.index()].lock().is_drained = is_drained;
        true
    }

    pub fn health(&self) -> Vec<ReplicaHealth> {
        let now = Instant::now();
        let health = |id: ReplicaId| {
            let replica = &self.list[id.index()];
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
        self.ids().map(health).collect()
    }

    /// Pings each of several replicas now and then, as long as somebody has them.
    pub fn watch(self: &Arc<Self>) {
        if self.are_several() {
            self.ids().for_each(|id| drop(tokio::spawn(watch(Arc::downgrade(self), id))));
        }
    }

    async fn ping(&self, id: ReplicaId) -> io::Result<()> {
        let replica = &self.list[id.index()];
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
    async fn wait_until_gone(&self, id: ReplicaId) {
        if !self.are_several() {
            return std::future::pending().await;
        }
        let replica = &self.list[id.index()];
        let mut gone = std::pin::pin!(replica.gone.notified());
        // Registered before the look, so that the news in between is not missed.
        gone.as_mut().enable();
        if !replica.lock().is_gone {
            gone.await;
        }
    }
}

/// A replica's tables can't be written to: it has lost its Keeper, or has not found it yet.
pub(crate) fn is_without_keeper(code: i32) -> bool {
    matches!(code, NO_ZOOKEEPER | TABLE_IS_READ_ONLY | NOT_INITIALIZED | KEEPER_EXCEPTION)
}

/// Not what another server has said, nor what a user makes it say.
fn says_something_of_a_server(exception: &Exception) -> bool {
    !exception.is_of_another_server() && !exception.line.contains("while executing 'FUNCTION")
}

/// It says `Ok.`.
const MAX_PONG_BYTES: usize = 4096;

async fn watch(replicas: Weak<Replicas>, id: ReplicaId) {
    while let Some(replicas) = replicas.upgrade() {
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

/// All addresses, in their order.
impl std::fmt::Display for Replicas {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (number, replica) in self.list.iter().enumerate() {
            write!(f, "{}{}", if number > 0 { "," } else { "" }, replica.endpoint)?;
        }
        Ok(())
    }
}

/// A request that is under way, counted until it is dropped.
pub struct Use {
    pub(crate) replicas: Arc<Replicas>,
    pub(crate) replica: ReplicaId,
}

impl Use {
    pub fn begin(replicas: Arc<Replicas>, replica: ReplicaId) -> Use {
        replicas.list[replica.index()].requests.fetch_add(1, Ordering::Relaxed);
        Use { replicas, replica }
    }
}

impl Drop for Use {
    fn drop(&mut self) {
        self.replicas.list[self.replica.index()].requests.fetch_sub(1, Ordering::Relaxed);
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

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::task::Poll;

    use super::*;

    fn three(choice: Choice) -> Replicas {
        let endpoint = |port: u16| Endpoint::parse(&format!("http://localhost:{port}")).unwrap();
        Replicas::new((1..=3).map(endpoint).collect(), choice, &ClientOptions::default()).unwrap()
    }

    fn ports(replicas: &Replicas, purpose: Purpose) -> Vec<u16> {
        replicas.order(purpose).into_iter().map(|id| replicas.endpoint(id).port).collect()
    }

    async fn is_waiting<T>(mut future: Pin<&mut impl Future<Output = T>>) -> bool {
        std::future::poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx).is_pending())).await
    }

    fn refused() -> io::Error {
        io::ErrorKind::ConnectionRefused.into()
    }

    #[test]
    fn who_does_not_answer_is_asked_last_until_it_does() {
        let replicas = three(Choice::InOrder);
        assert_eq!(ports(&replicas, Purpose::Statement), [1, 2, 3]);
        replicas.failed(ReplicaId(0), &refused());
        assert_eq!(ports(&replicas, Purpose::Statement), [2, 3, 1]);
        assert_eq!(replicas.health()[0].error.as_deref(), Some("connection refused"));
        replicas.note_up(ReplicaId(0), NEAR);
        assert_eq!(ports(&replicas, Purpose::Question), [1, 2, 3]);
    }

    #[test]
    fn a_table_that_is_read_only_gets_no_inserts_until_it_stores_one() {
        let replicas = three(Choice::InOrder);
        let (into_t, into_u) = (Purpose::insert_into("d", "t"), Purpose::insert_into("d", "u"));
        replicas.refused(ReplicaId(0), into_t, &Exception::new(TABLE_IS_READ_ONLY, "Table is in readonly mode", ""));
        assert_eq!(ports(&replicas, into_t), [2, 3, 1]);
        for same in [Purpose::forwarded_into("d", "t"), Purpose::probe_of("d", "t")] {
            assert_eq!(ports(&replicas, same), [2, 3, 1]);
        }
        for other in [into_u, Purpose::Statement] {
            assert_eq!(ports(&replicas, other), [1, 2, 3]);
        }
        assert_eq!(replicas.health()[0].read_only_tables, 1);
        replicas.did(ReplicaId(0), into_t);
        assert_eq!(ports(&replicas, into_t), [1, 2, 3]);
    }

    #[test]
    fn who_has_too_much_to_do_is_left_alone_unless_it_is_one_user_who_has() {
        let replicas = three(Choice::InOrder);
        let refused = |id: u16, text: &str| {
            let exception = Exception::new(TOO_MANY_SIMULTANEOUS_QUERIES, text, "");
            replicas.refused(ReplicaId(id), Purpose::Statement, &exception);
        };
        refused(0, "Too many simultaneous queries for user ann. Current: 3, maximum: 3");
        assert_eq!(ports(&replicas, Purpose::Statement), [1, 2, 3]);
        refused(0, "Too many simultaneous queries. : while executing 'FUNCTION throwIf(1, 'x', 202)'");
        refused(0, "Received from b:9000. Too many simultaneous queries. Maximum: 100");
        assert_eq!(ports(&replicas, Purpose::Statement), [1, 2, 3]);
        refused(0, "Too many simultaneous queries. Maximum: 100");
        assert_eq!(ports(&replicas, Purpose::Statement), [2, 3, 1]);
        let exception = Exception::new(60, "Table d.t does not exist", "");
        replicas.refused(ReplicaId(1), Purpose::insert_into("d", "t"), &exception);
        assert_eq!(ports(&replicas, Purpose::Statement), [2, 3, 1], "the table is missing, the replica is not");
    }

    #[test]
    fn who_is_drained_is_asked_nothing() {
        let replicas = three(Choice::InOrder);
        assert!(replicas.drain(ReplicaId(1), true));
        assert_eq!(ports(&replicas, Purpose::insert_into("d", "t")), [1, 3]);
        assert_eq!(ports(&replicas, Purpose::Only(ReplicaId(1))), [] as [u16; 0]);
        assert!(replicas.drain(ReplicaId(1), false));
        assert_eq!(ports(&replicas, Purpose::Only(ReplicaId(1))), [2]);
        assert!(replicas.drain(ReplicaId(0), true) && replicas.drain(ReplicaId(2), true));
        assert!(!replicas.drain(ReplicaId(1), true), "nobody would be left");
        assert_eq!(ports(&replicas, Purpose::Statement), [2]);
    }

    #[test]
    fn a_session_goes_on_at_a_drained_replica() {
        let replicas = three(Choice::RoundRobin);
        assert!(replicas.drain(ReplicaId(1), true));
        assert_eq!(ports(&replicas, Purpose::InSession(ReplicaId(1))), [2]);
        assert_eq!(ports(&replicas, Purpose::InOrder), [1, 3]);
    }

    #[test]
    fn each_has_its_turn() {
        let replicas = three(Choice::RoundRobin);
        let firsts: Vec<u16> = (0..6).map(|_| ports(&replicas, Purpose::insert_into("d", "t"))[0]).collect();
        assert_eq!(firsts, [1, 2, 3, 1, 2, 3]);
        assert_eq!(ports(&replicas, Purpose::Question), [1, 2, 3]);
    }

    #[test]
    fn the_least_loaded_comes_first() {
        let replicas = Arc::new(three(Choice::LeastLoaded));
        let first = Use::begin(replicas.clone(), ReplicaId(0));
        let _second = Use::begin(replicas.clone(), ReplicaId(1));
        assert_eq!(ports(&replicas, Purpose::insert_into("d", "t")), [3, 1, 2]);
        drop(first);
        assert_eq!(ports(&replicas, Purpose::insert_into("d", "t")), [1, 3, 2]);
    }

    #[test]
    fn the_nearest_comes_first_and_those_as_near_in_order() {
        let replicas = three(Choice::Nearest);
        replicas.note_up(ReplicaId(0), Duration::from_millis(20));
        replicas.note_up(ReplicaId(1), Duration::from_micros(400));
        replicas.note_up(ReplicaId(2), Duration::from_micros(90));
        assert_eq!(ports(&replicas, Purpose::insert_into("d", "t")), [2, 3, 1]);
    }

    #[tokio::test]
    async fn a_server_alone_is_waited_for() {
        let endpoint = Endpoint::parse("http://localhost:1").unwrap();
        let alone = Replicas::new(vec![endpoint], Choice::InOrder, &ClientOptions::default()).unwrap();
        alone.failed(ReplicaId::FIRST, &refused());
        assert!(alone.health()[0].is_up, "nobody asks how it does");
        assert!(is_waiting(std::pin::pin!(alone.wait_until_gone(ReplicaId::FIRST))).await);
    }

    #[tokio::test]
    async fn who_is_gone_is_not_waited_for_any_more() {
        let replicas = Arc::new(three(Choice::InOrder));
        replicas.note_down(ReplicaId(0), &refused());
        let there = There { of: Some((replicas.clone(), ReplicaId(0))) };
        let mut waiting = std::pin::pin!(there.wait_for(std::future::pending::<()>()));
        assert!(is_waiting(waiting.as_mut()).await);
        let long_ago = Instant::now().checked_sub(GONE_AFTER).expect("the machine is not that young");
        replicas.list[0].lock().down = Some((long_ago, String::new()));
        replicas.note_down(ReplicaId(0), &refused());
        assert_eq!(waiting.await, None);
        assert_eq!(there.wait_for(std::future::pending::<()>()).await, None, "nor if one comes later");
    }
}
