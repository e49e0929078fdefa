//! The progress of an append. Pure: it holds no lock, starts no task and reads no clock.
//!
//! Batches have numbers from 0 and come in any order, some of them twice. A batch is *missing*, then *held*,
//! then *applied*. With order, the lowest that is not applied is always the next; without, any. The numbers
//! take little memory: no batch is taken that is more than [`MAX_AHEAD`] ahead of the lowest missing one, so
//! there are never more gaps than that.
//!
//! The lowest missing batch is the one that nothing can go on without. It is told apart, so that the
//! admission lets it in whatever else waits.

mod idleness;
#[cfg(test)]
mod model;
mod ranges;
mod sequence;

pub(crate) use idleness::Idleness;
pub(crate) use sequence::{Next, NoEnd, Sequence, Standing};
