//! Inserts within a batch, and their rows.

use std::ops::Range;
use std::sync::Arc;

use crate::policy::Micros;
use crate::trace::SpanContext;
use tokio::sync::oneshot;
use windrow_columns::Rows;

use crate::insert::{AckLevel, DedupKeys, History, Insert, InsertKind, Outcome, QueryId};
use crate::journaling::Journaled;

/// Bytes that it costs to hold an insert besides its rows: its member entry, its ids, its answer's channel.
pub(crate) const MEMBER_BYTES: u64 = 256;
/// Bytes of a batch up to which its rows are copied whenever an insert leaves.
const CHEAP_BYTES: u64 = 64 << 10;
/// Share of a larger batch (one part in so many) that rows of members that have left may reach before they
/// are taken out: what is copied for that is a few times what goes.
const MOST_LEFT: u64 = 4;

/// Rows, and the members that they belong to.
#[derive(Default)]
pub(crate) struct Contents {
    pub(crate) rows: Rows,
    pub(crate) members: Vec<Member>,
    /// Bytes held by members that have left while their rows lie here: the budget gets them back with the
    /// rows.
    left_bytes: u64,
}

/// Rows and entries of members that have left, now taken out. They are dropped where nobody waits for that,
/// and their bytes are given back then.
#[must_use = "its bytes are given back to the budget"]
pub(crate) struct Cleared {
    pub(crate) bytes: u64,
    _rows: Rows,
    _members: Vec<Member>,
}

/// An insert within a batch.
pub(crate) struct Member {
    pub(crate) id: u64,
    pub(crate) rows: usize,
    pub(crate) payload_bytes: u64,
    pub(crate) held_bytes: u64,
    pub(crate) arrived_at: Micros,
    pub(crate) query_id: QueryId,
    /// The connection that the insert came on.
    pub(crate) writer: u64,
    pub(crate) kind: Arc<InsertKind>,
    pub(crate) ack: AckLevel,
    /// The channel to whoever is to be told the outcome.
    pub(crate) outcome: Option<oneshot::Sender<Outcome>>,
    /// Number of attempts to store the insert that have failed.
    pub(crate) attempts: u32,
    pub(crate) baggage: Option<Box<Baggage>>,
    pub(crate) journaled: Option<Journaled>,
    /// The insert's place in a batch that its source has put together.
    pub(crate) place: Option<u32>,
    pub(crate) left_over: bool,
    /// The insert has left: its sender took it back, or it was dismissed. Its rows go when enough inserts
    /// have left, or when the batch takes off.
    pub(crate) withdrawn: bool,
}

/// The parts that most inserts don't have.
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
    /// Says whether the sender waits until the insert is stored, and decides what to do if it can't be.
    pub(crate) fn waits(&self) -> bool {
        self.ack == AckLevel::Stored
    }

    /// Returns the span of the request that the insert came with, if that is traced.
    pub(crate) fn trace(&self) -> Option<&SpanContext> {
        self.baggage.as_ref()?.trace.as_deref()
    }

    /// Says whether the sender is asked before the insert is sent again when that might store it twice. A
    /// source would send it again anyway.
    pub(crate) fn is_asked(&self) -> bool {
        self.waits() && self.place.is_none()
    }

    /// Takes the member out. An entry stays that says which rows were the member's own, and how many bytes
    /// they hold.
    fn leave_rows(&mut self) -> Member {
        let stays = Member {
            id: self.id,
            rows: self.rows,
            payload_bytes: 0,
            held_bytes: std::mem::take(&mut self.held_bytes),
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

    /// Returns the id of the member that names parts of a batch: it is the same over restarts for members in
    /// the journal, and for those of a source.
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

/// An insert on its way into a batch, for which memory has been granted.
pub(crate) struct Arriving {
    pub(crate) insert: Insert,
    pub(crate) held_bytes: u64,
    pub(crate) outcome: Option<oneshot::Sender<Outcome>>,
    pub(crate) journaled: Option<Journaled>,
    /// An earlier run left the insert: new inserts wait for its end.
    pub(crate) left_over: bool,
}

impl Contents {
    pub(crate) fn new(rows: Rows, members: Vec<Member>) -> Contents {
        Contents { rows, members, left_bytes: 0 }
    }

    /// Adds an insert's rows, and its entry under a higher id than all before.
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

    /// Marks an insert as taken back. [`clear_left`](Self::clear_left) has to follow.
    pub(crate) fn withdraw(&mut self, member: u64) -> Option<&Member> {
        let index = self.members.binary_search_by_key(&member, |member| member.id).ok()?;
        let member = &mut self.members[index];
        if std::mem::replace(&mut member.withdrawn, true) {
            return None;
        }
        self.left_bytes += member.held_bytes;
        Some(member)
    }

    /// Takes out members without their rows, as if each had been taken back. The bytes that they hold go with
    /// their rows.
    pub(crate) fn dismiss(&mut self, picked: impl Fn(&Member) -> bool) -> Vec<Member> {
        let mut dismissed = Vec::new();
        for member in self.members.iter_mut().filter(|member| !member.withdrawn && picked(member)) {
            self.left_bytes += member.held_bytes;
            dismissed.push(member.leave_rows());
        }
        dismissed
    }

    #[cfg(test)]
    pub(crate) fn held_bytes(&self) -> u64 {
        self.members.iter().map(|member| member.held_bytes).sum()
    }

    /// Returns the members that have not left.
    pub(crate) fn staying(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(|member| !member.withdrawn)
    }

    /// Takes out the rows of members that have left if these rows are many. Many senders may give up in the
    /// same moment, under the table's lock.
    pub(crate) fn clear_left(&mut self) -> Option<Cleared> {
        let holds_bytes = self.rows.bytes() as u64 + MEMBER_BYTES * self.members.len() as u64;
        let is_due = holds_bytes <= CHEAP_BYTES || self.left_bytes >= holds_bytes / MOST_LEFT;
        if is_due {
            self.drop_left()
        } else {
            None
        }
    }

    /// Takes out the rows of members that have left, however few these are. Returns `None` if no member has
    /// left.
    pub(crate) fn drop_left(&mut self) -> Option<Cleared> {
        if !self.members.iter().any(|member| member.withdrawn) {
            return None;
        }
        let (members, rows) = self.take_out(|member| member.withdrawn);
        Some(Cleared { bytes: std::mem::take(&mut self.left_bytes), _rows: rows, _members: members })
    }

    /// Counts an attempt to store these members that has failed.
    pub(crate) fn count_attempt(&mut self) {
        self.members.iter_mut().for_each(|member| member.attempts = member.attempts.saturating_add(1));
    }

    /// Returns the number of members that were acknowledged, though only memory keeps them.
    pub(crate) fn unkept_inserts(&self) -> u64 {
        let unkept = |member: &&Member| member.ack != AckLevel::Stored && member.journaled.is_none();
        self.members.iter().filter(unkept).count() as u64
    }

    /// Hands out all rows and members, and leaves nothing.
    pub(crate) fn take(&mut self) -> Contents {
        let left_bytes = std::mem::take(&mut self.left_bytes);
        Contents { rows: self.rows.take(), members: std::mem::take(&mut self.members), left_bytes }
    }

    /// Cuts before the member at `index`, and returns the second half.
    pub(crate) fn split_off(&mut self, index: usize) -> Contents {
        let start: usize = self.members[..index].iter().map(|member| member.rows).sum();
        let second = self.rows.split_off(start);
        Contents::new(second, self.members.split_off(index))
    }

    /// Takes out the members that `picked` marks, with their rows.
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
        Contents::new(out.rows, taken)
    }

    pub(crate) fn one_by_one(self) -> Vec<Contents> {
        let counts: Vec<usize> = self.members.iter().map(|member| member.rows).collect();
        let each = self.members.into_iter().zip(self.rows.into_pieces(&counts));
        each.map(|(member, rows)| Contents::new(rows, vec![member])).collect()
    }

    /// Takes out all members that `picked` chooses, and drops their rows.
    pub(crate) fn extract(&mut self, picked: impl Fn(&Member) -> bool) -> Vec<Member> {
        self.take_out(picked).0
    }

    /// Takes out members. Returns them, and the rows that all members lay in.
    fn take_out(&mut self, picked: impl Fn(&Member) -> bool) -> (Vec<Member>, Rows) {
        let (mut out, mut kept, mut start) = (Vec::new(), Vec::<Range<usize>>::new(), 0);
        for member in std::mem::take(&mut self.members) {
            let end = start + member.rows;
            if picked(&member) {
                out.push(member);
            } else {
                match kept.last_mut().filter(|last| last.end == start) {
                    Some(last) => last.end = end,
                    None => kept.push(start..end),
                }
                self.members.push(member);
            }
            start = end;
        }
        let all = self.rows.take();
        self.rows.append_ranges(&all, &kept);
        (out, all)
    }
}
