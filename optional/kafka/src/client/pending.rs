//! Who waits for which answer on a connection, until there are no more.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::oneshot;

use crate::error::Error;

pub(crate) type Answer = Result<Bytes, Error>;

#[derive(Default)]
pub(crate) struct Pending {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    next_id: i32,
    waiting: HashMap<i32, oneshot::Sender<Answer>>,
    /// Why nothing more will be answered.
    closed: Option<Error>,
}

pub(crate) struct Ticket {
    pub id: i32,
    pub answer: oneshot::Receiver<Answer>,
}

impl Pending {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn enter(&self) -> Result<Ticket, Error> {
        let mut state = self.state();
        if let Some(error) = &state.closed {
            return Err(error.clone());
        }
        let id = state.next_id;
        state.next_id = id.wrapping_add(1);
        let (sender, answer) = oneshot::channel();
        state.waiting.insert(id, sender);
        Ok(Ticket { id, answer })
    }

    /// Whether anyone had asked. Nobody listens any more if the caller was dropped; that is as well.
    pub(crate) fn answer(&self, id: i32, frame: Bytes) -> bool {
        let waiting = self.state().waiting.remove(&id);
        waiting.map(|sender| sender.send(Ok(frame))).is_some()
    }

    /// Tells everyone, now and later. What came first is the reason.
    pub(crate) fn close(&self, error: Error) {
        let mut state = self.state();
        let reason = state.closed.get_or_insert(error).clone();
        for (_, sender) in state.waiting.drain() {
            let _ = sender.send(Err(reason.clone()));
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.state().closed.is_some()
    }
}
