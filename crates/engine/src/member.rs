//! Inserts within a batch, and their rows.

use std::ops::Range;
use std::sync::Arc;

use crate::policy::Micros;
use crate::trace::SpanContext;
use tokio::sync::oneshot;
use windrow_columns::Rows;

use crate::insert::{AckLevel, DedupKeys, History, Insert, InsertKind, Outcome, QueryId};
use crate::journaling::Journaled;

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
    /// The connection it came on.
    pub(crate) writer: u64,
    pub(crate) kind: Arc<InsertKind>,
    pub(crate) ack: AckLevel,
    /// Whoever is to be told.
    pub(crate) outcome: Option<oneshot::Sender<Outcome>>,
    /// Attempts to store it that have failed.
    pub(crate) attempts: u32,
    pub(crate) baggage: Option<Box<Baggage>>,
    pub(crate) journaled: Option<Journaled>,
    /// Its place in a batch that its source has put together.
    pub(crate) place: Option<u32>,
    pub(crate) left_over: bool,
    /// Taken back by its sender. Its rows are left out when the batch takes off.
    pub(crate) withdrawn: bool,
}

/// What most inserts don't have.
#[derive(Default)]
pub(crate) struct Baggage {
    pub(crate) dedup: Option<DedupKeys>,
    pub(crate) history: Option<History>,
    pub(crate) trace: Option<Box<SpanContext>>,
}

impl Baggage {
    pub(crate) fn of(
        dedup: Option<DedupKeys>,
        history: Option<History>,
        trace: Option<Box<SpanContext>>,
    ) -> Option<Box<Baggage>> {
        let is_any = dedup.is_some() || history.is_some() || trace.is_some();
        is_any.then(|| Box::new(Baggage { dedup, history, trace }))
    }
}

impl Member {
    /// Whether its sender waits until it is stored, and decides what to do if it can't be.
    pub(crate) fn waits(&self) -> bool {
        self.ack == AckLevel::Stored
    }

    /// The span of the request that it came with, if that is traced.
    pub(crate) fn trace(&self) -> Option<&SpanContext> {
        self.baggage.as_ref()?.trace.as_deref()
    }

    /// Whether its sender is asked before it is sent again when that might store it twice. A source would send it again
    /// anyway.
    pub(crate) fn is_asked(&self) -> bool {
        self.waits() && self.place.is_none()
    }

    /// The member itself; only what says which rows were its own stays.
    fn leave_rows(&mut self) -> Member {
        let stays = Member {
            id: self.id,
            rows: self.rows,
            payload_bytes: 0,
            held_bytes: 0,
            arrived_at: self.arrived_at,
            query_id: QueryId::Random(0),
            writer: self.writer,
            kind: self.kind.clone(),
            ack: self.ack,
            outcome: None,
            attempts: 0,
            baggage: None,
            journaled: None,
            place: None,
            left_over: false,
            withdrawn: true,
        };
        std::mem::replace(self, stays)
    }

    /// What a part of a batch is known by: the same over restarts for those in the journal, and for those of a source.
    pub(crate) fn lasting_id(&self) -> [u8; 9] {
        let (kind, id) = match (self.place, self.journaled) {
            (Some(place), _) => (2, u64::from(place)),
            (None, Some(journaled)) => (1, journaled.record.0),
            (None, None) => (0, self.id),
        };
        let mut bytes = [kind; 9];
        bytes[1..].copy_from_slice(&id.to_le_bytes());
        bytes
    }
}

/// An insert on its way into a batch, with memory granted.
pub(crate) struct Arriving {
    pub(crate) insert: Insert,
    pub(crate) held_bytes: u64,
    pub(crate) outcome: Option<oneshot::Sender<Outcome>>,
    pub(crate) journaled: Option<Journaled>,
    /// By an earlier life: what comes now waits for its end.
    pub(crate) left_over: bool,
}

impl Contents {
    /// Adds an insert's rows, and its entry under a higher number than all before.
    pub(crate) fn add(&mut self, id: u64, now: Micros, arriving: Arriving) {
        let Arriving { insert, held_bytes, outcome, journaled, left_over } = arriving;
        let rows = insert.rows.count();
        match self.members.is_empty() {
            // The first insert's rows become the buffer's: many are not copied, and it is they that say of which kind
            // it is.
            // That the large blocks of later ones are kept as they are, instead of copied, was tried: inserts of 50 kB
            // cost a seventh more CPU time, and the batch takes a third more memory, since no block is free for the
            // next request before the batch is stored.
            true => self.rows = insert.rows,
            false => self.rows.append(&insert.rows),
        }
        self.members.push(Member {
            id,
            rows,
            payload_bytes: insert.payload_bytes,
            held_bytes,
            arrived_at: now,
            query_id: insert.query_id,
            writer: insert.writer,
            kind: insert.kind,
            ack: insert.ack,
            outcome,
            attempts: 0,
            baggage: Baggage::of(insert.dedup, insert.history, insert.trace),
            journaled,
            place: None,
            left_over,
            withdrawn: false,
        });
    }

    /// Marks an insert as taken back. Cheap: many may give up in the same moment, under the table's lock.
    pub(crate) fn withdraw(&mut self, member: u64) -> Option<&Member> {
        let index = self.members.binary_search_by_key(&member, |member| member.id).ok()?;
        let member = &mut self.members[index];
        if std::mem::replace(&mut member.withdrawn, true) {
            return None;
        }
        Some(member)
    }

    /// Takes out members without their rows, as if each had been taken back. As cheap as that.
    pub(crate) fn dismiss(&mut self, picked: impl Fn(&Member) -> bool) -> Vec<Member> {
        let dismissed = self.members.iter_mut().filter(|member| !member.withdrawn && picked(member));
        dismissed.map(Member::leave_rows).collect()
    }

    /// An attempt to store them has failed.
    pub(crate) fn count_attempt(&mut self) {
        self.members.iter_mut().for_each(|member| member.attempts = member.attempts.saturating_add(1));
    }

    /// How many of them nothing but memory keeps, though they were acknowledged.
    pub(crate) fn unkept_inserts(&self) -> u64 {
        let unkept = |member: &&Member| member.ack != AckLevel::Stored && member.journaled.is_none();
        self.members.iter().filter(unkept).count() as u64
    }

    /// Takes out what was taken back; true if there was anything.
    pub(crate) fn drop_withdrawn(&mut self) -> bool {
        self.members.iter().any(|member| member.withdrawn) && !self.extract(|member| member.withdrawn).is_empty()
    }

    /// Hands out all, and leaves nothing.
    pub(crate) fn take(&mut self) -> Contents {
        Contents { rows: self.rows.take(), members: std::mem::take(&mut self.members) }
    }

    /// Cuts before the member at `index`; the second half is returned.
    pub(crate) fn split_off(&mut self, index: usize) -> Contents {
        let start: usize = self.members[..index].iter().map(|member| member.rows).sum();
        let second = self.rows.split_off(start);
        Contents { rows: second, members: self.members.split_off(index) }
    }

    /// Takes out the members that `picked` has, with their rows.
    pub(crate) fn take_apart(&mut self, picked: &[bool]) -> Contents {
        let mut out = self.take();
        let (mut ours, mut theirs, mut start) = (Vec::<Range<usize>>::new(), Vec::new(), 0);
        let mut taken = Vec::new();
        for (member, picked) in std::mem::take(&mut out.members).into_iter().zip(picked) {
            let end = start + member.rows;
            let (ranges, members) = match picked {
                true => (&mut theirs, &mut taken),
                false => (&mut ours, &mut self.members),
            };
            ranges.push(start..end);
            members.push(member);
            start = end;
        }
        let all = out.rows.take();
        self.rows.append_ranges(&all, &ours);
        out.rows.append_ranges(&all, &theirs);
        Contents { rows: out.rows, members: taken }
    }

    pub(crate) fn one_by_one(self) -> Vec<Contents> {
        let counts: Vec<usize> = self.members.iter().map(|member| member.rows).collect();
        let each = self.members.into_iter().zip(self.rows.into_pieces(&counts));
        each.map(|(member, rows)| Contents { rows, members: vec![member] }).collect()
    }

    /// Takes out all members that `picked` says, rows and all.
    pub(crate) fn extract(&mut self, picked: impl Fn(&Member) -> bool) -> Vec<Member> {
        let (mut out, mut kept, mut start) = (Vec::new(), Vec::<Range<usize>>::new(), 0);
        for member in std::mem::take(&mut self.members) {
            let end = start + member.rows;
            if picked(&member) {
                out.push(member);
            } else {
                kept.push(start..end);
                self.members.push(member);
            }
            start = end;
        }
        let all = self.rows.take();
        self.rows.append_ranges(&all, &kept);
        out
    }
}
