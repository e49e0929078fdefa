//! What a store has to offer so that appends can go there.
//!
//! One append is one [`Transaction`]: batches are applied in order, as many at once as there are, then all of them
//! become visible together. A transaction that is dropped, as by a crash, leaves nothing.

use std::future::Future;
use std::sync::Arc;

use crate::answer::{Atomicity, Column, Committed};
use crate::error::AppendError;
use crate::id::AppendId;
use crate::request::{OpenRequest, Payload};

/// A batch that has been read and can be applied.
#[derive(Debug)]
pub(crate) struct Held<B> {
    pub(crate) number: u64,
    pub(crate) batch: B,
}

/// What reading a payload gave.
#[derive(Debug)]
pub(crate) struct Read<B> {
    pub(crate) batch: B,
    pub(crate) rows: u64,
    /// What it takes in memory now.
    pub(crate) held_bytes: u64,
}

/// What an append has altogether.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
    pub(crate) batches: u64,
    pub(crate) elapsed_ms: u64,
}

/// An append whose end was not witnessed, or lies long ago.
#[derive(Clone, Debug)]
pub(crate) enum Outcome {
    /// And whose it was.
    Committed { committed: Committed, user: String },
    /// Decided, and being finished.
    Committing { user: String },
    /// Nothing of it is stored, nor will be, unless by another gateway ([`Target::remembers_for_all`]).
    Nothing,
}

#[derive(Debug)]
pub(crate) enum CommitFailure {
    /// Nothing is stored.
    Refused(AppendError),
    /// It may be stored: [`Target::outcome`] will tell.
    Unknown(String),
}

pub(crate) trait Target: Send + Sync + 'static {
    type Table: Send + Sync + 'static;
    /// What a payload is turned into, as soon as it has come, in the task that received it.
    type Batch: Send + 'static;
    type Transaction: Transaction<Batch = Self::Batch>;
    /// The right to begin to write.
    type Permit: Send;

    /// Whether there is such a table and the user may append to it; what the batches have to be like.
    fn look_up(&self, opening: &OpenRequest) -> impl Future<Output = Result<Self::Table, AppendError>> + Send;

    /// The columns that batches may have, in order.
    fn columns(table: &Self::Table) -> Vec<Column>;

    /// What can be promised before the commit.
    fn atomicity(table: &Self::Table) -> Atomicity;

    /// Reads and checks a payload. The first one's schema binds those that follow, whichever is read first. Takes the
    /// CPU, not more memory than `max_bytes`, and nothing else.
    fn read(table: &Self::Table, payload: Payload, max_bytes: u64) -> Result<Read<Self::Batch>, AppendError>;

    /// Waits in line for others. May be given up at any moment.
    fn permit(&self, opening: &OpenRequest) -> impl Future<Output = Result<Self::Permit, AppendError>> + Send;

    /// Begins to write.
    fn begin(
        &self,
        id: AppendId,
        opening: &OpenRequest,
        table: Arc<Self::Table>,
        permit: Self::Permit,
    ) -> impl Future<Output = Result<Self::Transaction, AppendError>> + Send;

    /// What became of an append that this process doesn't remember, or whose commit got no answer.
    fn outcome(&self, id: AppendId) -> impl Future<Output = Result<Outcome, AppendError>> + Send;

    /// True where the database itself remembers what was committed, by whichever gateway.
    fn remembers_for_all(&self) -> bool;

    /// The commit broke off in this process, nobody knows where: [`outcome`](Target::outcome) must not rely on what is
    /// remembered here.
    fn doubt(&self, id: AppendId);

    /// Finishes what an earlier process has left, once, beside everything else.
    fn recover(&self) -> impl Future<Output = ()> + Send;

    /// No more calls will come.
    fn shut_down(&self) -> impl Future<Output = ()> + Send;
}

pub(crate) trait Transaction: Send + 'static {
    type Batch;

    /// Stores batches behind those before. An error is the append's end; it says which batch it was, if that can be
    /// known.
    fn apply(&mut self, batches: Vec<Held<Self::Batch>>) -> impl Future<Output = Result<(), AppendError>> + Send;

    /// Makes all visible. Says how much of it became so at one moment.
    fn commit(self, totals: Totals) -> impl Future<Output = Result<Atomicity, CommitFailure>> + Send;

    fn abort(self) -> impl Future<Output = ()> + Send;
}
