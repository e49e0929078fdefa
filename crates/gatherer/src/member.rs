//! Inserts within a batch, and their rows.

use std::sync::Arc;

use tokio::sync::oneshot;
use windrow_block::Rows;
use windrow_policy::Micros;

use crate::insert::{AckLevel, DedupKeys, History, InsertKind, Outcome, QueryId};

/// Rows and whose they are.
pub(crate) struct Contents {
    pub(crate) rows: Rows,
    pub(crate) members: Vec<Member>,
}

/// An insert within a batch.
pub(crate) struct Member {
    pub(crate) id: u64,
    pub(crate) rows: usize,
    pub(crate) payload_bytes: u64,
    pub(crate) held_bytes: u64,
    pub(crate) arrived_at: Micros,
    pub(crate) query_id: QueryId,
    pub(crate) kind: Arc<InsertKind>,
    pub(crate) ack: AckLevel,
    /// Whoever is to be told.
    pub(crate) outcome: Option<oneshot::Sender<Outcome>>,
    /// Attempts to store it that have failed.
    pub(crate) attempts: u32,
    pub(crate) baggage: Option<Box<Baggage>>,
    /// Taken back by its sender. Its rows are left out when the batch takes off.
    pub(crate) withdrawn: bool,
}

/// What most inserts don't have.
#[derive(Default)]
pub(crate) struct Baggage {
    pub(crate) dedup: Option<DedupKeys>,
    pub(crate) history: Option<History>,
}

impl Baggage {
    pub(crate) fn of(dedup: Option<DedupKeys>, history: Option<History>) -> Option<Box<Baggage>> {
        (dedup.is_some() || history.is_some()).then(|| Box::new(Baggage { dedup, history }))
    }
}

impl Member {
    /// Whether its sender waits until it is stored, and decides what to do if it can't be.
    pub(crate) fn waits(&self) -> bool {
        self.ack == AckLevel::Stored
    }
}

impl Contents {
    /// Marks an insert as taken back. Cheap: many may give up in the same moment, under the table's lock.
    pub(crate) fn withdraw(&mut self, member: u64) -> Option<&Member> {
        let index = self.members.binary_search_by_key(&member, |member| member.id).ok()?;
        let member = &mut self.members[index];
        if std::mem::replace(&mut member.withdrawn, true) {
            return None;
        }
        Some(member)
    }

    /// An attempt to store them has failed.
    pub(crate) fn count_attempt(&mut self) {
        self.members.iter_mut().for_each(|member| member.attempts = member.attempts.saturating_add(1));
    }

    /// Takes out what was taken back; true if there was anything.
    pub(crate) fn drop_withdrawn(&mut self) -> bool {
        self.members.iter().any(|member| member.withdrawn) && !self.extract(|member| member.withdrawn).is_empty()
    }

    /// Cuts before the member at `index`; the second half is returned.
    pub(crate) fn split_off(&mut self, index: usize) -> Contents {
        let start: usize = self.members[..index].iter().map(|member| member.rows).sum();
        let (mut first, mut second) = (self.rows.take(), self.rows.take());
        second.append_range(&first, start..first.count());
        let all = first.take();
        first.append_range(&all, 0..start);
        self.rows = first;
        Contents { rows: second, members: self.members.split_off(index) }
    }

    /// Takes out the member at `index` with its rows.
    pub(crate) fn split_out(&mut self, index: usize) -> Contents {
        let mut picked = self.split_off(index);
        let mut after = picked.split_off(1);
        self.rows.append(&after.rows);
        self.members.append(&mut after.members);
        picked
    }

    /// Takes out all members that `picked` says, rows and all.
    pub(crate) fn extract(&mut self, picked: impl Fn(&Member) -> bool) -> Vec<Member> {
        let all = self.rows.take();
        let (mut out, mut start) = (Vec::new(), 0);
        for member in std::mem::take(&mut self.members) {
            let end = start + member.rows;
            if picked(&member) {
                out.push(member);
            } else {
                self.rows.append_range(&all, start..end);
                self.members.push(member);
            }
            start = end;
        }
        out
    }
}
