//! The task of one append that takes its batches, in order, to the store.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use windrow_clickhouse::ErrorCode;

use crate::answer::{Atomicity, Committed, State};
use crate::ended::End;
use crate::error::AppendError;
use crate::errors;
use crate::open_append::{Append, HeldBatch, Step};
use crate::reading::{read_ahead, Reading};
use crate::service::Service;
use crate::target::{CommitFailure, Held, Outcome, Target, Totals, Transaction};

/// The bytes that are handed over at once: enough that the calls don't matter, little enough that room comes
/// free meanwhile.
const MAX_APPLIED_BYTES: u64 = 32 << 20;

/// Applies batches until the append has ended. The append ends, whatever happens in here.
pub(crate) async fn apply<T: Target>(service: Arc<Service<T>>, append: Arc<Append<T>>) {
    let work = tokio::spawn(run(service.clone(), append.clone()));
    if work.await.is_err() {
        let end = match append.is_committing() {
            true => {
                service.target.doubt(append.id);
                look_up_end(&service, &append, "a fault in Windrow, which its log tells").await
            }
            false => End::Failed(errors::fault_of_ours()),
        };
        service.end(&append, end, true);
    }
    service.settle(&append);
    let (spool, id) = (service.spool.clone(), append.id);
    if append.has_spooled() {
        let _ = tokio::task::spawn_blocking(move || spool.remove(id)).await;
    }
}

async fn run<T: Target>(service: Arc<Service<T>>, append: Arc<Append<T>>) {
    let idle_timeout_ms = service.options.idle_timeout.as_millis() as u64;
    let mut transaction = None;
    loop {
        let mut changes = append.changes();
        match append.step(MAX_APPLIED_BYTES, idle_timeout_ms) {
            Step::Wait { ms } => {
                // Either way it is asked again.
                let _ = tokio::time::timeout(Duration::from_millis(ms), changes.changed()).await;
            }
            Step::Apply(batches) => {
                let done = apply_some(&service, &append, &mut transaction, batches).await;
                match done {
                    Ok(()) => append.applied(),
                    Err(error) => drop(service.end(&append, End::Failed(error), true)),
                }
            }
            Step::Commit(totals) => return commit(&service, &append, transaction, totals).await,
            Step::Expire(error) => drop(service.end(&append, End::Failed(error), false)),
            Step::Stop => {
                if let Some(transaction) = transaction {
                    transaction.abort().await;
                }
                return;
            }
        }
    }
}

async fn begun<'t, T: Target>(
    service: &Service<T>,
    append: &Append<T>,
    transaction: &'t mut Option<T::Transaction>,
) -> Result<&'t mut T::Transaction, AppendError> {
    if transaction.is_none() {
        let permit = tokio::select! {
            biased;
            // What has ended begins nothing more. Who hears this has been told of the end.
            _ = append.ended() => return Err(errors::aborted(append.id)),
            permit = service.target.permit(&append.opening) => permit?,
        };
        let begun = service.target.begin(append.id, &append.opening, append.table.clone(), permit).await?;
        return Ok(transaction.insert(begun));
    }
    transaction.as_mut().ok_or_else(errors::fault_of_ours)
}

async fn apply_some<T: Target>(
    service: &Arc<Service<T>>,
    append: &Arc<Append<T>>,
    transaction: &mut Option<T::Transaction>,
    batches: Vec<(u64, HeldBatch<T::Batch>)>,
) -> Result<(), AppendError> {
    let mut batches = VecDeque::from(batches);
    let (mut held, mut grants) = (Vec::with_capacity(batches.len()), Vec::new());
    let mut ahead = None;
    loop {
        let reading = match ahead.take() {
            Some(reading) => reading,
            None => match batches.pop_front() {
                None => break,
                Some((number, HeldBatch::Memory { batch, grant })) => {
                    held.push(Held { number, batch });
                    grants.push(grant);
                    continue;
                }
                Some((number, HeldBatch::Spooled { file, grant })) => {
                    // What comes before it goes first, and leaves its room to what is in memory beyond the window.
                    if !held.is_empty() {
                        begun(service, append, transaction).await?.apply(std::mem::take(&mut held)).await?;
                        grants.clear();
                    }
                    let permit = service.read_back().await.ok_or_else(errors::shutting_down)?;
                    Reading::begin(service, append, number, (file, grant), permit)
                }
            },
        };
        let one = reading.batch().await?;
        ahead = read_ahead(service, append, &mut batches);
        begun(service, append, transaction).await?.apply(vec![one.held]).await?;
    }
    if !held.is_empty() {
        begun(service, append, transaction).await?.apply(held).await?;
    }
    Ok(())
}

async fn commit<T: Target>(
    service: &Arc<Service<T>>,
    append: &Arc<Append<T>>,
    mut transaction: Option<T::Transaction>,
    totals: Totals,
) {
    // An append of no batches has a transaction as well: it leaves word that it was.
    let begun = begun(service, append, &mut transaction).await.map(|_| ());
    let end = match (begun, transaction) {
        (Err(error), _) => End::Failed(error),
        (Ok(()), None) => End::Failed(errors::fault_of_ours()),
        (Ok(()), Some(transaction)) => match transaction.commit(totals).await {
            Ok(atomic) => End::Committed(committed(append, totals, atomic)),
            Err(CommitFailure::Refused(error)) => End::Failed(error),
            Err(CommitFailure::Unknown(cause)) => look_up_end(service, append, &cause).await,
        },
    };
    service.end(append, end, true);
}

fn committed<T: Target>(append: &Append<T>, totals: Totals, atomic: Atomicity) -> Committed {
    Committed {
        id: append.id,
        state: State::Committed,
        rows: totals.rows,
        bytes: totals.bytes,
        batches: totals.batches,
        seconds: append.opened_at.elapsed().as_secs_f64(),
        atomic,
    }
}

/// Asks the store for the end of an append whose commit got no clear answer. The store knows, sooner or later.
async fn look_up_end<T: Target>(service: &Service<T>, append: &Append<T>, cause: &str) -> End {
    tracing::warn!(append = %append.id, cause, "the commit of an append got no clear answer; its store is asked");
    let mut pause = Duration::from_millis(20);
    loop {
        match service.target.outcome(append.id).await {
            Ok(Outcome::Committed { committed, .. }) => return End::Committed(committed),
            Ok(Outcome::Nothing) => {
                let text = format!("The commit failed, and nothing of the append is stored: {cause}");
                return End::Failed(AppendError::new(ErrorCode::NETWORK_ERROR, &text));
            }
            Ok(Outcome::Committing { .. }) => {}
            // It will never be known.
            Err(error) if error.exception.code == ErrorCode::UNKNOWN_STATUS_OF_INSERT => return End::Failed(error),
            Err(error) => {
                tracing::warn!(append = %append.id, %error, "the outcome of an append can't be found out yet")
            }
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(Duration::from_secs(2));
    }
}
