//! All appends of one store: found by their ids, opened, ended, remembered.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OnceCell, OwnedSemaphorePermit, Semaphore};

use crate::answer::{Opened, Progress, State, Status};
use crate::applying;
use crate::ended::{End, Ended, EndedAppend};
use crate::error::AppendError;
use crate::errors;
use crate::id::AppendId;
use crate::metrics::Metrics;
use crate::open_append::{Append, Receiving};
use crate::options::AppendOptions;
use crate::reopening::{check_reopening, check_source};
use crate::request::OpenRequest;
use crate::room::Room;
use crate::spool::Spool;
use crate::target::{Outcome, Target};

pub(crate) struct Service<T: Target> {
    pub(crate) target: T,
    pub(crate) options: AppendOptions,
    pub(crate) room: Arc<Room>,
    pub(crate) spool: Spool,
    pub(crate) metrics: Metrics,
    /// Memory of bodies that are there only until they are in a file, in KiB.
    passing: Arc<Semaphore>,
    /// The places of batches that are read back from files.
    read_back: Arc<Semaphore>,
    known: Mutex<Known<T>>,
    is_closing: AtomicBool,
}

struct Known<T: Target> {
    open: HashMap<AppendId, Opening<T>>,
    /// Appends that have ended, while their tasks have not.
    settling: HashMap<AppendId, Arc<Append<T>>>,
    ended: Ended,
}

/// An append that is open, or just being opened.
struct Opening<T: Target> {
    user: String,
    cell: Arc<OnceCell<Arc<Append<T>>>>,
}

/// The append that an id stands for.
pub(crate) enum Found<T: Target> {
    Open(Arc<Append<T>>),
    Ended(End),
    Committing,
}

/// The number of batches of all appends that are in memory beyond their windows because they were read back
/// from files.
const MAX_READ_BACK: usize = 4;
const KIB: u64 = 1024;
/// The time that appends that have all their batches may take to be stored at the end.
const LAST_COMMITS: Duration = Duration::from_secs(20);
/// The time for which the news of an end waits for the store to have nothing of the append any more.
const SETTLING: Duration = Duration::from_secs(5);

impl<T: Target> Service<T> {
    pub(crate) fn new(target: T, options: AppendOptions, spool: Spool, room: Arc<Room>, metrics: Metrics) -> Arc<Self> {
        let passing_kib = (options.max_memory_bytes.max(options.max_batch_bytes) / KIB).clamp(1, u64::from(u32::MAX));
        let service = Service {
            target,
            room,
            spool,
            metrics,
            passing: Arc::new(Semaphore::new(passing_kib as usize)),
            read_back: Arc::new(Semaphore::new(MAX_READ_BACK)),
            known: Mutex::new(Known { open: HashMap::new(), settling: HashMap::new(), ended: Ended::default() }),
            is_closing: AtomicBool::new(false),
            options,
        };
        Arc::new(service)
    }

    fn known(&self) -> MutexGuard<'_, Known<T>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) async fn open(self: &Arc<Self>, request: OpenRequest) -> Result<Opened, AppendError> {
        let (id, user) = (request.id.unwrap_or_else(AppendId::random), request.credentials.user.clone());
        let is_random = request.id.is_none();
        let mut is_new = false;
        let found = match is_random {
            true => self.open_new(id, request, &mut is_new).await?,
            false => self.find(id, &user, Some(request), &mut is_new).await?,
        };
        let status = match found {
            Found::Open(append) => Status::Open(append.progress()),
            Found::Ended(end) => status_of(id, end),
            Found::Committing => Status::Other { id, state: State::Committing, error: None },
        };
        Ok(Opened { id, is_new, status })
    }

    /// Opens an append, or finds one that is open, and keeps it from being idle.
    pub(crate) async fn attend(self: &Arc<Self>, request: OpenRequest) -> Result<Receiving<T>, AppendError> {
        let (id, user) = (request.id.unwrap_or_else(AppendId::random), request.credentials.user.clone());
        let end = match self.find(id, &user, Some(request), &mut false).await? {
            Found::Open(append) => return Ok(append.receiving()),
            Found::Ended(end) => end,
            Found::Committing => return Err(errors::still_committing(id)),
        };
        Err(match end {
            End::Committed(_) => errors::already_committed(id),
            End::Aborted => errors::aborted(id),
            End::Failed(error) => error,
        })
    }

    /// Finds the append of an id; with `opening` it is opened if there is none.
    pub(crate) async fn find(
        self: &Arc<Self>,
        id: AppendId,
        user: &str,
        opening: Option<OpenRequest>,
        is_new: &mut bool,
    ) -> Result<Found<T>, AppendError> {
        let cell = {
            let known = self.known();
            if let Some(ended) = known.ended.get(id) {
                return ended_as(id, ended, user, opening.as_ref());
            }
            known.open.get(&id).map(|opening| opening.cell.clone())
        };
        if let Some(append) = cell.as_ref().and_then(|cell| cell.get()) {
            check_user(id, &append.opening.credentials.user, user)?;
            if let Some(opening) = &opening {
                check_reopening(id, &append.opening, opening)?;
            }
            return Ok(found(append));
        }
        match self.target.outcome(id).await? {
            Outcome::Committed { committed, user: whose } => {
                check_user(id, &whose, user).map(|()| Found::Ended(End::Committed(committed)))
            }
            Outcome::Committing { user: whose } => check_user(id, &whose, user).map(|()| Found::Committing),
            Outcome::Nothing => match opening {
                Some(opening) => self.open_new(id, opening, is_new).await,
                None if self.target.remembers_for_all() => Err(errors::gone(id)),
                None => Err(errors::not_known_here(id)),
            },
        }
    }

    async fn open_new(
        self: &Arc<Self>,
        id: AppendId,
        opening: OpenRequest,
        is_new: &mut bool,
    ) -> Result<Found<T>, AppendError> {
        let user = opening.credentials.user.clone();
        let cell = {
            let mut known = self.known();
            if self.is_closing() {
                return Err(errors::shutting_down());
            }
            if let Some(ended) = known.ended.get(id) {
                return ended_as(id, ended, &user, Some(&opening));
            }
            if !known.open.contains_key(&id) {
                self.check_number(&known, &user)?;
            }
            let opening = || Opening { user: user.clone(), cell: Arc::default() };
            known.open.entry(id).or_insert_with(opening).cell.clone()
        };
        let opened = cell.get_or_try_init(|| async {
            let table = self.target.look_up(&opening).await?;
            *is_new = true;
            Ok(self.opened(id, opening.clone(), table))
        });
        match opened.await {
            Ok(append) => {
                check_user(id, &append.opening.credentials.user, &user)?;
                check_reopening(id, &append.opening, &opening)?;
                if self.is_closing() {
                    // It was not there yet when all that is open was ended, and would keep the store from being closed.
                    self.end(append, End::Failed(errors::shutting_down()), false);
                }
                Ok(found(append))
            }
            Err(error) => {
                self.not_opened(id, &cell, &user, &error);
                Err(error)
            }
        }
    }

    /// Checks the numbers of open appends, so that one user leaves room for others.
    fn check_number(&self, known: &Known<T>, user: &str) -> Result<(), AppendError> {
        let AppendOptions { max_open, max_open_per_user, .. } = self.options;
        if known.open.len() >= max_open {
            return Err(errors::too_many_open(max_open));
        }
        let of_user = known.open.values().filter(|open| open.user == user).count();
        match of_user >= max_open_per_user {
            true => Err(errors::too_many_of_user(user, max_open_per_user)),
            false => Ok(()),
        }
    }

    fn opened(self: &Arc<Self>, id: AppendId, opening: OpenRequest, table: T::Table) -> Arc<Append<T>> {
        let (window_bytes, timeout_ms) = (self.options.window_bytes, self.options.idle_timeout.as_millis() as u64);
        let append = Arc::new(Append::<T>::new(id, opening, table, window_bytes, timeout_ms));
        tracing::debug!(append = %id, table = append.table_name(), "an append was opened");
        self.metrics.open.inc();
        tokio::spawn(applying::apply(self.clone(), append.clone()));
        append
    }

    /// Notes that an append could not be opened. A final error is remembered: batches of the append that come
    /// later are told the same.
    fn not_opened(&self, id: AppendId, cell: &Arc<OnceCell<Arc<Append<T>>>>, user: &str, error: &AppendError) {
        let mut known = self.known();
        let is_this = known.open.get(&id).is_some_and(|open| Arc::ptr_eq(&open.cell, cell) && cell.get().is_none());
        if !is_this {
            return;
        }
        known.open.remove(&id);
        if !error.is_passing() {
            let end = End::Failed(error.clone());
            known.ended.insert(id, EndedAppend { user: user.to_owned(), source: None, was_open: false, end });
        }
    }

    /// Ends an append. Returns false if it has ended before, or is being committed and is not to be stopped.
    pub(crate) fn end(&self, append: &Arc<Append<T>>, end: End, even_committing: bool) -> bool {
        if !append.finish(end.clone(), even_committing) {
            return false;
        }
        self.metrics.ended(&end);
        self.metrics.open.dec();
        match &end {
            End::Committed(committed) => {
                let (rows, seconds) = (committed.rows, committed.seconds);
                tracing::debug!(append = %append.id, table = append.table_name(), rows, seconds, "an append was committed");
            }
            End::Aborted => tracing::info!(append = %append.id, table = append.table_name(), "an append was aborted"),
            End::Failed(error) => {
                tracing::warn!(append = %append.id, table = append.table_name(), %error, "an append failed: nothing of it is stored");
            }
        }
        let (user, source) = (append.opening.credentials.user.clone(), append.opening.source.clone());
        let mut known = self.known();
        known.ended.insert(append.id, EndedAppend { user, source, was_open: true, end });
        known.open.remove(&append.id);
        if !append.is_settled() {
            known.settling.insert(append.id, append.clone());
        }
        true
    }

    /// Notes that the task of an append is done.
    pub(crate) fn settle(&self, append: &Append<T>) {
        append.settle();
        self.known().settling.remove(&append.id);
    }

    /// Waits a while until nothing is done any more for an append that has ended: a client that is told of its
    /// end may drop its database next, and must not meet a staging table that is just being made or dropped.
    pub(crate) async fn settled(&self, id: AppendId) {
        let settling = self.known().settling.get(&id).cloned();
        if let Some(append) = settling {
            // Past this the store does not answer, and whoever waits has heard nothing for long enough.
            let _ = tokio::time::timeout(SETTLING, append.settled()).await;
        }
    }

    pub(crate) async fn abort(self: &Arc<Self>, id: AppendId, user: &str) -> Result<(), AppendError> {
        let found = match self.find(id, user, None, &mut false).await {
            // It may be on its way: what comes of it later is refused.
            Err(error) if error.status == 404 => match self.remember_aborted(id, user) {
                true => return Ok(()),
                false => self.wait_opened(id).await,
            },
            found => found?,
        };
        let end = match found {
            Found::Open(append) => match self.end(&append, End::Aborted, false) {
                true => return Ok(()),
                false => append.ended().await,
            },
            Found::Ended(end) => end,
            Found::Committing => return Err(errors::still_committing(id)),
        };
        match end {
            End::Committed(_) => Err(errors::already_committed(id)),
            End::Aborted | End::Failed(_) => Ok(()),
        }
    }

    /// Remembers that an append was aborted. Returns false if it is just being opened.
    fn remember_aborted(&self, id: AppendId, user: &str) -> bool {
        let mut known = self.known();
        let is_opening = known.open.contains_key(&id);
        if !is_opening {
            known
                .ended
                .insert(id, EndedAppend { user: user.to_owned(), source: None, was_open: false, end: End::Aborted });
        }
        !is_opening
    }

    /// Waits for an append that is just being opened by another request.
    async fn wait_opened(&self, id: AppendId) -> Found<T> {
        let cell = self.known().open.get(&id).map(|opening| opening.cell.clone());
        // Whoever opens it says what became of it; here nothing is opened.
        let opened = match &cell {
            Some(cell) => cell.get_or_try_init(|| async { Err(()) }).await.ok().cloned(),
            None => None,
        };
        opened.map_or(Found::Ended(End::Aborted), Found::Open)
    }

    pub(crate) async fn status(self: &Arc<Self>, id: AppendId, user: &str) -> Result<Status, AppendError> {
        match self.find(id, user, None, &mut false).await {
            Ok(Found::Open(append)) => Ok(Status::Open(append.progress())),
            Ok(Found::Ended(end)) => Ok(status_of(id, end)),
            Ok(Found::Committing) => Ok(Status::Other { id, state: State::Committing, error: None }),
            Err(error) if error.status == 404 => {
                let state = if self.target.remembers_for_all() { State::Gone } else { State::Unknown };
                Ok(Status::Other { id, state, error: None })
            }
            Err(error) => Err(error),
        }
    }

    /// Returns the appends that are open, each with its user.
    pub(crate) fn list(&self) -> Vec<(String, Progress)> {
        let of = |append: &Arc<Append<T>>| (append.opening.credentials.user.clone(), append.progress());
        self.open_appends().iter().map(of).collect()
    }

    fn open_appends(&self) -> Vec<Arc<Append<T>>> {
        let mut appends: Vec<_> = self.known().open.values().filter_map(|open| open.cell.get().cloned()).collect();
        appends.sort_by_key(|append| append.opened_at);
        appends
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::Acquire)
    }

    /// Drops the appends that are open. Those that have all their batches are brought to their end.
    pub(crate) async fn shut_down(&self) {
        self.is_closing.store(true, Ordering::Release);
        let (whole, partial): (Vec<_>, Vec<_>) = self.open_appends().into_iter().partition(|append| append.is_whole());
        let dropped =
            partial.iter().filter(|append| self.end(append, End::Failed(errors::shutting_down()), false)).count();
        if dropped > 0 {
            tracing::warn!(appends = dropped, "appends were open at the end; nothing of them is stored");
        }
        let ended = async {
            for append in whole.iter().chain(&partial) {
                append.ended().await;
            }
        };
        if tokio::time::timeout(LAST_COMMITS, ended).await.is_err() {
            tracing::warn!("some appends were still being committed at the end; the next start finishes or drops them");
        }
        self.target.shut_down().await;
    }

    /// Waits for room for a body on its way into a file.
    pub(crate) async fn passing(&self, bytes: u64) -> Option<OwnedSemaphorePermit> {
        let kib = (bytes / KIB + 1).min(self.options.max_batch_bytes / KIB).max(1);
        self.passing.clone().acquire_many_owned(kib as u32).await.ok()
    }

    /// Waits for a place for a batch that is read back.
    pub(crate) async fn read_back(&self) -> Option<OwnedSemaphorePermit> {
        self.read_back.clone().acquire_owned().await.ok()
    }

    /// Takes a place for a batch that is read back, if one is free.
    pub(crate) fn try_read_back(&self) -> Option<OwnedSemaphorePermit> {
        self.read_back.clone().try_acquire_owned().ok()
    }
}

/// Returns an append by its state. A client that waits for an append's end hears of it a moment before it is
/// among those that have ended.
fn found<T: Target>(append: &Arc<Append<T>>) -> Found<T> {
    match append.end() {
        Some(end) => Found::Ended(end),
        None => Found::Open(append.clone()),
    }
}

/// Returns an append that has ended. A committed one has nothing to do with another source that goes by its id.
fn ended_as<T: Target>(
    id: AppendId,
    ended: &EndedAppend,
    user: &str,
    opening: Option<&OpenRequest>,
) -> Result<Found<T>, AppendError> {
    check_user(id, &ended.user, user)?;
    if let (End::Committed(_), Some(opening)) = (&ended.end, opening) {
        check_source(id, ended.source.as_deref(), opening.source.as_deref())?;
    }
    Ok(Found::Ended(ended.end.clone()))
}

fn check_user(id: AppendId, whose: &str, user: &str) -> Result<(), AppendError> {
    match whose == user {
        true => Ok(()),
        false => Err(errors::not_yours(id)),
    }
}

fn status_of(id: AppendId, end: End) -> Status {
    match end {
        End::Committed(committed) => Status::Committed(committed),
        End::Aborted => Status::Other { id, state: State::Aborted, error: None },
        End::Failed(error) => Status::Other { id, state: State::Failed, error: Some(error) },
    }
}
