//! What became of the latest appends: late requests to them are answered by it.

use std::collections::{HashMap, VecDeque};

use crate::answer::Committed;
use crate::error::AppendError;
use crate::id::AppendId;

/// How an append ended.
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
    pub(crate) end: End,
}

/// The latest ends, by id; the oldest are forgotten. A commit is remembered by its store for longer.
#[derive(Debug, Default)]
pub(crate) struct Ended {
    by_id: HashMap<AppendId, EndedAppend>,
    order: VecDeque<AppendId>,
}

const MAX_REMEMBERED: usize = 10_000;

impl Ended {
    pub(crate) fn get(&self, id: AppendId) -> Option<&EndedAppend> {
        self.by_id.get(&id)
    }

    pub(crate) fn insert(&mut self, id: AppendId, ended: EndedAppend) {
        if self.by_id.insert(id, ended).is_none() {
            self.order.push_back(id);
        }
        while self.order.len() > MAX_REMEMBERED {
            let oldest = self.order.pop_front();
            oldest.map(|id| self.by_id.remove(&id));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_are_forgotten() {
        let mut ended = Ended::default();
        let id = |number: usize| AppendId::from_u128(number as u128);
        let aborted = || EndedAppend { user: "u".into(), source: None, end: End::Aborted };
        for number in 0..MAX_REMEMBERED + 5 {
            ended.insert(id(number), aborted());
            ended.insert(id(number), aborted());
        }
        assert!(ended.get(id(4)).is_none());
        assert!(ended.get(id(5)).is_some());
        assert_eq!((ended.by_id.len(), ended.order.len()), (MAX_REMEMBERED, MAX_REMEMBERED));
    }
}
