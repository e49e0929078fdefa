//! Requests of a connection that wait for their answers, until the connection ends.

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
    /// The reason why nothing more will be answered.
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

    /// Hands an answer to its caller, and says whether the request is known. A caller that was dropped gets
    /// nothing, which does no harm.
    pub(crate) fn answer(&self, id: i32, frame: Bytes) -> bool {
        let waiting = self.state().waiting.remove(&id);
        waiting.map(|sender| sender.send(Ok(frame))).is_some()
    }

    /// Ends all requests, present and future, with this error. If there was an error before, that one stays
    /// the reason.
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
