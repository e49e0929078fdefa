//! The admission of a batch: first room is found for it, then it may be received, then it is kept.
//!
//! Room is found before the body is read, so that a body never waits in memory for others to go. Memory comes
//! first. While something of the append is being applied, room will come free, and a batch waits for that;
//! only when its append can't go on, or too slowly, is it put into a file. The lowest missing batch is then
//! let in whatever the bounds say, since nothing else would ever go.

use std::sync::Arc;

use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use crate::answer::Put;
use crate::ended::End;
use crate::error::AppendError;
use crate::errors;
use crate::id::AppendId;
use crate::open_append::{late_put, Append, HeldBatch, Receiving};
use crate::progress::Standing;
use crate::request::{OpenRequest, Payload};
use crate::room::{Grant, Medium};
use crate::service::{Found, Service};
use crate::target::{Read, Target};

/// The decision on a batch that is announced.
pub(crate) enum Admitted<T: Target> {
    /// The batch is here already: its body is not wanted.
    Repeated(Put),
    Take(Admission<T>),
}

/// Room for a batch.
pub(crate) struct Admission<T: Target> {
    pub(crate) service: Arc<Service<T>>,
    pub(crate) append: Arc<Append<T>>,
    number: u64,
    grant: Grant,
    /// Memory for the body until it is in a file.
    _passing: Option<OwnedSemaphorePermit>,
    _receiving: Receiving<T>,
}

/// The size from which on payloads step out of the way of the other tasks while they are read.
const LARGE_BYTES: usize = 256 << 10;

impl<T: Target> Service<T> {
    /// Waits for room for batch `number`, of about `bytes`.
    pub(crate) async fn admit(
        self: &Arc<Self>,
        id: AppendId,
        user: &str,
        number: u64,
        bytes: u64,
        opening: Option<OpenRequest>,
    ) -> Result<Admitted<T>, AppendError> {
        let append = match self.find(id, user, opening, &mut false).await? {
            Found::Open(append) => append,
            Found::Ended(end) => return late_put(id, number, &end).map(Admitted::Repeated),
            Found::Committing => return Err(errors::still_committing(id)),
        };
        if bytes > self.options.max_batch_bytes {
            return Err(self.too_large(&append, number));
        }
        let receiving = append.receiving();
        let begun = Instant::now();
        let deadline = begun + self.options.room_wait;
        let spools_from = begun + self.options.room_wait / 4;
        let mut has_waited = false;
        loop {
            let (mut freed, mut changes) = (self.room.freed(), append.changes());
            let is_last = Instant::now() >= deadline;
            let lowest = match append.standing(number) {
                Err(end) => return late_put(id, number, &end).map(Admitted::Repeated),
                Ok(Standing::Here) => {
                    let next = append.lowest_missing();
                    return Ok(Admitted::Repeated(Put { id, batch: number, repeated: true, next }));
                }
                Ok(Standing::BehindEnd { batches }) => return Err(errors::behind_end(number, batches)),
                Ok(Standing::TooLarge) => return Err(errors::number_too_large(number)),
                Ok(Standing::TooFarAhead) => None,
                Ok(Standing::Missing { lowest }) => Some(lowest),
            };
            let may_overflow = !append.is_moving() || Instant::now() >= spools_from;
            if let Some(grant) = lowest.and_then(|lowest| self.grant(&append, bytes, lowest, may_overflow)) {
                // Bodies that come slowly must not keep the one away that others wait for.
                let waits = grant.medium() == Medium::Spool && lowest != Some(true);
                let passing = if waits { self.passing(bytes).await } else { None };
                return Ok(Admitted::Take(Admission {
                    service: self.clone(),
                    append,
                    number,
                    grant,
                    _passing: passing,
                    _receiving: receiving,
                }));
            }
            if is_last || self.is_closing() {
                return Err(errors::no_room(append.lowest_missing()));
            }
            if !std::mem::replace(&mut has_waited, true) {
                self.metrics.waits.inc();
            }
            let wake = if Instant::now() < spools_from { spools_from } else { deadline };
            tokio::select! {
                _ = freed.changed() => {}
                _ = changes.changed() => {}
                () = tokio::time::sleep_until(wake) => {}
            }
        }
    }

    /// Grants room if there is some. Without `may_overflow` that is in memory only, also for the lowest
    /// batch: the batches that are there get fewer by themselves.
    fn grant(&self, append: &Append<T>, bytes: u64, is_lowest: bool, may_overflow: bool) -> Option<Grant> {
        let granted = self.room.try_grant(&append.window, Medium::Memory, bytes);
        if granted.is_some() || !may_overflow {
            return granted;
        }
        let spooled = self.room.try_grant(&append.window, Medium::Spool, bytes);
        spooled.or_else(|| is_lowest.then(|| self.room.grant_memory(&append.window, bytes)))
    }

    /// Resizes the grant, since a batch may be more than was announced once it is unpacked. Waits for room
    /// for that, as others do for theirs. Returns false if the batch has to go to a file.
    async fn grow(&self, append: &Append<T>, grant: &mut Grant, bytes: u64) -> bool {
        let spools_from = Instant::now() + self.options.room_wait / 4;
        loop {
            let (mut freed, mut changes) = (self.room.freed(), append.changes());
            if grant.try_resize(bytes) {
                return true;
            }
            if !append.is_moving() || Instant::now() >= spools_from {
                return false;
            }
            tokio::select! {
                _ = freed.changed() => {}
                _ = changes.changed() => {}
                () = tokio::time::sleep_until(spools_from) => {}
            }
        }
    }

    fn too_large(&self, append: &Arc<Append<T>>, number: u64) -> AppendError {
        let error = errors::batch_too_large(self.options.max_batch_bytes).at(number, None);
        self.end(append, End::Failed(error.clone()), false);
        error
    }
}

impl<T: Target> Admission<T> {
    /// Returns the most bytes that the body may have, unpacked.
    pub(crate) fn max_bytes(&self) -> u64 {
        self.service.options.max_batch_bytes
    }

    /// Refuses a body that can't be read. The append ends here, since a client that sends such batches has
    /// nothing better to come.
    pub(crate) async fn refuse(self, error: AppendError) -> AppendError {
        let error = error.at(self.number, None);
        self.service.end(&self.append, End::Failed(error.clone()), false);
        self.service.settled(self.append.id).await;
        error
    }

    /// Keeps the batch.
    pub(crate) async fn put(self, payload: Payload) -> Result<Put, AppendError> {
        let bytes = payload.size_bytes() as u64;
        if bytes > self.max_bytes() {
            return Err(self.service.too_large(&self.append, self.number));
        }
        let read = || T::read(&self.append.table, payload.clone(), self.max_bytes());
        let read = match bytes as usize > LARGE_BYTES {
            true => tokio::task::block_in_place(read),
            false => read(),
        };
        let Read { batch, rows, held_bytes } = match read {
            Ok(read) => read,
            Err(error) => return Err(self.refuse(error).await),
        };
        let Admission { service, append, number, mut grant, .. } = self;
        let medium = match grant.medium() {
            Medium::Memory if service.grow(&append, &mut grant, held_bytes).await => Medium::Memory,
            _ => Medium::Spool,
        };
        let kept = match medium {
            Medium::Memory => HeldBatch::Memory { batch, grant },
            Medium::Spool => {
                drop(batch);
                match spooled(&service, &append, number, payload.clone(), grant).await {
                    Ok(kept) => kept,
                    Err(error) => match append.standing(number) {
                        // With no room in files either, only the lowest is kept.
                        Ok(Standing::Missing { lowest: true }) => {
                            let grant = service.room.grant_memory(&append.window, held_bytes);
                            let read = T::read(&append.table, payload, service.options.max_batch_bytes)?;
                            HeldBatch::Memory { batch: read.batch, grant }
                        }
                        // Another request brought it meanwhile.
                        Ok(Standing::Here) => {
                            let next = append.lowest_missing();
                            return Ok(Put { id: append.id, batch: number, repeated: true, next });
                        }
                        // It ended meanwhile, and its folder went.
                        Err(end) => return late_put(append.id, number, &end),
                        Ok(_) => return Err(error),
                    },
                }
            }
        };
        service.metrics.batches.inc();
        append.keep(number, kept, rows, bytes)
    }
}

async fn spooled<T: Target>(
    service: &Arc<Service<T>>,
    append: &Arc<Append<T>>,
    number: u64,
    payload: Payload,
    grant: Grant,
) -> Result<HeldBatch<T::Batch>, AppendError> {
    let bytes = payload.size_bytes() as u64;
    let mut grant = match grant.medium() {
        Medium::Spool => grant,
        Medium::Memory => {
            let room = service.room.try_grant(&append.window, Medium::Spool, bytes);
            room.ok_or_else(|| errors::no_room(append.lowest_missing()))?
        }
    };
    if !grant.try_resize(bytes) {
        return Err(errors::no_room(append.lowest_missing()));
    }
    append.spools();
    let (spool, id) = (service.spool.clone(), append.id);
    let written = tokio::task::spawn_blocking(move || spool.write(id, number, &payload)).await;
    let file = written.map_err(|_| errors::fault_of_ours())?.map_err(|cause| errors::no_space(&cause))?;
    // A batch that came as rows takes what it is written as.
    if !grant.try_resize(file.bytes) {
        return Err(errors::no_room(append.lowest_missing()));
    }
    service.metrics.spooled.inc();
    Ok(HeldBatch::Spooled { file, grant })
}
