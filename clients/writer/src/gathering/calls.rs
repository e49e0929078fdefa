//! Callbacks that are due: run when the lock is given back, since they may call the writer again.

use std::ops::Range;
use std::sync::Arc;

use super::Gathering;
use crate::errors::WriteError;

/// A callback that is told once what became of some rows: stored, or the error of one of those that were not.
pub type OnSettled = Box<dyn FnOnce(Result<(), Arc<WriteError>>) + Send>;
/// A callback that is told once that something has come to pass.
pub type OnReached = Box<dyn FnOnce() + Send>;
/// A callback that is told once whether rows are kept, or why they were not taken.
pub type OnKept = Box<dyn FnOnce(Result<(), crate::buffer::BufferError>) + Send>;
/// A callback that is told of each error at once; says whether that was all that had to be done with the
/// error. Otherwise the error waits to be taken.
pub type ErrorHook = Box<dyn Fn(&Arc<WriteError>) -> bool + Send + Sync>;

#[derive(Default)]
pub(super) struct Calls {
    failed: Vec<FailedRows>,
    others: Vec<OnReached>,
}

/// Rows that settle when the program has been told of their error: a flush does not end before.
struct FailedRows {
    error: Arc<WriteError>,
    positions: Range<u64>,
    held_bytes: u64,
}

impl Calls {
    pub(super) fn push(&mut self, call: OnReached) {
        self.others.push(call);
    }

    pub(super) fn settled(&mut self, call: OnSettled, outcome: Result<(), Arc<WriteError>>) {
        self.others.push(Box::new(move || call(outcome)));
    }

    pub(super) fn failed(&mut self, error: Arc<WriteError>, positions: Range<u64>, held_bytes: u64) {
        self.failed.push(FailedRows { error, positions, held_bytes });
    }

    /// Runs the callbacks, errors first: a caller who is told that rows have settled finds their errors.
    pub(super) fn run(mut self, gathering: &Gathering) {
        for FailedRows { error, positions, held_bytes } in std::mem::take(&mut self.failed) {
            let is_kept = gathering.error_hook.get().is_some_and(|hook| !hook(&error));
            let mut state = gathering.lock();
            if is_kept {
                state.errors.push(error.clone());
            }
            gathering.free(&mut state, positions, held_bytes, Some(&error), &mut self);
            drop(state);
            gathering.wake();
        }
        self.run_others();
    }

    pub(super) fn run_others(self) {
        self.others.into_iter().for_each(|call| call());
    }
}
