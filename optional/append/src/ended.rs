//! The ends of the latest appends: late requests to them are answered by them.
//!
//! Were an end forgotten while batches of its append are still under way, they would open the append anew. So
//! the appends of one user push out none of others', and ids that were only named, which costs nothing, push
//! out none of those that were open.

use std::collections::{HashMap, VecDeque};

use crate::answer::Committed;
use crate::error::AppendError;
use crate::id::AppendId;

/// The way in which an append ended.
#[derive(Clone, Debug)]
pub(crate) enum End {
    Committed(Committed),
    Aborted,
    Failed(AppendError),
}

#[derive(Clone, Debug)]
pub(crate) struct EndedAppend {
    pub(crate) user: String,
    pub(crate) source: Option<String>,
    /// True if the append was open; false if it was aborted or refused before that.
    pub(crate) was_open: bool,
    pub(crate) end: End,
}

/// The latest ends, by id; the oldest of each user are forgotten. A commit is remembered by its store for longer.
#[derive(Debug, Default)]
pub(crate) struct Ended {
    by_id: HashMap<AppendId, EndedAppend>,
    of_users: HashMap<String, OfUser>,
}

/// The appends of one user, in the order in which they ended.
#[derive(Debug, Default)]
struct OfUser {
    opened: VecDeque<AppendId>,
    never_opened: VecDeque<AppendId>,
}

const MAX_OPENED: usize = 10_000;
const MAX_NEVER_OPENED: usize = 2_000;

impl Ended {
    pub(crate) fn get(&self, id: AppendId) -> Option<&EndedAppend> {
        self.by_id.get(&id)
    }

    /// Remembers an end. The first end of an id counts.
    pub(crate) fn insert(&mut self, id: AppendId, ended: EndedAppend) {
        if self.by_id.contains_key(&id) {
            return;
        }
        let of_user = self.of_users.entry(ended.user.clone()).or_default();
        let (order, limit) = match ended.was_open {
            true => (&mut of_user.opened, MAX_OPENED),
            false => (&mut of_user.never_opened, MAX_NEVER_OPENED),
        };
        order.push_back(id);
        let oldest = if order.len() > limit { order.pop_front() } else { None };
        self.by_id.insert(id, ended);
        oldest.map(|id| self.by_id.remove(&id));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn aborted(user: &str, was_open: bool) -> EndedAppend {
        EndedAppend { user: user.into(), source: None, was_open, end: End::Aborted }
    }

    fn id(number: usize) -> AppendId {
        AppendId::from_u128(number as u128)
    }

    #[test]
    fn the_oldest_are_forgotten() {
        let mut ended = Ended::default();
        for number in 0..MAX_OPENED + 5 {
            ended.insert(id(number), aborted("u", true));
            ended.insert(id(number), aborted("u", true));
        }
        assert!(ended.get(id(4)).is_none());
        assert!(ended.get(id(5)).is_some());
        assert_eq!((ended.by_id.len(), ended.of_users["u"].opened.len()), (MAX_OPENED, MAX_OPENED));
    }

    #[test]
    fn ids_that_were_only_named_push_out_none_that_was_open() {
        let mut ended = Ended::default();
        ended.insert(id(1), aborted("u", true));
        ended.insert(id(2), aborted("v", false));
        for number in 10..10 + 3 * MAX_OPENED {
            ended.insert(id(number), aborted("u", false));
        }
        assert!(ended.get(id(1)).is_some() && ended.get(id(2)).is_some());
        assert_eq!(ended.by_id.len(), MAX_NEVER_OPENED + 2);
    }
}
