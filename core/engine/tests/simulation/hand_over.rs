//! The last stage of an insert, like the gateway's `insert/hand_over.rs`: all parts are pushed together;
//! where one is not taken, the others are taken back; and the insert is acknowledged when all of its parts
//! are.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use super::books::Told;
use super::sabotage::{self, Sabotage};
use super::system::SimSink;
use crate::{Gatherer, Insert, InsertError, PushError, Shape, Ticket, Withdrawal};

/// The part of an insert for one shard, or all of it.
pub(super) struct Part {
    pub(super) shape: Arc<Shape>,
    pub(super) insert: Insert,
}

/// The times for which a client waits; with `None` it waits until it is told.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Patience {
    pub(super) until_taken: Option<Duration>,
    pub(super) until_stored: Option<Duration>,
}

/// Pushes the parts, and returns the outcome of each part. `on_end` hears of it as soon as it is known.
pub(super) async fn hand_over(
    gatherer: &Gatherer<SimSink>,
    parts: Vec<Part>,
    patience: Patience,
    on_end: impl Fn(usize, Told),
) -> Vec<Told> {
    let count = parts.len();
    let push = |Part { shape, insert }: Part| async move { gatherer.push(&shape, insert).await };
    let Some(pushed) = within(patience.until_taken, join_all(parts.into_iter().map(push))).await else {
        return vec![Told::Nothing; count];
    };
    let all_taken = pushed.iter().all(Result::is_ok);
    let ends = pushed.into_iter().enumerate().map(|(part, pushed)| {
        let on_end = &on_end;
        async move {
            let told = match pushed {
                Ok(None) => Told::Acknowledged,
                Ok(Some(ticket)) if all_taken => wait(ticket, patience.until_stored).await,
                Ok(Some(ticket)) => told_by_withdrawal(ticket.withdraw().await),
                Err(error) => told_by_refusal(&error),
            };
            on_end(part, told);
            told
        }
    });
    let mut told = join_all(ends).await;
    if sabotage::is(Sabotage::AcknowledgesParts) && told.contains(&Told::Acknowledged) {
        told.fill(Told::Acknowledged);
        (0..count).for_each(|part| on_end(part, Told::Acknowledged));
    }
    told
}

async fn wait(mut ticket: Ticket, patience: Option<Duration>) -> Told {
    match within(patience, ticket.outcome()).await {
        Some(outcome) => told_by(&outcome),
        None => told_by_withdrawal(ticket.withdraw().await),
    }
}

fn told_by_withdrawal(withdrawal: Withdrawal) -> Told {
    match withdrawal {
        Withdrawal::Withdrawn { .. } => Told::Refused,
        Withdrawal::InFlight => Told::Nothing,
        Withdrawal::Done(outcome) => told_by(&outcome),
    }
}

fn told_by(outcome: &Result<(), InsertError>) -> Told {
    match outcome {
        Ok(()) => Told::Acknowledged,
        Err(InsertError::OutcomeUnknown(_)) => Told::Nothing,
        Err(InsertError::Exception(_) | InsertError::Failed(_) | InsertError::Unreachable(_)) => Told::Refused,
    }
}

fn told_by_refusal(error: &PushError) -> Told {
    match error {
        PushError::Failed(error) => told_by(&Err(error.clone())),
        // A disk that failed may have it all the same, and show it after a crash.
        PushError::NotJournaled { is_certain: false, .. } => Told::Nothing,
        _ => Told::Refused,
    }
}

async fn within<F: Future>(patience: Option<Duration>, future: F) -> Option<F::Output> {
    match patience {
        Some(patience) => tokio::time::timeout(patience, future).await.ok(),
        None => Some(future.await),
    }
}

/// Runs all futures at once, in the caller's task: they are dropped with it, and begun in their order.
async fn join_all<F: Future>(futures: impl Iterator<Item = F>) -> Vec<F::Output> {
    let mut running: Vec<Pin<Box<F>>> = futures.map(Box::pin).collect();
    let mut ended: Vec<Option<F::Output>> = running.iter().map(|_| None).collect();
    std::future::poll_fn(|context| {
        for (future, end) in running.iter_mut().zip(&mut ended) {
            if end.is_none() {
                if let Poll::Ready(output) = future.as_mut().poll(context) {
                    *end = Some(output);
                }
            }
        }
        if ended.iter().all(Option::is_some) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
    ended.into_iter().flatten().collect()
}
