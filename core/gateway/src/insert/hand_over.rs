//! Last stage of an insert: it is handed to the gatherer, and its outcome is waited for if it is to be acknowledged as
//! stored.

use std::time::Duration;

use futures::future::join_all;
use windrow_engine::trace::RequestTrace;
use windrow_engine::{AckLevel, Insert, InsertError, PushError, Ticket, Withdrawal};

use super::candidate::Origin;
use super::parse::{OfShard, Parsed, ReadRows};
use super::prepared::Prepared;
use super::readers::BatchCompatibility;
use crate::error::Refusal;
use crate::state::State;

/// Numbers about an insert that its answer has.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Summary {
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
    pub(crate) elapsed_ns: u64,
}

/// Means to tell a client that waits for its insert that the insert is not forgotten.
pub(crate) trait Progress {
    /// Returns the interval at which the client wants to be told; `None`: never.
    fn interval(&self) -> Option<Duration>;

    /// Tells the client that the rows have been read, and nothing else has happened yet.
    async fn tell(&mut self, rows: u64, bytes: u64);
}

pub(crate) async fn hand_over(
    state: &State,
    parsed: Parsed,
    origin: Origin<'_>,
    progress: &mut impl Progress,
) -> Result<Summary, Refusal> {
    let Parsed { prepared, compatibility, rows: brought, payload_bytes, query_id, key, ack } = parsed;
    let (rows, bytes) = (brought.count(), brought.bytes());
    if let Some(trace) = origin.trace {
        tell(trace, state, &prepared);
        trace.note("clickhouse.query_id", query_id.to_string());
        trace.note("windrow.ack", ack.as_str());
        trace.note("windrow.rows", rows);
        trace.note("windrow.payload_bytes", payload_bytes);
    }
    if rows == 0 {
        let (destination, kind) = (prepared.destination().clone(), prepared.kind(&compatibility));
        state.gatherer.log_without_batch(destination, kind, query_id, payload_bytes, None);
        return Ok(Summary::default());
    }
    let roams = key.zip(state.cluster.as_ref()).is_some_and(|(key, cluster)| cluster.shares(key));
    let insert = |rows, dedup, payload_bytes| Insert {
        rows,
        payload_bytes,
        writer: origin.connection_id,
        back_after: origin.back_after.filter(|_| roams),
        ack,
        patience: prepared.wait_timeout,
        at_once: prepared.at_once,
        dedup,
        history: None,
        query_id: query_id.clone(),
        kind: prepared.kind(&compatibility),
        trace: origin.trace.map(|trace| Box::new(trace.lasting_context())),
    };
    let taken = match brought {
        ReadRows::Whole(rows, dedup) => {
            let shape = prepared.shape(&compatibility, None, &state.gatherer);
            let ticket = state.gatherer.push(&shape, insert(rows, dedup, payload_bytes)).await;
            Tickets::Whole(ticket.map_err(|error| Refusal::push(&error))?)
        }
        ReadRows::ByShard(parts) => {
            let pushes = parts.into_iter().map(|OfShard { shard, rows, dedup }| {
                let shape = prepared.shape(&compatibility, Some(shard), &state.gatherer);
                // As much of the payload as the rows are of the whole.
                let share = (u128::from(payload_bytes) * rows.bytes() as u128 / u128::from(bytes.max(1))) as u64;
                let insert = insert(rows, dedup, share);
                async move { state.gatherer.push(&shape, insert).await }
            });
            Tickets::ByShard(all_or_none(join_all(pushes).await).await?)
        }
    };
    // At level `disk` it stands in the journal now; else it has its place in a batch.
    origin.mark(if ack == AckLevel::Disk { "record" } else { "place" });
    state.metrics.accepted.inc();
    match compatibility {
        BatchCompatibility::Parsed(_) => {}
        BatchCompatibility::Passthrough { .. } | BatchCompatibility::Blocks { .. } => {
            _ = state.metrics.passthrough.inc();
        }
        BatchCompatibility::BackendRead => _ = state.metrics.backend_read.inc(),
    }
    let summary = Summary { rows, bytes, elapsed_ns: 0 };
    if taken.is_nothing_left() {
        state.metrics.insert_latency.observe(origin.arrived.elapsed());
        // A repeat of what is stored is told what the first was told.
        return Ok(if ack == AckLevel::Stored { summary } else { Summary::default() });
    }
    let outcome = match taken {
        Tickets::Whole(None) => Ok(()),
        Tickets::Whole(Some(ticket)) => {
            wait(ticket, prepared.wait_timeout, &summary, progress).await.map_err(|failure| failure.refusal)
        }
        Tickets::ByShard(tickets) => wait_for_all(tickets, prepared.wait_timeout, &summary, progress).await,
    };
    origin.mark("wait");
    outcome?;
    let elapsed = origin.arrived.elapsed();
    state.metrics.insert_latency.observe(elapsed);
    Ok(Summary { elapsed_ns: elapsed.as_nanos() as u64, ..summary })
}

/// Tickets that the gatherer has given for an insert. Without a ticket, there is nothing to wait for.
enum Tickets {
    Whole(Option<Ticket>),
    /// Tickets of the parts that are to be waited for.
    ByShard(Vec<Ticket>),
}

impl Tickets {
    fn is_nothing_left(&self) -> bool {
        match self {
            Tickets::Whole(ticket) => ticket.is_none(),
            Tickets::ByShard(tickets) => tickets.is_empty(),
        }
    }
}

/// Returns the tickets of an insert's parts. Where one part was not taken, the others are withdrawn, and the
/// refusal says so if some may be stored all the same.
async fn all_or_none(pushed: Vec<Result<Option<Ticket>, PushError>>) -> Result<Vec<Ticket>, Refusal> {
    let (mut tickets, mut error, mut is_kept) = (Vec::new(), None, false);
    for pushed in pushed {
        match pushed {
            Ok(Some(ticket)) => tickets.push(ticket),
            // It is stored already, or stands in the journal.
            Ok(None) => is_kept = true,
            Err(failure) => _ = error.get_or_insert(failure),
        }
    }
    let Some(error) = error else { return Ok(tickets) };
    for ticket in tickets {
        is_kept |= match ticket.withdraw().await {
            Withdrawal::Withdrawn { .. } => false,
            Withdrawal::Done(Err(error)) => !is_surely_not_stored(&error),
            Withdrawal::Done(Ok(())) | Withdrawal::InFlight => true,
        };
    }
    Err(match is_kept {
        true => Refusal::push(&error).of_a_part(),
        false => Refusal::push(&error),
    })
}

/// Writes facts about an insert into its trace, but not the statement, which may hold values.
fn tell(trace: &RequestTrace, state: &State, prepared: &Prepared) {
    let destination = prepared.destination();
    trace.name("insert");
    trace.note("db.system.name", state.backend.kind());
    trace.note("db.operation.name", "INSERT");
    trace.note("db.namespace", destination.database.as_str());
    trace.note("db.collection.name", destination.table.as_str());
    trace.note("windrow.format", prepared.kind.format.as_str());
}

async fn wait(
    mut ticket: Ticket,
    timeout: Duration,
    summary: &Summary,
    progress: &mut impl Progress,
) -> Result<(), NotStored> {
    let end = tokio::time::Instant::now() + timeout;
    loop {
        let next = progress.interval().map_or(end, |interval| end.min(tokio::time::Instant::now() + interval));
        match tokio::time::timeout_at(next, ticket.outcome()).await {
            Ok(outcome) => return outcome.map_err(NotStored::of),
            Err(_) if next < end => progress.tell(summary.rows, summary.bytes).await,
            Err(_) => break,
        }
    }
    let timeout_ms = timeout.as_millis() as u64;
    match ticket.withdraw().await {
        Withdrawal::Done(outcome) => outcome.map_err(NotStored::of),
        Withdrawal::Withdrawn { last_error } => {
            Err(NotStored { refusal: Refusal::withdrawn(timeout_ms, last_error), is_sure: true })
        }
        Withdrawal::InFlight => Err(NotStored { refusal: Refusal::in_flight(timeout_ms), is_sure: false }),
    }
}

/// Refusal of rows that were not stored, or may not be.
struct NotStored {
    refusal: Refusal,
    /// Says whether it is certain that none of the rows is stored, or will be.
    is_sure: bool,
}

impl NotStored {
    fn of(error: InsertError) -> NotStored {
        NotStored { is_sure: is_surely_not_stored(&error), refusal: Refusal::insert(error) }
    }
}

fn is_surely_not_stored(error: &InsertError) -> bool {
    matches!(error, InsertError::Exception(_) | InsertError::Unreachable(_))
}

/// Waits for the end of all parts of an insert that was cut by shards.
async fn wait_for_all(
    mut tickets: Vec<Ticket>,
    timeout: Duration,
    summary: &Summary,
    progress: &mut impl Progress,
) -> Result<(), Refusal> {
    if tickets.len() == 1 {
        return wait(tickets.remove(0), timeout, summary, progress).await.map_err(|failure| failure.refusal);
    }
    let count = tickets.len();
    let each = |ticket| async move { wait(ticket, timeout, summary, &mut Silent).await };
    let mut ends = std::pin::pin!(join_all(tickets.into_iter().map(each)));
    let ends = loop {
        let Some(interval) = progress.interval() else { break ends.await };
        match tokio::time::timeout(interval, ends.as_mut()).await {
            Ok(ends) => break ends,
            Err(_) => progress.tell(summary.rows, summary.bytes).await,
        }
    };
    let failures: Vec<NotStored> = ends.into_iter().filter_map(Result::err).collect();
    let is_surely_nothing_stored = failures.len() == count && failures.iter().all(|failure| failure.is_sure);
    match failures.into_iter().next() {
        None => Ok(()),
        Some(NotStored { refusal, .. }) if is_surely_nothing_stored => Err(refusal),
        Some(NotStored { refusal, .. }) => Err(refusal.of_a_part()),
    }
}

/// Progress for a client that is told nothing while it waits, and for parts of an insert.
pub(crate) struct Silent;

impl Progress for Silent {
    fn interval(&self) -> Option<Duration> {
        None
    }

    async fn tell(&mut self, _rows: u64, _bytes: u64) {}
}
