//! The wait for a group to be on the disk. One completion serves all records of a group, so that waiting
//! costs no allocation of its own.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use super::error::CommitError;
use super::queue::Room;
use super::RecordId;

/// The outcome of a group. When the disk is full, records that free room may still have been written.
#[derive(Clone, Debug)]
pub(crate) struct GroupOutcome {
    pub(crate) ordinary: Result<(), CommitError>,
    pub(crate) reserve: Result<(), CommitError>,
    /// Records that were left out because they had nothing to say any more, ascending.
    pub(crate) left_out: Vec<RecordId>,
}

impl GroupOutcome {
    pub(crate) fn all(outcome: Result<(), CommitError>) -> GroupOutcome {
        GroupOutcome { ordinary: outcome.clone(), reserve: outcome, left_out: Vec::new() }
    }

    pub(crate) fn of(&self, id: RecordId, room: Room) -> Result<(), CommitError> {
        match room {
            _ if self.left_out.binary_search(&id).is_ok() => Ok(()),
            Room::Ordinary => self.ordinary.clone(),
            Room::Reserve => self.reserve.clone(),
        }
    }
}

#[derive(Default)]
pub(crate) struct Completion {
    outcome: OnceLock<GroupOutcome>,
    wakers: Mutex<Vec<Waker>>,
}

impl Completion {
    pub(crate) fn complete(&self, outcome: GroupOutcome) {
        // Set under the lock: who finds no outcome there is in the list before it is emptied.
        let wakers = {
            let mut wakers = self.lock();
            let _ = self.outcome.set(outcome);
            std::mem::take(&mut *wakers)
        };
        wakers.into_iter().for_each(Waker::wake);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Waker>> {
        self.wakers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A future that resolves when the record is on the disk, or surely isn't. It may be dropped, which changes
/// nothing.
#[must_use = "a record is only sure to be kept when this says so"]
pub struct Durable {
    completion: Arc<Completion>,
    id: RecordId,
    room: Room,
    /// The index among the wakers of the group.
    slot: Option<usize>,
}

impl Durable {
    pub(crate) fn new(completion: Arc<Completion>, id: RecordId, room: Room) -> Durable {
        Durable { completion, id, room, slot: None }
    }

    /// Returns the outcome, if it is known.
    pub fn now(&self) -> Option<Result<(), CommitError>> {
        Some(self.completion.outcome.get()?.of(self.id, self.room))
    }

    /// Blocks until the outcome is known.
    ///
    /// # Errors
    /// Fails where the record could not be written, or the log was closed before.
    pub fn wait(self) -> Result<(), CommitError> {
        block_on(self)
    }
}

impl Future for Durable {
    type Output = Result<(), CommitError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some(outcome) = self.now() {
            return Poll::Ready(outcome);
        }
        let completion = self.completion.clone();
        let mut wakers = completion.lock();
        if let Some(outcome) = self.now() {
            return Poll::Ready(outcome);
        }
        match self.slot.and_then(|slot| wakers.get_mut(slot)) {
            Some(waker) => waker.clone_from(context.waker()),
            None => {
                self.slot = Some(wakers.len());
                wakers.push(context.waker().clone());
            }
        }
        Poll::Pending
    }
}

/// Runs a future on this thread, which sleeps between its polls.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = std::pin::pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}
