//! The handle that all protocols share: HTTP, Flight SQL. It stands before one service for the kind of store
//! there is.

use std::sync::Arc;

use async_trait::async_trait;
use prometheus_client::registry::Registry;

use crate::admission::{Admission, Admitted};
use crate::answer::{Committed, Opened, Progress, Put, State, Status};
use crate::clickhouse::ClickHouse;
use crate::ended::End;
use crate::error::AppendError;
use crate::errors;
use crate::id::AppendId;
use crate::metrics::{register_room, Metrics};
use crate::options::{AppendOptions, Store};
use crate::request::{OpenRequest, Payload};
use crate::room::Room;
use crate::service::{Found, Service};
use crate::spool::Spool;
use crate::sql::SqlTarget;
use crate::target::Target;

/// All appends of this process.
#[derive(Clone)]
pub struct Appends {
    service: Arc<dyn AppendService>,
}

/// The answer to a batch that was announced.
pub enum Announced {
    /// The batch is here already: its body is not wanted.
    Repeated(Put),
    /// The batch has room.
    Wanted(Reservation),
}

/// A client that sends an append's batches and is there until this is dropped: so long the append isn't idle,
/// however little comes.
pub struct Attended {
    _receiving: Box<dyn Send>,
}

/// Room for one batch. Dropping it gives the room back.
pub struct Reservation {
    reserved: Box<dyn ReservedRoom>,
}

impl Appends {
    /// Starts the service. Clears the files that an earlier process left in the directory, and finishes the
    /// appends that it had decided, beside everything else. To be called on a runtime.
    ///
    /// # Errors
    /// Fails where the directory can't be read or written, or the state log can't be opened.
    pub fn start(options: AppendOptions, store: Store, registry: &mut Registry) -> Result<Appends, String> {
        let fault = |error: std::io::Error| format!("{}: {error}", options.directory.display());
        let spool = Spool::open(&options.directory).map_err(fault)?;
        let room = Room::new(options.max_memory_bytes, options.max_spool_bytes);
        register_room(registry, &room);
        let metrics = Metrics::register(registry);
        let service: Arc<dyn AppendService> = match store {
            Store::Sql(database) => started(SqlTarget::new(database), options, spool, room, metrics),
            Store::ClickHouse { client, own } => {
                let target = ClickHouse::open(&options.directory, client, own)?;
                started(target, options, spool, room, metrics)
            }
        };
        Ok(Appends { service })
    }

    #[cfg(test)]
    pub(crate) fn over<T: Target>(service: Arc<Service<T>>) -> Appends {
        Appends { service: Arc::new(service) }
    }

    /// Opens an append, or tells how far a known one is, or how it ended.
    ///
    /// # Errors
    /// Fails where the user may not append to the table, too many appends are open, or it was opened
    /// otherwise before.
    pub async fn open(&self, request: OpenRequest) -> Result<Opened, AppendError> {
        self.service.open(request).await
    }

    /// Opens an append for a client whose connection says by itself whether it is still there.
    ///
    /// # Errors
    /// Fails where `open` fails, and where the append has ended or is being committed.
    pub async fn attend(&self, request: OpenRequest) -> Result<Attended, AppendError> {
        self.service.attend(request).await
    }

    /// Finds room for a batch of about `bytes`, before its body is read. With `opening`, opens the append if
    /// it isn't known.
    ///
    /// # Errors
    /// Fails where no room comes free in time, the append can't have such a batch, it has ended, or it isn't
    /// known.
    pub async fn announce(
        &self,
        id: AppendId,
        user: &str,
        number: u64,
        bytes: u64,
        opening: Option<OpenRequest>,
    ) -> Result<Announced, AppendError> {
        self.service.announce(id, user, number, bytes, opening).await
    }

    /// Takes a batch. When this returns the batch is held, not yet stored. With `opening`, opens the append
    /// if it isn't known.
    ///
    /// # Errors
    /// Fails where `announce` fails, or the payload can't be read or kept.
    pub async fn put(
        &self,
        id: AppendId,
        user: &str,
        number: u64,
        payload: Payload,
        opening: Option<OpenRequest>,
    ) -> Result<Put, AppendError> {
        match self.announce(id, user, number, payload.size_bytes() as u64, opening).await? {
            Announced::Repeated(put) => Ok(put),
            Announced::Wanted(reservation) => reservation.put(payload).await,
        }
    }

    /// Waits for the batches that are missing, stores them and makes all visible. Repeated, it answers the
    /// same again.
    ///
    /// # Errors
    /// Fails where the append failed or was aborted, has not that many batches, or isn't known.
    pub async fn commit(
        &self,
        id: AppendId,
        user: &str,
        batches: u64,
        opening: Option<OpenRequest>,
    ) -> Result<Committed, AppendError> {
        self.service.commit(id, user, batches, opening).await
    }

    /// Drops an append, also one that isn't known, or not yet.
    ///
    /// # Errors
    /// Fails where the append is committed or being committed, and so stays, or belongs to another user.
    pub async fn abort(&self, id: AppendId, user: &str) -> Result<(), AppendError> {
        self.service.abort(id, user).await
    }

    /// Returns how far an append is, or how it ended.
    ///
    /// # Errors
    /// Fails where the append belongs to another user, or the store can't be asked.
    pub async fn status(&self, id: AppendId, user: &str) -> Result<Status, AppendError> {
        self.service.status(id, user).await
    }

    /// Returns the user's appends that are open.
    pub fn list(&self, user: &str) -> Vec<Progress> {
        let of_user = self.list_all().into_iter().filter(|(of, _)| of == user);
        of_user.map(|(_, progress)| progress).collect()
    }

    /// Returns all appends that are open, each with its user.
    pub fn list_all(&self) -> Vec<(String, Progress)> {
        self.service.list()
    }

    /// Drops the appends that are open; those that have all their batches are finished first.
    pub async fn shut_down(&self) {
        self.service.shut_down().await;
    }
}

impl Reservation {
    /// Returns the most bytes that the body may have, unpacked.
    pub fn max_bytes(&self) -> u64 {
        self.reserved.max_bytes()
    }

    /// Takes the batch that the room is for. When this returns the batch is held, not yet stored.
    ///
    /// # Errors
    /// Fails where the payload can't be read or kept, or the append has ended.
    pub async fn put(self, payload: Payload) -> Result<Put, AppendError> {
        self.reserved.put(payload).await
    }

    /// Refuses a body that is no batch: the append fails with this error.
    pub async fn refuse(self, error: AppendError) -> AppendError {
        self.reserved.refuse(error).await
    }
}

fn started<T: Target>(
    target: T,
    options: AppendOptions,
    spool: Spool,
    room: Arc<Room>,
    metrics: Metrics,
) -> Arc<dyn AppendService> {
    let service = Service::new(target, options, spool, room, metrics);
    let recovering = service.clone();
    tokio::spawn(async move { recovering.target.recover().await });
    Arc::new(service)
}

/// Waits for an append's end.
pub(crate) async fn commit<T: Target>(
    service: &Arc<Service<T>>,
    id: AppendId,
    user: &str,
    batches: u64,
    opening: Option<OpenRequest>,
) -> Result<Committed, AppendError> {
    let end = match service.find(id, user, opening, &mut false).await? {
        Found::Open(append) => {
            append.ends_with(batches)?;
            append.ended().await
        }
        Found::Ended(end) => end,
        Found::Committing => return Err(errors::still_committing(id)),
    };
    match end {
        End::Committed(committed) if committed.batches == batches => Ok(committed),
        End::Committed(committed) => Err(errors::committed_otherwise(committed.batches, batches)),
        End::Aborted => Err(errors::aborted(id)),
        End::Failed(error) => Err(error),
    }
}

/// The calls of [`Appends`], whatever the store.
#[async_trait]
pub(crate) trait AppendService: Send + Sync {
    async fn open(&self, request: OpenRequest) -> Result<Opened, AppendError>;
    async fn attend(&self, request: OpenRequest) -> Result<Attended, AppendError>;
    async fn announce(
        &self,
        id: AppendId,
        user: &str,
        number: u64,
        bytes: u64,
        opening: Option<OpenRequest>,
    ) -> Result<Announced, AppendError>;
    async fn commit(
        &self,
        id: AppendId,
        user: &str,
        batches: u64,
        opening: Option<OpenRequest>,
    ) -> Result<Committed, AppendError>;
    async fn abort(&self, id: AppendId, user: &str) -> Result<(), AppendError>;
    async fn status(&self, id: AppendId, user: &str) -> Result<Status, AppendError>;
    fn list(&self) -> Vec<(String, Progress)>;
    async fn shut_down(&self);
}

#[async_trait]
trait ReservedRoom: Send {
    fn max_bytes(&self) -> u64;
    async fn put(self: Box<Self>, payload: Payload) -> Result<Put, AppendError>;
    async fn refuse(self: Box<Self>, error: AppendError) -> AppendError;
}

#[async_trait]
impl<T: Target> ReservedRoom for Admission<T> {
    fn max_bytes(&self) -> u64 {
        Admission::max_bytes(self)
    }

    async fn put(self: Box<Self>, payload: Payload) -> Result<Put, AppendError> {
        let (service, id) = (self.service.clone(), self.append.id);
        let put = Admission::put(*self, payload).await;
        if put.is_err() {
            service.settled(id).await;
        }
        put
    }

    async fn refuse(self: Box<Self>, error: AppendError) -> AppendError {
        Admission::refuse(*self, error).await
    }
}

#[async_trait]
impl<T: Target> AppendService for Arc<Service<T>> {
    async fn open(&self, request: OpenRequest) -> Result<Opened, AppendError> {
        Service::open(self, request).await
    }

    async fn attend(&self, request: OpenRequest) -> Result<Attended, AppendError> {
        let receiving = Service::attend(self, request).await?;
        Ok(Attended { _receiving: Box::new(receiving) })
    }

    async fn announce(
        &self,
        id: AppendId,
        user: &str,
        number: u64,
        bytes: u64,
        opening: Option<OpenRequest>,
    ) -> Result<Announced, AppendError> {
        match self.admit(id, user, number, bytes, opening).await {
            Ok(Admitted::Repeated(put)) => Ok(Announced::Repeated(put)),
            Ok(Admitted::Take(admission)) => Ok(Announced::Wanted(Reservation { reserved: Box::new(admission) })),
            Err(error) => {
                self.settled(id).await;
                Err(error)
            }
        }
    }

    async fn commit(
        &self,
        id: AppendId,
        user: &str,
        batches: u64,
        opening: Option<OpenRequest>,
    ) -> Result<Committed, AppendError> {
        let committed = commit(self, id, user, batches, opening).await;
        if committed.is_err() {
            self.settled(id).await;
        }
        committed
    }

    async fn abort(&self, id: AppendId, user: &str) -> Result<(), AppendError> {
        let aborted = Service::abort(self, id, user).await;
        self.settled(id).await;
        aborted
    }

    async fn status(&self, id: AppendId, user: &str) -> Result<Status, AppendError> {
        let status = Service::status(self, id, user).await;
        if status.as_ref().is_ok_and(|status| matches!(status.state(), State::Aborted | State::Failed)) {
            self.settled(id).await;
        }
        status
    }

    fn list(&self) -> Vec<(String, Progress)> {
        Service::list(self)
    }

    async fn shut_down(&self) {
        Service::shut_down(self).await;
    }
}
