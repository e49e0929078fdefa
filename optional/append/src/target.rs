//! The interface of a store that appends can go to.
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

/// The result of reading a payload.
#[derive(Debug)]
pub(crate) struct Read<B> {
    pub(crate) batch: B,
    pub(crate) rows: u64,
    /// Bytes that the batch takes in memory now.
    pub(crate) held_bytes: u64,
}

/// The totals of an append.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
    pub(crate) batches: u64,
    pub(crate) elapsed_ms: u64,
}

/// The outcome of an append whose end was not witnessed, or lies long ago.
#[derive(Clone, Debug)]
pub(crate) enum Outcome {
    /// The append is committed; `user` is whose it was.
    Committed { committed: Committed, user: String },
    /// The append is decided, and being finished.
    Committing { user: String },
    /// No part of the append is stored, nor will be, unless by another gateway ([`Target::remembers_for_all`]).
    Nothing,
}

#[derive(Debug)]
pub(crate) enum CommitFailure {
    /// The commit was refused: no part of the append is stored.
    Refused(AppendError),
    /// The append may be stored: [`Target::outcome`] will tell.
    Unknown(String),
}

pub(crate) trait Target: Send + Sync + 'static {
    type Table: Send + Sync + 'static;
    /// The form that a payload is turned into, as soon as it has come, in the task that received it.
    type Batch: Send + 'static;
    type Transaction: Transaction<Batch = Self::Batch>;
    /// The right to begin to write.
    type Permit: Send;

    /// Returns the table, if there is one and the user may append to it; the table says what the batches have
    /// to be like.
    fn look_up(&self, opening: &OpenRequest) -> impl Future<Output = Result<Self::Table, AppendError>> + Send;

    /// Returns the columns that batches may have, in order.
    fn columns(table: &Self::Table) -> Vec<Column>;

    /// Returns the atomicity that can be promised before the commit.
    fn atomicity(table: &Self::Table) -> Atomicity;

    /// Reads and checks a payload. The first one's schema binds those that follow, whichever is read first.
    /// Takes the CPU, not more memory than `max_bytes`, and nothing else.
    fn read(table: &Self::Table, payload: Payload, max_bytes: u64) -> Result<Read<Self::Batch>, AppendError>;

    /// Waits in line for the right to begin. May be given up at any moment.
    fn permit(&self, opening: &OpenRequest) -> impl Future<Output = Result<Self::Permit, AppendError>> + Send;

    /// Begins to write.
    fn begin(
        &self,
        id: AppendId,
        opening: &OpenRequest,
        table: Arc<Self::Table>,
        permit: Self::Permit,
    ) -> impl Future<Output = Result<Self::Transaction, AppendError>> + Send;

    /// Returns the outcome of an append that this process doesn't remember, or whose commit got no answer.
    fn outcome(&self, id: AppendId) -> impl Future<Output = Result<Outcome, AppendError>> + Send;

    /// Returns true where the database itself remembers what was committed, by whichever gateway.
    fn remembers_for_all(&self) -> bool;

    /// Notes that the commit broke off in this process, nobody knows where: [`outcome`](Target::outcome) must
    /// not rely on what is remembered here.
    fn doubt(&self, id: AppendId);

    /// Finishes appends that an earlier process has left, once, beside everything else.
    fn recover(&self) -> impl Future<Output = ()> + Send;

    /// Shuts the store down: no more calls will come.
    fn shut_down(&self) -> impl Future<Output = ()> + Send;
}

pub(crate) trait Transaction: Send + 'static {
    type Batch;

    /// Stores batches behind those before. An error is the append's end; it says which batch it was, if that
    /// can be known.
    fn apply(&mut self, batches: Vec<Held<Self::Batch>>) -> impl Future<Output = Result<(), AppendError>> + Send;

    /// Makes all visible. Returns the part of it that became so at one moment.
    fn commit(self, totals: Totals) -> impl Future<Output = Result<Atomicity, CommitFailure>> + Send;

    fn abort(self) -> impl Future<Output = ()> + Send;
}
