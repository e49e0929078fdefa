//! The replicas that are tried for a purpose, and their order.

use std::io;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::health::Health;
use super::{Choice, NamedReplica, Purpose, ReplicaId, Replicas};
use crate::pool::ConnectError;

/// Unit of distance for pings. Replicas are equally near if their pings take less than this, or less than
/// twice as long as each other.
pub(super) const NEAR: Duration = Duration::from_micros(500);

impl Replicas {
    /// Returns the replicas to be tried, the best first. The list is empty where all that could serve the
    /// purpose are drained.
    pub fn order(&self, purpose: Purpose) -> Vec<ReplicaId> {
        if !self.are_several() {
            return vec![ReplicaId::FIRST];
        }
        let turn = match (purpose.is_of_choice(), self.choice) {
            (true, Choice::RoundRobin) => self.turn.fetch_add(1, Ordering::Relaxed),
            _ => 0,
        };
        let (named, now) = (self.named(), Instant::now());
        match purpose {
            // It has begun before the replica was drained, or was named no more.
            Purpose::InSession(there) => vec![there],
            Purpose::First => self.first.get().into_iter().copied().filter(|id| !self.is_drained(*id)).collect(),
            _ => {
                let is_meant = |id| !matches!(purpose, Purpose::Only(only) if only != id);
                let possible = named.iter().filter(|named| is_meant(named.id) && !self.is_drained(named.id));
                let mut order: Vec<_> =
                    possible.map(|one| (self.rank(one, &named, purpose, turn, now), one.id)).collect();
                // Equal ones stay as they are named.
                order.sort_by(|(one, _), (other, _)| one.cmp(other));
                order.into_iter().map(|(_, id)| id).collect()
            }
        }
    }

    /// Returns the replica for a hedged read that `slow` is slow to answer: the best of the others that are
    /// not passed over.
    pub fn beside(&self, slow: ReplicaId) -> Option<ReplicaId> {
        // Looked up only: whose turn it is does not change.
        let (turn, named, now) = (self.turn.load(Ordering::Relaxed), self.named(), Instant::now());
        named
            .iter()
            .filter(|one| one.id != slow && !self.is_drained(one.id))
            .map(|one| (self.rank(one, &named, Purpose::Statement, turn, now), one.id))
            .filter(|(rank, _)| !rank.is_passed_over())
            .min_by(|(one, _), (other, _)| one.cmp(other))
            .map(|(_, id)| id)
    }

    fn is_drained(&self, id: ReplicaId) -> bool {
        self.replica(id).lock().is_drained
    }

    fn rank(&self, one: &NamedReplica, named: &[NamedReplica], purpose: Purpose, turn: usize, now: Instant) -> Rank {
        let replica = self.replica(one.id);
        let health = replica.lock();
        let chosen = match self.choice {
            _ if !purpose.is_of_choice() => 0,
            Choice::InOrder => 0,
            Choice::Nearest => distance(&health) as usize,
            Choice::RoundRobin => place_in_turn(one, named, turn),
            Choice::LeastLoaded => load(replica.requests.load(Ordering::Relaxed), one.weight),
        };
        Rank {
            is_down: health.down.is_some(),
            is_read_only: health.is_read_only(purpose, now),
            is_busy: health.is_busy(now),
            priority: one.priority,
            chosen,
        }
    }

    pub(crate) fn all_drained(&self, purpose: Purpose) -> ConnectError {
        let cause = match self.ids().is_empty() {
            true => io::Error::other("no replica is named there so far"),
            false => io::Error::other("drained: `windrow drain --undo` gives it work again"),
        };
        ConnectError { endpoint: self.names(purpose), cause }
    }

    /// Returns the addresses of all replicas that could serve the purpose.
    pub(crate) fn names(&self, purpose: Purpose) -> String {
        match purpose {
            Purpose::Only(id) | Purpose::InSession(id) => self.endpoint(id).to_string(),
            Purpose::First => self.endpoint(self.first.get().copied().unwrap_or(ReplicaId::FIRST)).to_string(),
            _ => self.to_string(),
        }
    }

    /// Says whether other replicas answer in place of the first.
    pub fn is_first_passed_over(&self) -> bool {
        let Some(first) = self.first.get().filter(|_| self.are_several()) else { return false };
        let health = self.replica(*first).lock();
        health.is_drained || health.down.is_some() || !self.is_named(*first)
    }
}

/// Reasons for and against a replica, the most important first. The smaller is the better.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    is_down: bool,
    is_read_only: bool,
    is_busy: bool,
    priority: u16,
    chosen: usize,
}

impl Rank {
    fn is_passed_over(&self) -> bool {
        self.is_down || self.is_read_only || self.is_busy
    }
}

/// Returns how far away a replica is, by its ping. The smaller is the nearer.
fn distance(health: &Health) -> u32 {
    health.ping.map_or(u32::MAX, |ping| (ping.as_micros() / NEAR.as_micros()).checked_ilog2().map_or(0, |log| log + 1))
}

/// Returns how many replicas come before this one in this turn. Within a priority, each is the first as often
/// as its weight says.
fn place_in_turn(one: &NamedReplica, named: &[NamedReplica], turn: usize) -> usize {
    let group: Vec<&NamedReplica> = named.iter().filter(|other| other.priority == one.priority).collect();
    let place = group.iter().position(|other| other.id == one.id).unwrap_or(0);
    let begins = match group.iter().all(|other| other.weight == one.weight) {
        true => turn % group.len(),
        false => begins_by_weight(&group, turn),
    };
    (place + group.len() - begins) % group.len()
}

/// Returns which replica of a group is the first in a turn, in proportion to the weights. Each replica's
/// turns are spread evenly.
fn begins_by_weight(group: &[&NamedReplica], turn: usize) -> usize {
    const GOLDEN: u32 = 0x9E37_79B9;
    let total: u64 = group.iter().map(|one| share(one.weight)).sum();
    let mut at = (u64::from((turn as u32).wrapping_mul(GOLDEN)) * total) >> 32;
    for (place, one) in group.iter().enumerate() {
        match at.checked_sub(share(one.weight)) {
            Some(left) => at = left,
            None => return place,
        }
    }
    0
}

/// Returns the load that a replica would have with one more request, in proportion to its weight.
fn load(requests: usize, weight: u16) -> usize {
    match weight {
        1 => requests,
        _ => (requests + 1) * usize::from(u16::MAX) / share(weight) as usize,
    }
}

/// Returns a weight to divide by: weight 0 counts as 1.
fn share(weight: u16) -> u64 {
    u64::from(weight.max(1))
}
