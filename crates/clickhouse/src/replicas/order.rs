//! Which replicas are tried for a purpose, and in which order.

use std::io;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::health::Health;
use super::{Choice, Purpose, ReplicaId, Replicas};
use crate::pool::ConnectError;

/// Replicas whose pings take less than twice as long are equally near, and so are all below this.
pub(super) const NEAR: Duration = Duration::from_micros(500);

impl Replicas {
    /// The ones to be tried, the best first. Empty: all that could do it are drained.
    pub fn order(&self, purpose: Purpose) -> Vec<ReplicaId> {
        if !self.are_several() {
            return vec![ReplicaId::FIRST];
        }
        let turn = match (purpose.is_of_choice(), self.choice) {
            (true, Choice::RoundRobin) => self.turn.fetch_add(1, Ordering::Relaxed),
            _ => 0,
        };
        let now = Instant::now();
        let mut order: Vec<_> = self
            .ids()
            .filter(|id| self.is_possible(*id, purpose))
            .map(|id| (self.rank(id, purpose, turn, now), id))
            .collect();
        order.sort_unstable();
        order.into_iter().map(|(_, id)| id).collect()
    }

    /// Where a statement can go that this one is slow to answer: the best of the others that nothing speaks against.
    pub fn beside(&self, slow: ReplicaId) -> Option<ReplicaId> {
        // Looked up only: whose turn it is does not change.
        let (now, turn) = (Instant::now(), self.turn.load(Ordering::Relaxed));
        self.ids()
            .filter(|id| *id != slow && self.is_possible(*id, Purpose::Statement))
            .map(|id| (self.rank(id, Purpose::Statement, turn, now), id))
            .filter(|(rank, _)| !rank.is_passed_over())
            .min()
            .map(|(_, id)| id)
    }

    fn is_possible(&self, id: ReplicaId, purpose: Purpose) -> bool {
        match purpose {
            // It has begun before the replica was drained.
            Purpose::InSession(there) => there == id,
            Purpose::Only(only) if only != id => false,
            _ => !self.list[id.index()].lock().is_drained,
        }
    }

    fn rank(&self, id: ReplicaId, purpose: Purpose, turn: usize, now: Instant) -> Rank {
        let replica = &self.list[id.index()];
        let health = replica.lock();
        let chosen = match self.choice {
            _ if !purpose.is_of_choice() => 0,
            Choice::InOrder => 0,
            Choice::Nearest => distance(&health) as usize,
            Choice::RoundRobin => (id.index() + self.list.len() - turn % self.list.len()) % self.list.len(),
            Choice::LeastLoaded => replica.requests.load(Ordering::Relaxed),
        };
        Rank {
            is_down: health.down.is_some(),
            is_read_only: health.is_read_only(purpose, now),
            is_busy: health.is_busy(now),
            chosen,
        }
    }

    pub(crate) fn all_drained(&self, purpose: Purpose) -> ConnectError {
        let cause = io::Error::other("drained: `windrow drain --undo` gives it work again");
        ConnectError { endpoint: self.names(purpose), cause }
    }

    /// Of all that could serve the purpose.
    pub(crate) fn names(&self, purpose: Purpose) -> String {
        match purpose {
            Purpose::Only(id) | Purpose::InSession(id) => self.endpoint(id).to_string(),
            _ => self.to_string(),
        }
    }

    /// Whether others of several replicas answer in place of the first.
    pub fn is_first_passed_over(&self) -> bool {
        let health = self.list[ReplicaId::FIRST.index()].lock();
        self.are_several() && (health.is_drained || health.down.is_some())
    }
}

/// What speaks against a replica, the worst first, and what for it. Smaller is better.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    is_down: bool,
    is_read_only: bool,
    is_busy: bool,
    chosen: usize,
}

impl Rank {
    fn is_passed_over(&self) -> bool {
        self.is_down || self.is_read_only || self.is_busy
    }
}

/// Smaller is nearer.
fn distance(health: &Health) -> u32 {
    health.ping.map_or(u32::MAX, |ping| (ping.as_micros() / NEAR.as_micros()).checked_ilog2().map_or(0, |log| log + 1))
}
