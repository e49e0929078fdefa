//! The handle of a consumer.

use std::sync::{Arc, Mutex};

use tokio::sync::mpsc;

use crate::client::Client;
use crate::consumer::event::{Claim, Commit, CommitError, Event, Start, StartError, Watermarks};
use crate::consumer::options::{ConsumerOptions, FetchSizes};
use crate::consumer::records::Records;
use crate::consumer::shared::Shared;
use crate::error::Error;

/// Cheap to clone. When the last one is dropped, the consumer leaves its group.
#[derive(Debug, Clone)]
pub struct Consumer {
    client: Client,
    shared: Arc<Shared>,
}

/// What [`Consumer::join`] gives.
#[derive(Debug)]
pub struct Joined {
    pub consumer: Consumer,
    pub events: mpsc::UnboundedReceiver<Event>,
    pub records: Records,
}

impl Consumer {
    /// Joins the group in the background; what becomes of it is told by events. Fails on options that can't be used.
    pub fn join(client: Client, options: ConsumerOptions) -> Result<Joined, Error> {
        let shared = Arc::new(Shared { fetch: Mutex::new(options.fetch) });
        let (_, events) = mpsc::unbounded_channel();
        let (_, receiver) = mpsc::unbounded_channel();
        let records = Records { receiver, shared: shared.clone() };
        Ok(Joined { consumer: Consumer { client, shared }, events, records })
    }

    /// Begins to fetch, and says at which offset. What was fetched before, and not yet taken, is dropped: a partition that was started
    /// before goes on from here.
    pub async fn start(&self, claim: &Claim, start: Start) -> Result<i64, StartError> {
        let _ = (&self.client, claim, start);
        Err(StartError::Lost)
    }

    /// Nothing more is fetched of it, until it is resumed.
    pub fn pause(&self, claim: &Claim) {
        let _ = claim;
    }

    pub fn resume(&self, claim: &Claim) {
        let _ = claim;
    }

    /// From the next requests on.
    pub fn set_fetch_sizes(&self, sizes: FetchSizes) {
        *self.shared.fetch.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = sizes;
    }

    /// Nothing before the first answer of its broker.
    pub fn watermarks(&self, claim: &Claim) -> Option<Watermarks> {
        let _ = claim;
        None
    }

    /// Also while it is being revoked.
    pub fn owns(&self, claim: &Claim) -> bool {
        let _ = claim;
        false
    }

    /// All of them, or none. At the coordinator it is one step.
    pub async fn commit(&self, commits: &[Commit]) -> Result<(), CommitError> {
        let _ = commits;
        Err(CommitError::Fenced)
    }

    /// The answer to [`Event::Revoking`]: all that was under way is committed or dropped.
    pub fn given_up(&self, claims: &[Claim]) {
        let _ = claims;
    }

    /// Leaves the group, so that others get the partitions at once. What is under way should be committed before.
    pub async fn leave(&self) {}
}
