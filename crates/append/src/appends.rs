//! The handle that all doors share: HTTP, Flight SQL.

use prometheus_client::registry::Registry;

use crate::answer::{Committed, Progress, Put, State, Status};
use crate::error::AppendError;
use crate::id::AppendId;
use crate::options::{AppendOptions, Store};
use crate::request::{OpenRequest, Payload};

/// All appends of this process.
#[derive(Clone)]
pub struct Appends {}

impl Appends {
    /// Clears what an earlier process left in the directory, and finishes what that one had decided, beside everything else.
    pub fn start(options: AppendOptions, store: Store, registry: &mut Registry) -> Result<Appends, String> {
        let _ = (options, store, registry);
        Err("ordered appends are not there yet".to_owned())
    }

    /// Opens an append, or tells how far a known one is.
    pub async fn open(&self, request: OpenRequest) -> Result<Progress, AppendError> {
        let _ = request;
        Err(AppendError::new(48, "Ordered appends are not there yet"))
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
        let _ = (id, user, number, payload, opening);
        Err(AppendError::new(48, "Ordered appends are not there yet"))
    }

    /// Waits for the batches that are missing, stores them and makes all visible. Repeated, it answers the same again.
    pub async fn commit(
        &self,
        id: AppendId,
        user: &str,
        batches: u64,
        opening: Option<OpenRequest>,
    ) -> Result<Committed, AppendError> {
        let _ = (id, user, batches, opening);
        Err(AppendError::new(48, "Ordered appends are not there yet"))
    }

    /// Drops an append, also one that isn't known, or not yet. One that is committed, or is being committed, stays: an error.
    pub async fn abort(&self, id: AppendId, user: &str) -> Result<(), AppendError> {
        let _ = (id, user);
        Err(AppendError::new(48, "Ordered appends are not there yet"))
    }

    pub async fn status(&self, id: AppendId, user: &str) -> Result<Status, AppendError> {
        let _ = user;
        Ok(Status { id, state: State::Gone, progress: None, committed: None, error: None })
    }

    /// The user's appends that are open.
    pub async fn list(&self, user: &str) -> Vec<Progress> {
        let _ = user;
        Vec::new()
    }

    /// Drops what is open; what is being committed is finished first.
    pub async fn shut_down(&self) {}
}
