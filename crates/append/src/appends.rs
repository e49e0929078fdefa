//! The handle that all doors share: HTTP, Flight SQL. Behind it, one service for the kind of store there is.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use prometheus_client::registry::Registry;

use crate::admission::{Admission, Admitted};
use crate::answer::{Committed, Opened, Progress, Put, State, Status};
use crate::clickhouse::ClickHouse;
use crate::duckdb::DuckDbTarget;
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
use crate::target::Target;

/// All appends of this process.
#[derive(Clone)]
pub struct Appends {
    door: Arc<dyn Door>,
}

/// A batch that was announced.
pub enum Announced {
    /// It is here already: its body is not wanted.
    Repeated(Put),
    /// There is room for it.
    Wanted(Place),
}

/// Somebody who sends an append's batches is there, until this is dropped: so long it isn't idle, however little comes.
pub struct Attended {
    _receiving: Box<dyn Send>,
}

/// Room for one batch. Dropping it gives the room back.
pub struct Place {
    slot: Box<dyn Slot>,
}

impl Appends {
    /// Clears what an earlier process left in the directory, and finishes what that one had decided, beside everything else.
    /// To be called on a runtime.
    pub fn start(options: AppendOptions, store: Store, registry: &mut Registry) -> Result<Appends, String> {
        let fault = |error: std::io::Error| format!("{}: {error}", options.directory.display());
        let spool = Spool::open(&options.directory).map_err(fault)?;
        let room = Room::new(options.max_memory_bytes, options.max_spool_bytes);
        register_room(registry, &room);
        let metrics = Metrics::register(registry);
        let door: Arc<dyn Door> = match store {
            Store::DuckDb(duckdb) => started(DuckDbTarget::new(duckdb), options, spool, room, metrics),
            Store::ClickHouse { client, own } => {
                let target = ClickHouse::open(&options.directory, client, own)?;
                started(target, options, spool, room, metrics)
            }
        };
        Ok(Appends { door })
    }

    #[cfg(test)]
    pub(crate) fn over<T: Target>(service: Arc<Service<T>>) -> Appends {
        Appends { door: Arc::new(service) }
    }

    /// Opens an append, or tells how far a known one is, or how it ended.
    pub async fn open(&self, request: OpenRequest) -> Result<Opened, AppendError> {
        self.door.open(request).await
    }

    /// Opens an append for a client whose connection says by itself whether it is still there.
    pub async fn attend(&self, request: OpenRequest) -> Result<Attended, AppendError> {
        self.door.attend(request).await
    }

    /// Finds room for a batch of about `bytes`, before its body is read. With `opening`, opens the append if it isn't known.
    pub async fn announce(
        &self,
        id: AppendId,
        user: &str,
        number: u64,
        bytes: u64,
        opening: Option<OpenRequest>,
    ) -> Result<Announced, AppendError> {
        self.door.announce(id, user, number, bytes, opening).await
    }

    /// Takes a batch. When this returns it is held, not yet stored. With `opening`, opens the append if it isn't known.
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
            Announced::Wanted(place) => place.put(payload).await,
        }
    }

    /// Waits for the batches that are missing, stores them and makes all visible. Repeated, it answers the same again.
    pub async fn commit(
        &self,
        id: AppendId,
        user: &str,
        batches: u64,
        opening: Option<OpenRequest>,
    ) -> Result<Committed, AppendError> {
        self.door.commit(id, user, batches, opening).await
    }

    /// Drops an append, also one that isn't known, or not yet. One that is committed, or is being committed, stays: an error.
    pub async fn abort(&self, id: AppendId, user: &str) -> Result<(), AppendError> {
        self.door.abort(id, user).await
    }

    pub async fn status(&self, id: AppendId, user: &str) -> Result<Status, AppendError> {
        self.door.status(id, user).await
    }

    /// The user's appends that are open.
    pub async fn list(&self, user: &str) -> Vec<Progress> {
        self.door.list(user)
    }

    /// Drops what is open; what has all its batches is finished first.
    pub async fn shut_down(&self) {
        self.door.shut_down().await;
    }
}

impl Place {
    /// What the body may have, unpacked.
    pub fn max_bytes(&self) -> u64 {
        self.slot.max_bytes()
    }

    pub async fn put(self, payload: Payload) -> Result<Put, AppendError> {
        self.slot.put(payload).await
    }

    /// The body is no batch: the append fails with this.
    pub async fn refuse(self, error: AppendError) -> AppendError {
        self.slot.refuse(error).await
    }
}

fn started<T: Target>(
    target: T,
    options: AppendOptions,
    spool: Spool,
    room: Arc<Room>,
    metrics: Metrics,
) -> Arc<dyn Door> {
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

type Pending<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What [`Appends`] can do, whatever the store.
trait Door: Send + Sync {
    fn open(&self, request: OpenRequest) -> Pending<'_, Result<Opened, AppendError>>;
    fn attend(&self, request: OpenRequest) -> Pending<'_, Result<Attended, AppendError>>;
    fn announce<'a>(
        &'a self,
        id: AppendId,
        user: &'a str,
        number: u64,
        bytes: u64,
        opening: Option<OpenRequest>,
    ) -> Pending<'a, Result<Announced, AppendError>>;
    fn commit<'a>(
        &'a self,
        id: AppendId,
        user: &'a str,
        batches: u64,
        opening: Option<OpenRequest>,
    ) -> Pending<'a, Result<Committed, AppendError>>;
    fn abort<'a>(&'a self, id: AppendId, user: &'a str) -> Pending<'a, Result<(), AppendError>>;
    fn status<'a>(&'a self, id: AppendId, user: &'a str) -> Pending<'a, Result<Status, AppendError>>;
    fn list(&self, user: &str) -> Vec<Progress>;
    fn shut_down(&self) -> Pending<'_, ()>;
}

trait Slot: Send {
    fn max_bytes(&self) -> u64;
    fn put(self: Box<Self>, payload: Payload) -> Pending<'static, Result<Put, AppendError>>;
    fn refuse(self: Box<Self>, error: AppendError) -> Pending<'static, AppendError>;
}

impl<T: Target> Slot for Admission<T> {
    fn max_bytes(&self) -> u64 {
        Admission::max_bytes(self)
    }

    fn put(self: Box<Self>, payload: Payload) -> Pending<'static, Result<Put, AppendError>> {
        Box::pin(async move {
            let (service, id) = (self.service.clone(), self.append.id);
            let put = Admission::put(*self, payload).await;
            if put.is_err() {
                service.settled(id).await;
            }
            put
        })
    }

    fn refuse(self: Box<Self>, error: AppendError) -> Pending<'static, AppendError> {
        Box::pin(Admission::refuse(*self, error))
    }
}

impl<T: Target> Door for Arc<Service<T>> {
    fn open(&self, request: OpenRequest) -> Pending<'_, Result<Opened, AppendError>> {
        Box::pin(Service::open(self, request))
    }

    fn attend(&self, request: OpenRequest) -> Pending<'_, Result<Attended, AppendError>> {
        Box::pin(async move {
            let receiving = Service::attend(self, request).await?;
            Ok(Attended { _receiving: Box::new(receiving) })
        })
    }

    fn announce<'a>(
        &'a self,
        id: AppendId,
        user: &'a str,
        number: u64,
        bytes: u64,
        opening: Option<OpenRequest>,
    ) -> Pending<'a, Result<Announced, AppendError>> {
        Box::pin(async move {
            match self.admit(id, user, number, bytes, opening).await {
                Ok(Admitted::Repeated(put)) => Ok(Announced::Repeated(put)),
                Ok(Admitted::Take(admission)) => Ok(Announced::Wanted(Place { slot: Box::new(admission) })),
                Err(error) => {
                    self.settled(id).await;
                    Err(error)
                }
            }
        })
    }

    fn commit<'a>(
        &'a self,
        id: AppendId,
        user: &'a str,
        batches: u64,
        opening: Option<OpenRequest>,
    ) -> Pending<'a, Result<Committed, AppendError>> {
        Box::pin(async move {
            let committed = commit(self, id, user, batches, opening).await;
            if committed.is_err() {
                self.settled(id).await;
            }
            committed
        })
    }

    fn abort<'a>(&'a self, id: AppendId, user: &'a str) -> Pending<'a, Result<(), AppendError>> {
        Box::pin(async move {
            let aborted = Service::abort(self, id, user).await;
            self.settled(id).await;
            aborted
        })
    }

    fn status<'a>(&'a self, id: AppendId, user: &'a str) -> Pending<'a, Result<Status, AppendError>> {
        Box::pin(async move {
            let status = Service::status(self, id, user).await;
            if status.as_ref().is_ok_and(|status| matches!(status.state(), State::Aborted | State::Failed)) {
                self.settled(id).await;
            }
            status
        })
    }

    fn list(&self, user: &str) -> Vec<Progress> {
        Service::list(self, user)
    }

    fn shut_down(&self) -> Pending<'_, ()> {
        Box::pin(Service::shut_down(self))
    }
}
