//! Batches that were put into files, read again: one ahead of the one that is being applied, where a place is
//! free.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::sync::OwnedSemaphorePermit;
use tokio::task::JoinHandle;

use crate::error::AppendError;
use crate::errors;
use crate::open_append::{Append, HeldBatch};
use crate::room::Grant;
use crate::service::Service;
use crate::spool::Spooled;
use crate::target::{Held, Target};

/// A batch that is being read.
pub(crate) struct Reading<B> {
    number: u64,
    task: JoinHandle<Result<B, AppendError>>,
    permit: OwnedSemaphorePermit,
}

/// A batch in memory beyond the window. It keeps its place among those as long as this lives.
pub(crate) struct ReadBack<B> {
    pub(crate) held: Held<B>,
    _permit: OwnedSemaphorePermit,
}

impl<B: Send + 'static> Reading<B> {
    pub(crate) fn begin<T: Target<Batch = B>>(
        service: &Service<T>,
        append: &Append<T>,
        number: u64,
        (file, grant): (Spooled, Grant),
        permit: OwnedSemaphorePermit,
    ) -> Reading<B> {
        let (table, max_bytes) = (append.table.clone(), service.options.max_batch_bytes);
        let task = tokio::task::spawn_blocking(move || {
            let payload = file.read().map_err(|cause| errors::lost_file(&cause))?;
            let read = T::read(&table, payload, max_bytes)?;
            drop((file, grant));
            Ok(read.batch)
        });
        Reading { number, task, permit }
    }

    pub(crate) async fn batch(self) -> Result<ReadBack<B>, AppendError> {
        let read = self.task.await.map_err(|_| errors::fault_of_ours())?;
        let batch = read.map_err(|error| error.at(self.number, None))?;
        Ok(ReadBack { held: Held { number: self.number, batch }, _permit: self.permit })
    }
}

/// Begins to read the next batch, if that is in a file and others leave a place. It never waits for a place:
/// two appends that hold one and wait for another would wait for ever.
pub(crate) fn read_ahead<T: Target>(
    service: &Service<T>,
    append: &Arc<Append<T>>,
    batches: &mut VecDeque<(u64, HeldBatch<T::Batch>)>,
) -> Option<Reading<T::Batch>> {
    if !matches!(batches.front(), Some((_, HeldBatch::Spooled { .. }))) {
        return None;
    }
    let permit = service.try_read_back()?;
    match batches.pop_front() {
        Some((number, HeldBatch::Spooled { file, grant })) => {
            Some(Reading::begin(service, append, number, (file, grant), permit))
        }
        _ => None,
    }
}
