//! The sending of an append: batches over several connections at once, and the commit beside them.
//!
//! Requests wait for no answer that isn't needed. The first batches open the append themselves, by naming the
//! table; the commit goes out as soon as the number of batches is known, on a connection of its own, and the
//! server lets it wait for the batches it counts. So a small append takes one round trip.
//!
//! Every request may be sent again: batches are known by their numbers, the commit by the append's id. Once the server
//! has answered, no request names the table any more, so that a server that was restarted, and has lost what it held,
//! says so instead of beginning anew; and a commit whose answer was lost first asks what became of the append.

mod failure;
mod outbox;
mod requests;
mod sending;
mod telling;
mod wire;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use windrow_clickhouse::Client;

use crate::id::AppendId;
use crate::options::AppendOptions;
use crate::source::{fingerprint, FileFormat, Source, SourceError};
pub use failure::{AppendFailure, Why};
use requests::{Requests, Totals, Trouble};
use sending::Sending;

/// The rows that are appended.
pub enum Input {
    Source(Box<dyn Source>),
    /// Files, one after the other; the columns of CSV files are read by the types of the table's columns.
    Files {
        paths: Vec<PathBuf>,
        format: Option<FileFormat>,
    },
}

/// An append that is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct Appended {
    pub id: AppendId,
    pub rows: u64,
    /// Bytes of the batches as they were sent, unpacked.
    pub bytes: u64,
    pub batches: u64,
    /// The time from the call to the end.
    pub seconds: f64,
    /// The part that became visible at one moment: `all`, or each `partition`, or each `block` for itself.
    pub atomic: String,
    /// True if the append had been committed before this call.
    pub was_committed: bool,
}

/// Appends all of `input` to `table` (`table` or `database.table`), in its order: all of it is stored, or nothing.
///
/// Connections come from the client's pool and go back to it. Dropping the future drops the append, on the server too.
///
/// # Errors
/// Fails where the rows can't be read, the server refuses or has forgotten the append, or it can't be reached
/// in time.
pub async fn append(
    client: &Arc<Client>,
    table: &str,
    input: Input,
    mut options: AppendOptions,
) -> Result<Appended, AppendFailure> {
    let begin = Instant::now();
    let id = options.id.unwrap_or_else(AppendId::random);
    let files = match (&input, &options.source) {
        (Input::Files { paths, format }, None) => Some((paths.clone(), *format)),
        _ => None,
    };
    if let Some((paths, format)) = files {
        let made = fingerprint_of(paths, format, options.batch_bytes).await;
        options.source = Some(made.map_err(|error| AppendFailure { id, why: Why::Source(error) })?);
    }
    let requests = Requests::new(client.clone(), id, table, &options);
    let sending = Arc::new(Sending::new(requests, options));
    let mut guard = DropGuard { sending: Some(sending.clone()) };
    let outcome = match sending.clone().run(input).await {
        Err(why) => sending.unless_committed(why).await,
        outcome => outcome,
    };
    sending.window.close();
    guard.sending = None;
    if let Err(Why::Source(_)) = &outcome {
        // If this doesn't get through, the server drops it after a while.
        let _ = sending.requests.abort().await;
    }
    let seconds = begin.elapsed().as_secs_f64();
    match outcome {
        Ok(done) => {
            let Totals { rows, bytes, batches, atomic, .. } = done.totals;
            Ok(Appended { id, rows, bytes, batches, seconds, atomic, was_committed: done.was_committed })
        }
        Err(why) => Err(AppendFailure { id, why }),
    }
}

/// Makes the fingerprint on a thread that may wait for files.
async fn fingerprint_of(
    paths: Vec<PathBuf>,
    format: Option<FileFormat>,
    batch_bytes: u64,
) -> Result<String, SourceError> {
    let looked = tokio::task::spawn_blocking(move || fingerprint(&paths, format, batch_bytes)).await;
    looked.unwrap_or_else(|error| Err(SourceError::new(error)))
}

/// Drops an append on the server: nothing of it is stored. Returns false if the append is committed, and stays.
///
/// # Errors
/// Fails where the server refuses, or can't be reached.
pub async fn abort(client: &Arc<Client>, id: AppendId) -> Result<bool, AppendFailure> {
    let requests = Requests::new(client.clone(), id, "", &AppendOptions::default());
    let why = match requests.abort().await {
        Ok(()) | Err(Trouble::Final(Why::Gone)) => return Ok(true),
        Err(Trouble::Final(why)) => why,
        Err(Trouble::Again { cause, .. }) => requests.unreachable(&cause),
    };
    match requests.status().await {
        Ok(status) if status.totals.is_some() => Ok(false),
        _ => Err(AppendFailure { id, why }),
    }
}

/// A guard that drops an append on the server too when nobody waits for it any more.
struct DropGuard {
    sending: Option<Arc<Sending>>,
}

impl Drop for DropGuard {
    fn drop(&mut self) {
        let Some(sending) = self.sending.take() else { return };
        sending.window.close();
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { sending.requests.abort().await.is_ok() });
        }
    }
}
