//! The bytes that may be under way.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

pub(crate) struct Window {
    most_bytes: u64,
    state: Mutex<State>,
    freed: Condvar,
}

struct State {
    taken_bytes: u64,
    closed: bool,
}

/// A part of the window, taken until this is dropped.
pub(crate) struct Room {
    window: Arc<Window>,
    bytes: u64,
}

impl Window {
    pub(crate) fn new(most_bytes: u64) -> Arc<Window> {
        let state = State { taken_bytes: 0, closed: false };
        Arc::new(Window { most_bytes, state: Mutex::new(state), freed: Condvar::new() })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing is done under this lock that could leave it half done.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for room; a batch that is larger than the window gets all of it. Returns `None` if the window
    /// was closed.
    pub(crate) fn take(window: &Arc<Window>, bytes: u64) -> Option<Room> {
        let mut state = window.lock();
        while !state.closed && state.taken_bytes > 0 && state.taken_bytes.saturating_add(bytes) > window.most_bytes {
            state = window.freed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.closed {
            return None;
        }
        state.taken_bytes += bytes;
        Some(Room { window: window.clone(), bytes })
    }

    /// Closes the window: threads that wait for room get none any more.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.freed.notify_all();
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.window.lock().taken_bytes -= self.bytes;
        self.window.freed.notify_all();
    }
}
