//! The bytes that may be held at once, and the callers who wait for them.

use std::sync::atomic::Ordering;

use super::calls::{Calls, OnReached};
use super::state::State;
use super::Gathering;
use crate::buffer::AppendError;

pub(super) struct RoomWaiter {
    bytes: u64,
    call: OnReached,
}

impl Gathering {
    /// Takes room, before anything else. The order matters: a writer that is closed after this still waits
    /// for the room to be given back.
    #[inline]
    pub(super) fn reserve(&self, bytes: u64) -> Result<(), AppendError> {
        let before = self.held_bytes.fetch_add(bytes, Ordering::SeqCst);
        let refusal = match () {
            () if self.is_closed.load(Ordering::SeqCst) => AppendError::Closed,
            () if before.saturating_add(bytes) <= self.max_bytes => return Ok(()),
            () if bytes > self.max_bytes => AppendError::TooLarge { bytes, max_bytes: self.max_bytes },
            () => AppendError::Full,
        };
        self.give_back(bytes);
        Err(refusal)
    }

    pub(super) fn give_back(&self, bytes: u64) {
        let before = self.held_bytes.fetch_sub(bytes, Ordering::SeqCst);
        let is_last = before == bytes && self.is_closed.load(Ordering::SeqCst);
        // Whoever asked for room meanwhile has seen this taken: `next` looks again.
        if is_last || self.is_room_awaited.load(Ordering::SeqCst) {
            self.wake();
        }
    }

    /// Tells `call` when there may be room for so many bytes; then an append may be tried again. Tells it at
    /// once if the writer is closed. With 0, `call` is told when anything has settled, as a caller that a
    /// disk's limit has refused needs it. Such a caller tries once more after asking, since the last thing to
    /// settle may just have done so.
    pub fn wait_for_room(&self, bytes: u64, call: OnReached) {
        let mut calls = Calls::default();
        let mut state = self.lock();
        state.room_waiters.push_back(RoomWaiter { bytes, call });
        self.is_room_awaited.store(true, Ordering::SeqCst);
        self.tell_room(&mut state, false, &mut calls);
        drop(state);
        calls.run(self);
    }

    /// Says whether there is room for rows that count for so many bytes.
    pub fn has_room(&self, bytes: u64) -> bool {
        self.held_bytes.load(Ordering::SeqCst).saturating_add(bytes) <= self.max_bytes
    }

    /// Tells the callers that came first, as far as there is room for all of them.
    pub(super) fn tell_room(&self, state: &mut State, has_settled: bool, calls: &mut Calls) {
        let is_closed = self.is_closed.load(Ordering::SeqCst);
        let mut free = self.max_bytes.saturating_sub(self.held_bytes.load(Ordering::SeqCst));
        while let Some(waiter) = state.room_waiters.front() {
            let is_due = if waiter.bytes == 0 { has_settled } else { waiter.bytes <= free };
            if !is_closed && !is_due {
                break;
            }
            free = free.saturating_sub(waiter.bytes);
            let Some(waiter) = state.room_waiters.pop_front() else { break };
            calls.push(waiter.call);
        }
        self.is_room_awaited.store(!state.room_waiters.is_empty(), Ordering::SeqCst);
    }
}
