//! The load generator: N connections, each in a closed loop (or at a fixed pace) of one-row inserts with unique ids.
//!
//! An insert's id is (connection, sequence number), so stored rows can be compared with acknowledged ones, id
//! by id, without remembering every id. All connections are tasks of one thread, and their HTTP client is the
//! gateway's own.
//!
//! wrk can do neither: its Lua does not tell which connection an answer is for, and it has no fixed pace. It
//! also takes more of the machine: with 200 connections, a row of its own in each insert, and an empty
//! handler, 6.6 us of CPU for an insert instead of 4.1.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io::Write;
use std::rc::Rc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tokio::net::TcpStream;
use tokio::sync::Barrier;
use windrow_http::{ClientConnection, Stream};

use crate::native::{Login, NativeExchange};
use crate::picker::Picker;
use crate::{cpu, Outcome};

/// The most failures in a row. A server that refuses so many inserts of a connection is gone; going on would
/// only burn the CPU of others.
const MAX_FAILURES_IN_A_ROW: u32 = 20;
/// The most bytes that are kept of an error's text.
const MAX_KEPT_BYTES: usize = 4 << 10;
pub const NEVER: Duration = Duration::from_secs(3600);

#[derive(Debug, Deserialize)]
pub struct Plan {
    address: String,
    /// The head of a POST up to the value of Content-Length, for each target among which an insert chooses.
    /// For the native protocol it is the statement.
    heads: Vec<String>,
    /// The login for the native protocol, if that is used.
    native: Option<Login>,
    /// The spread of inserts over the targets: see `Picker`.
    stride: u64,
    row: Vec<Piece>,
    /// Says whether the row's numbers are binary, the sequence number in 8 bytes and the others in 4. If not,
    /// they are text.
    is_binary: bool,
    connections: u32,
    /// A number that is added to the connection's, so that runs into the same tables can be told apart.
    first_conn: u32,
    /// Time of inserts that are sent and checked, but not measured: connections, caches and buffers are warm
    /// when the clock starts.
    warmup_seconds: f64,
    seconds: f64,
    inserts_per_connection: Option<u64>,
    /// Time between two inserts of a connection. If it is missing, the next insert follows the answer. If it
    /// is set, each connection inserts once per interval, as a scheduler would start it, with its own offset
    /// into the interval.
    interval_seconds: Option<f64>,
    /// Says whether a connection waits with its next insert until all connections have their answers.
    in_step: bool,
    /// Time after the window in which answers may still come in, before the run is given up.
    grace_seconds: f64,
}

/// A piece of a row, which `bench/base/scenario.py` makes: bytes as they are, or a number that differs from
/// row to row.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Piece {
    Bytes(Vec<u8>),
    Number(Number),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Number {
    Conn,
    Seq,
    /// A value that follows from the id and the target, so that a row which was damaged or came into
    /// another's table is noticed.
    Value,
}

#[derive(Debug, Default, Serialize)]
pub struct Load {
    /// Count of sequence numbers that each connection has sent, from 0 on.
    sent: Vec<u64>,
    /// The sequence numbers of each connection that were refused, or have no answer.
    unacknowledged: Vec<Vec<u64>>,
    /// Latencies of inserts that were acknowledged after the warm-up. Inserts that were under way when the
    /// window closed count too: leaving the slow ones out would flatter a server.
    #[serde(skip)]
    latencies_us: Vec<u32>,
    p50_ms: f64,
    p95_ms: f64,
    p99_ms: f64,
    max_ms: f64,
    /// Inserts that were acknowledged after the warm-up and before the window closed, whenever they began.
    in_window: u64,
    window_seconds: f64,
    statuses: BTreeMap<u16, u64>,
    /// Count of exchanges in the middle of which a connection failed.
    broken: u64,
    /// Count of inserts that could not begin in their interval because the one before was still unanswered.
    missed_intervals: u64,
    first_error: Option<String>,
    /// Time of each step, from when all connections could send until the last good answer.
    steps_ms: Vec<f64>,
    cpu_seconds: f64,
}

/// The moments that all connections share.
#[derive(Debug, Clone, Copy)]
struct Clock {
    start: Instant,
    measured_from: Instant,
    end: Instant,
}

pub fn run(plan: Plan) -> Outcome<Load> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    if plan.heads.is_empty() || plan.connections == 0 {
        return Err("there must be a target and a connection".into());
    }
    let (count, plan) = (plan.connections as usize, Rc::new(plan));
    let empty = Load { sent: vec![0; count], unacknowledged: vec![Vec::new(); count], ..Load::default() };
    let load = Rc::new(RefCell::new(empty));
    let local = tokio::task::LocalSet::new();
    let used_before = cpu::seconds();
    let clock = local.block_on(&runtime, async {
        let mut exchanges = Vec::with_capacity(count);
        for _ in 0..count {
            let mut exchange = Exchange::new(plan.clone());
            exchange.connect().await?;
            exchanges.push(exchange);
        }
        let start = Instant::now();
        let measured_from = start + Duration::from_secs_f64(plan.warmup_seconds);
        let clock = Clock { start, measured_from, end: measured_from + Duration::from_secs_f64(plan.seconds) };
        drive(plan.clone(), clock, exchanges, load.clone()).await;
        Outcome::Ok(clock)
    })?;
    let mut load = load.take();
    load.window_seconds = clock.measured_from.elapsed().as_secs_f64().min(plan.seconds);
    load.cpu_seconds = cpu::seconds() - used_before;
    load.latencies_us.sort_unstable();
    let quantile = |share: f64| quantile_ms(&load.latencies_us, share);
    (load.p50_ms, load.p95_ms, load.p99_ms, load.max_ms) =
        (quantile(0.5), quantile(0.95), quantile(0.99), quantile(1.0));
    Ok(load)
}

impl Plan {
    fn write_row(&self, body: &mut Vec<u8>, conn: u32, seq: u64, target: u64) {
        let conn = u64::from(conn);
        for piece in &self.row {
            let (number, bytes) = match piece {
                Piece::Bytes(bytes) => {
                    body.extend_from_slice(bytes);
                    continue;
                }
                Piece::Number(Number::Conn) => (conn, 4),
                Piece::Number(Number::Seq) => (seq, 8),
                Piece::Number(Number::Value) => ((conn * 7919 + seq * 104_729 + target * 15_485_863) % 1_000_000, 4),
            };
            match self.is_binary {
                true => body.extend_from_slice(&number.to_le_bytes()[..bytes]),
                // Writing into a Vec can't fail.
                false => drop(write!(body, "{number}")),
            }
        }
    }
}

/// Returns the latency that this share of the requests did not exceed, or 0 when there were none.
fn quantile_ms(sorted_us: &[u32], share: f64) -> f64 {
    let rank = ((sorted_us.len() as f64 * share).ceil() as usize).max(1);
    sorted_us.get(rank - 1).map_or(0.0, |us| f64::from(*us) / 1000.0)
}

/// Runs the connections until they are done or the grace is over. Inserts without an answer then stay so.
async fn drive(plan: Rc<Plan>, clock: Clock, exchanges: Vec<Exchange>, load: Rc<RefCell<Load>>) {
    let picker = Picker::new(plan.heads.len(), plan.stride);
    let step = plan.in_step.then(|| (Barrier::new(exchanges.len()), Cell::new(clock.start)));
    let shared = Rc::new((picker, step));
    let give_up = (clock.end + Duration::from_secs_f64(plan.grace_seconds)).into();
    let tasks: Vec<_> = exchanges
        .into_iter()
        .zip(0..)
        .map(|(exchange, conn)| {
            let (plan, load, shared) = (plan.clone(), load.clone(), shared.clone());
            tokio::task::spawn_local(async move {
                let mut connection = Connection { plan: &plan, clock, conn, load: &load, exchange };
                connection.run(&shared.0, shared.1.as_ref()).await;
            })
        })
        .collect();
    for task in tasks {
        let abort = task.abort_handle();
        if tokio::time::timeout_at(give_up, task).await.is_err() {
            abort.abort();
        }
    }
}

/// One connection of the load. `load` belongs to all connections, and is never borrowed across an await. It
/// is complete at every moment, so a connection may be dropped in the middle of an exchange.
struct Connection<'p> {
    plan: &'p Plan,
    clock: Clock,
    conn: u32,
    load: &'p RefCell<Load>,
    exchange: Exchange,
}

impl Connection<'_> {
    async fn run(&mut self, picker: &Picker, step: Option<&(Barrier, Cell<Instant>)>) {
        let plan = self.plan;
        let mut body = Vec::with_capacity(256);
        let mut failures_in_a_row = 0;
        let mut random = fastrand::Rng::with_seed(u64::from(self.conn));
        let mut pace = plan.interval_seconds.map(|interval| {
            let interval = Duration::from_secs_f64(interval);
            Pace { next: self.clock.start + interval * self.conn / plan.connections, interval }
        });
        for seq in 0..plan.inserts_per_connection.unwrap_or(u64::MAX) {
            if let Some(pace) = &mut pace {
                let missed = pace.wait().await;
                self.load.borrow_mut().missed_intervals += missed;
            }
            if let Some((barrier, began)) = step {
                if barrier.wait().await.is_leader() {
                    began.set(Instant::now());
                    self.load.borrow_mut().steps_ms.push(0.0);
                }
            }
            let began = Instant::now();
            if began >= self.clock.end || failures_in_a_row == MAX_FAILURES_IN_A_ROW {
                return;
            }
            let target = picker.pick(self.conn, seq, &mut random);
            body.clear();
            plan.write_row(&mut body, plan.first_conn + self.conn, seq, target as u64);
            self.sending(seq);
            let answer = self.exchange.insert(target, &body).await;
            failures_in_a_row = if answer.is_ok() { 0 } else { failures_in_a_row + 1 };
            let good = self.take_answer(began, answer);
            if let Some((_, began)) = step.filter(|_| good) {
                let ms = began.get().elapsed().as_secs_f64() * 1000.0;
                self.load.borrow_mut().steps_ms.last_mut().into_iter().for_each(|last| *last = last.max(ms));
            }
        }
    }

    /// Counts an insert before its answer: an insert that the run gave up waiting for was sent, but not acknowledged.
    fn sending(&self, seq: u64) {
        let (mut load, conn) = (self.load.borrow_mut(), self.conn as usize);
        load.sent[conn] = seq + 1;
        load.unacknowledged[conn].push(seq);
    }

    /// Counts an answer, which is for the last insert, as a connection has only one under way. Says whether
    /// it was acknowledged.
    fn take_answer(&self, began: Instant, answer: Outcome<Answer>) -> bool {
        let mut load = self.load.borrow_mut();
        let error = match answer {
            Ok(Answer { status, error }) => {
                *load.statuses.entry(status).or_default() += 1;
                error.map(|text| format!("{status}: {}", text.trim()))
            }
            Err(error) => {
                load.broken += 1;
                Some(error.to_string())
            }
        };
        if error.is_some() {
            // The first one is kept; the others are counted by their status.
            load.first_error = load.first_error.take().or(error);
            return false;
        }
        load.unacknowledged[self.conn as usize].pop();
        let ended = Instant::now();
        if ended >= self.clock.measured_from {
            load.latencies_us.push(u32::try_from((ended - began).as_micros()).unwrap_or(u32::MAX));
            load.in_window += u64::from(ended <= self.clock.end);
        }
        true
    }
}

/// A schedule for the starts of a connection's inserts, which does not slip when an answer is late.
struct Pace {
    next: Instant,
    interval: Duration,
}

impl Pace {
    /// Waits for the next start. Returns how many were missed because the insert before took too long.
    async fn wait(&mut self) -> u64 {
        let missed = missed_since(self.next, Instant::now(), self.interval);
        self.next += self.interval * missed;
        tokio::time::sleep_until(self.next.into()).await;
        self.next += self.interval;
        u64::from(missed)
    }
}

/// Returns how many starts were missed. An insert that starts late, but within its interval, is not missed.
fn missed_since(next: Instant, now: Instant, interval: Duration) -> u32 {
    let late = now.saturating_duration_since(next);
    u32::try_from(late.as_nanos() / interval.as_nanos().max(1)).unwrap_or(u32::MAX)
}

pub struct Answer {
    pub status: u16,
    /// The text of an answer other than 200.
    pub error: Option<String>,
}

/// The requests and answers of one connection, one after the other.
struct Exchange {
    plan: Rc<Plan>,
    connection: Option<ClientConnection>,
    native: Option<NativeExchange>,
    /// The bytes before the rows of a native insert, for each target that was used.
    queries: Vec<Vec<u8>>,
    request: Vec<u8>,
}

impl Exchange {
    fn new(plan: Rc<Plan>) -> Exchange {
        let request = Vec::with_capacity(1024);
        Exchange { plan, connection: None, native: None, queries: Vec::new(), request }
    }

    async fn connect(&mut self) -> Outcome<()> {
        if let Some(login) = &self.plan.native {
            self.queries = self.plan.heads.iter().map(|statement| NativeExchange::query(statement, login)).collect();
            self.native = Some(NativeExchange::connect(&self.plan.address, login).await?);
            return Ok(());
        }
        let stream = TcpStream::connect(&self.plan.address).await?;
        stream.set_nodelay(true)?;
        self.connection = Some(ClientConnection::new(Stream::Plain(stream)));
        Ok(())
    }

    async fn insert(&mut self, target: usize, body: &[u8]) -> Outcome<Answer> {
        let plan = self.plan.clone();
        let Some(login) = &plan.native else { return self.post(&plan.heads[target], body).await };
        if self.native.is_none() {
            self.connect().await?;
        }
        let mut native = self.native.take().ok_or("not connected")?;
        let answer = native.insert(&self.queries[target], body, login.waits).await?;
        self.native = Some(native);
        Ok(answer)
    }

    /// Sends one body and waits for its whole answer. After an error the connection is gone and the next call
    /// makes a new one: it is not known then whether the insert was stored.
    async fn post(&mut self, head: &str, body: &[u8]) -> Outcome<Answer> {
        if self.connection.is_none() {
            self.connect().await?;
        }
        self.request.clear();
        self.request.extend_from_slice(head.as_bytes());
        // Writing into a Vec can't fail.
        let _ = write!(self.request, "{}\r\n\r\n", body.len());
        self.request.extend_from_slice(body);
        // Back again only when the answer was read to its end and the server goes on.
        let mut connection = self.connection.take().ok_or("not connected")?;
        connection.send(&self.request, NEVER).await?;
        let head = connection.read_head(false, NEVER).await?;
        let status = head.status();
        let text = connection.body(&head).collect(MAX_KEPT_BYTES, NEVER).await?;
        if head.keep_alive() {
            self.connection = Some(connection);
        }
        Ok(Answer { status, error: (status != 200).then(|| String::from_utf8_lossy(&text).into_owned()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_intervals_are_missed() {
        let next = Instant::now();
        let interval = Duration::from_secs(1);
        let at = |ms| next + Duration::from_millis(ms);
        let missed: Vec<u32> = [0, 999, 1000, 3500].map(|ms| missed_since(next, at(ms), interval)).to_vec();
        assert_eq!(missed, [0, 0, 1, 3]);
    }

    #[test]
    fn quantiles_are_of_a_sorted_list_and_of_nothing_0() {
        let sorted: Vec<u32> = (1..=10_000).collect();
        assert_eq!([0.5, 0.95, 0.99, 1.0].map(|share| quantile_ms(&sorted, share)), [5.0, 9.5, 9.9, 10.0]);
        assert_eq!(quantile_ms(&[], 0.99), 0.0);
    }
}
