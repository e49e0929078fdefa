//! The steps of a statement before it goes on, whatever protocol it came by: whether it may have its query
//! id, whether it repeats an insert that is stored, and which tables it removes rows from.

mod changes;
mod claim;
mod context;
mod deduplication;
mod flush;
mod pass_on;
mod query_ids;

pub(crate) use changes::{Changes, Learnt};
pub(crate) use context::StatementContext;
pub(crate) use deduplication::{outline, Passage, RowRemoval, LOOKED_THROUGH_BYTES};
pub(crate) use pass_on::NativeInsert;
pub(crate) use query_ids::{Claim, QueryIds};
