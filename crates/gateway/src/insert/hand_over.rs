//! Last stage of an insert: it is handed to the gatherer, and its outcome is waited for if it is to be acknowledged as
//! stored.

use std::time::Duration;

use windrow_engine::{AckLevel, Insert, Ticket, Withdrawal};
use windrow_trace::RequestTrace;

use super::candidate::Origin;
use super::parse::Parsed;
use super::prepared::Prepared;
use super::readers::{BatchCompatibility, Gatherable};
use crate::error::Refusal;
use crate::state::State;

/// What an insert's answer says of it.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Summary {
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
    pub(crate) elapsed_ns: u64,
}

/// Tells a client that waits for its insert that it is not forgotten.
pub(crate) trait Progress {
    /// How often it wants to be told.
    fn interval(&self) -> Option<Duration>;

    /// The rows have been read, and nothing else yet.
    async fn tell(&mut self, rows: u64, bytes: u64);
}

pub(crate) async fn hand_over(
    state: &State,
    parsed: Parsed,
    origin: Origin<'_>,
    progress: &mut impl Progress,
) -> Result<Summary, Refusal> {
    let Parsed { prepared, read: Gatherable { rows: brought, compatibility }, payload_bytes, query_id, dedup, ack } =
        parsed;
    let (rows, bytes) = (brought.count() as u64, brought.bytes() as u64);
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
    let shape = prepared.shape(&compatibility, &state.gatherer);
    let insert = Insert {
        rows: brought,
        payload_bytes,
        writer: origin.connection_id,
        ack,
        patience: prepared.wait_timeout,
        at_once: prepared.at_once,
        dedup,
        history: None,
        query_id,
        kind: prepared.kind(&compatibility),
        trace: origin.trace.map(|trace| Box::new(trace.lasting_context())),
    };
    let ticket = state.gatherer.push(&shape, insert).await.map_err(|error| Refusal::push(&error))?;
    // At level `disk` it stands in the journal now; else it has its place in a batch.
    origin.mark(if ack == AckLevel::Disk { "record" } else { "place" });
    state.metrics.accepted.inc();
    match compatibility {
        BatchCompatibility::Parsed(_) => {}
        BatchCompatibility::Passthrough { .. } => _ = state.metrics.passthrough.inc(),
        BatchCompatibility::BackendRead => _ = state.metrics.backend_read.inc(),
    }
    let summary = Summary { rows, bytes, elapsed_ns: 0 };
    let Some(ticket) = ticket else {
        state.metrics.insert_latency.observe(origin.arrived.elapsed());
        // A repeat of what is stored is told what the first was told.
        return Ok(if ack == AckLevel::Stored { summary } else { Summary::default() });
    };
    let outcome = wait(ticket, prepared.wait_timeout, &summary, progress).await;
    origin.mark("wait");
    outcome?;
    let elapsed = origin.arrived.elapsed();
    state.metrics.insert_latency.observe(elapsed);
    Ok(Summary { elapsed_ns: elapsed.as_nanos() as u64, ..summary })
}

/// What a trace says of an insert. Not its statement, which may hold values.
fn tell(trace: &RequestTrace, state: &State, prepared: &Prepared) {
    let destination = prepared.destination();
    trace.name("insert");
    trace.note("db.system.name", if state.backend.takes_requests() { "clickhouse" } else { "duckdb" });
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
) -> Result<(), Refusal> {
    let end = tokio::time::Instant::now() + timeout;
    loop {
        let next = progress.interval().map_or(end, |interval| end.min(tokio::time::Instant::now() + interval));
        match tokio::time::timeout_at(next, ticket.outcome()).await {
            Ok(outcome) => return outcome.map_err(Refusal::insert),
            Err(_) if next < end => progress.tell(summary.rows, summary.bytes).await,
            Err(_) => break,
        }
    }
    let timeout_ms = timeout.as_millis() as u64;
    match ticket.withdraw().await {
        Withdrawal::Done(outcome) => outcome.map_err(Refusal::insert),
        Withdrawal::Withdrawn { last_error } => Err(Refusal::withdrawn(timeout_ms, last_error)),
        Withdrawal::InFlight => Err(Refusal::in_flight(timeout_ms)),
    }
}
