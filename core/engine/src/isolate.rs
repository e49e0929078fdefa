//! Narrowing down of a batch that fails, until only the guilty inserts fail.
//!
//! A refused piece of several inserts is taken apart, in one of these ways:
//!
//! - **by a suspect**: the refusal names a row (a violated constraint does). The insert that brought this row
//!   is stored after the others of the batch, with all others of its writer, and the rest is tried again as
//!   one piece: two stores acknowledge the innocent inserts, however many there are. When a second writer is
//!   to blame, all inserts go whose writers' latest insert was not stored. If a piece has inserts of one
//!   writer only, the one that was named goes alone, and more of them where culprits follow each other.
//! - **by trust**, where no row is named: inserts of writers whose latest insert was stored go first.
//! - **in halves**: one culprit among `n` inserts takes about 2 log2(n) stores.
//!
//! A row in an error is a hint and no proof. A suspect is stored apart, after all others, and in the end
//! alone: each suspect hears the sink's answer to its own insert, and no innocent one is refused. That may
//! take as many stores as there are inserts; so suspects are stored beside the lane, which goes on without
//! them (`line.rs`). Inserts of writers that were refused a moment ago begin as suspects.
//!
//! Both halves are tried where the error would be that of every insert (a table is gone, say). If they get
//! the same error, no culprit is looked for.
//!
//! Errors that pass are another matter: see `retry_state.rs`. For these one insert goes by itself, as a
//! probe; if it is stored and the rest is not, the rest is narrowed down.
//!
//! Ids are derived: the same members of the same batch always make a piece with the same id.

use std::collections::HashSet;

use crate::sink::BatchId;
use windrow_clickhouse::{ErrorCode, Exception};
use windrow_columns::Rows;

use crate::insert::InsertError;
use crate::line::{Line, Remainder, Senders, WaitingMembers};
use crate::member::{Contents, Member};
use crate::retry_state::{Reach, RetryState};

/// A batch, or a part of one, that is stored under an id of its own.
pub(crate) struct Piece {
    pub(crate) id: BatchId,
    pub(crate) contents: Contents,
    pub(crate) retry_state: RetryState,
    pub(crate) last_error: Option<InsertError>,
    half: Option<Half>,
}

/// The mark of one of two halves that are to show whether all inserts get the same error.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Half {
    First,
    Second,
}

impl Piece {
    /// Creates a piece from a part of `batch`.
    fn of(batch: BatchId, contents: Contents, retry_state: RetryState) -> Piece {
        Piece { id: piece_id(batch, &contents.members), contents, retry_state, last_error: None, half: None }
    }

    /// Gives the piece the id of its present members, after these have changed.
    pub(crate) fn rename(&mut self, batch: BatchId) {
        self.id = piece_id(batch, &self.contents.members);
    }

    /// Says whether the outcome stays unknown: after the second such attempt there is reason to look which of
    /// the inserts it is.
    pub(crate) fn stays_unknown(&self) -> bool {
        matches!(self.last_error, Some(InsertError::OutcomeUnknown(_))) && self.retry_state.stays_unknown()
    }
}

/// Puts the piece behind the last that it has to stay behind; or else before the first that has to stay
/// behind it. Pieces of a batch are put off in another order than that of their inserts.
fn insert_in_order(pieces: &mut Vec<Piece>, piece: Piece) {
    let waiting_of = |piece: &Piece| {
        let mut waiting = WaitingMembers::default();
        piece.contents.members.iter().for_each(|member| waiting.add(member, Reach::Clients));
        waiting
    };
    let last_before = pieces.iter().rposition(|other| waiting_of(other).are_before_any(&piece.contents.members));
    let first_behind = || {
        let waiting = waiting_of(&piece);
        pieces.iter().position(|other| waiting.are_before_any(&other.contents.members))
    };
    let place = last_before.map(|last| last + 1).or_else(first_behind).unwrap_or(pieces.len());
    pieces.insert(place, piece);
}

fn piece_id(batch: BatchId, members: &[Member]) -> BatchId {
    batch.derived(members.iter().flat_map(Member::lasting_id))
}

/// Bounds on how often suspects are taken out, and on the bytes that are sent again for that. Taking out a
/// suspect makes no parts in a table, but sends the others again. Beyond the bounds pieces are halved.
const MAX_SUSPECTS: u32 = 512;
const MAX_BYTES_AGAIN: u64 = 256 << 20;
const LONGEST_RUN: usize = 64;
/// Number of narrowings up to which batches behind this one wait for the rest.
const MAX_NARROWINGS_IN_LINE: u32 = 16;

/// A piece that will not be stored as it is.
pub(crate) struct Refusal {
    pub(crate) piece: Piece,
    pub(crate) exception: Exception,
    pub(crate) scope: Scope,
}

/// The inserts of a piece that an error concerns.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// The error concerns some insert.
    Some,
    /// The error concerns all inserts, as far as it tells.
    All,
    /// The error counts for all inserts, since the batch's source brings the same batch again.
    Batch,
}

impl Scope {
    pub(crate) fn of(exception: &Exception, rows: &Rows, is_pushed: bool) -> Scope {
        match is_pushed {
            true if is_of_rows(exception) => Scope::Some,
            true => Scope::Batch,
            false if concerns_whole_batch(exception.code, rows) => Scope::All,
            false => Scope::Some,
        }
    }
}

/// Members that are taken out of a piece.
enum Picked {
    /// Number of first members that are taken out: each by itself, before the others.
    First(usize),
    /// Members that are stored as one piece, after all others.
    Suspects { members: Vec<bool>, is_whole_writers: bool },
}

impl Picked {
    fn one(index: usize, members: usize) -> Picked {
        Picked::Suspects { members: (0..members).map(|member| member == index).collect(), is_whole_writers: false }
    }

    fn of_writers(members: Vec<bool>) -> Picked {
        Picked::Suspects { members, is_whole_writers: true }
    }
}

/// A piece that is stored after all others of the batch.
struct Suspects {
    piece: Piece,
    /// The piece has all inserts that its writers have in the batch. Those of their inserts that are found
    /// later become suspects as well.
    is_whole_writers: bool,
}

/// The pieces of one batch that are still to be stored, and how much more may be done to find its culprits.
pub(crate) struct Pieces {
    batch: BatchId,
    /// Pieces that are tried in this round; the next one is the last of the list.
    waiting: Vec<Piece>,
    /// Pieces that were tried in this round and are to be tried again, in order.
    held: Vec<Piece>,
    /// The round is over: no other piece is tried before the pause.
    is_round_over: bool,
    suspects: Vec<Suspects>,
    /// The first half, after it was refused with an error that concerns all inserts.
    refused_half: Option<Refusal>,
    /// Writers of rows that refusals have named.
    named: HashSet<u64>,
    /// Number of inserts that are taken out at once where culprits follow each other.
    run: usize,
    pub(crate) narrowings: u32,
    suspects_left: u32,
    bytes_left: u64,
    /// The batch's source has put it together, and would have to send the same parts again.
    is_pushed: bool,
}

impl Pieces {
    /// Creates the pieces of a batch. `parts` are the whole batch, in order.
    pub(crate) fn new(batch: BatchId, mut parts: Vec<Contents>, is_pushed: bool, retry_state: RetryState) -> Pieces {
        let whole = |contents| Piece { id: batch, ..Piece::of(batch, contents, retry_state.clone()) };
        let waiting = match parts.len() {
            1 => parts.drain(..).map(whole).collect(),
            _ => parts.into_iter().rev().map(|contents| Piece::of(batch, contents, retry_state.clone())).collect(),
        };
        Pieces {
            batch,
            waiting,
            held: Vec::new(),
            is_round_over: false,
            suspects: Vec::new(),
            refused_half: None,
            named: HashSet::new(),
            run: 0,
            narrowings: 0,
            suspects_left: MAX_SUSPECTS,
            bytes_left: MAX_BYTES_AGAIN,
            is_pushed,
        }
    }

    /// Adds suspects, which are tried after all others.
    pub(crate) fn suspect(&mut self, contents: Contents) {
        let piece = Piece::of(self.batch, contents, RetryState::new(true));
        self.suspects.push(Suspects { piece, is_whole_writers: true });
    }

    /// Returns the next piece of this round. Inserts that have to stay behind others that wait are not in it:
    /// these wait as well.
    pub(crate) fn next(&mut self, deduplicates: bool) -> Option<Piece> {
        while !self.is_round_over {
            let piece = self.waiting.pop()?;
            if self.held.is_empty() && self.suspects.is_empty() {
                return Some(piece);
            }
            let rest = self.put_behind_held(piece, deduplicates);
            let rest = rest.and_then(|rest| self.put_with_suspects(rest, deduplicates));
            if rest.is_some() {
                return rest;
            }
        }
        None
    }

    fn put_behind_held(&mut self, piece: Piece, deduplicates: bool) -> Option<Piece> {
        let mut waiting = WaitingMembers::default();
        for held in &self.held {
            let reach = held.retry_state.reach();
            held.contents.members.iter().for_each(|member| waiting.add(member, reach));
        }
        let (rest, mut behind) = self.part(piece, waiting, deduplicates);
        let least = self.held.iter().map(|held| held.retry_state.reach()).min();
        if let (Some(behind), Some(least)) = (&mut behind, least) {
            behind.retry_state.stays_behind(least);
        }
        behind.into_iter().for_each(|behind| insert_in_order(&mut self.held, behind));
        rest
    }

    fn put_with_suspects(&mut self, piece: Piece, deduplicates: bool) -> Option<Piece> {
        let mut waiting = WaitingMembers::default();
        let of_writers = self.suspects.iter().filter(|suspects| suspects.is_whole_writers);
        of_writers
            .flat_map(|suspects| &suspects.piece.contents.members)
            .for_each(|member| waiting.add(member, Reach::Clients));
        let (rest, suspects) = self.part(piece, waiting, deduplicates);
        self.suspects.extend(suspects.map(|piece| Suspects { piece, is_whole_writers: true }));
        rest
    }

    /// Divides a piece into what can go and what has to wait. Where the piece must not be cut, all of it
    /// waits.
    fn part(&self, mut piece: Piece, waiting: WaitingMembers, deduplicates: bool) -> (Option<Piece>, Option<Piece>) {
        let members = &piece.contents.members;
        let picked = waiting.with_followers(members, vec![false; members.len()]);
        if !picked.contains(&true) {
            return (Some(piece), None);
        }
        if !picked.contains(&false) || !piece.retry_state.may_be_cut(deduplicates) {
            return (None, Some(piece));
        }
        let (retry_state, last_error) = (piece.retry_state.clone(), piece.last_error.clone());
        let picked = Piece { last_error, ..Piece::of(self.batch, piece.contents.take_apart(&picked), retry_state) };
        piece.rename(self.batch);
        (Some(piece), Some(picked))
    }

    /// Puts a piece off until the next round. `goes_on` says that other pieces are still tried in this round.
    pub(crate) fn hold(&mut self, piece: Piece, goes_on: bool) {
        insert_in_order(&mut self.held, piece);
        self.is_round_over |= !goes_on;
    }

    pub(crate) fn is_round_over(&self) -> bool {
        self.is_round_over || self.waiting.is_empty()
    }

    pub(crate) fn begin_round(&mut self) {
        self.waiting.extend(self.held.drain(..).rev());
        self.waiting.retain(|piece| !piece.contents.members.is_empty());
        self.is_round_over = false;
    }

    /// Returns the pieces that are to be tried, again or for the first time, except suspects.
    pub(crate) fn resting(&mut self) -> impl Iterator<Item = &mut Piece> {
        self.held.iter_mut().chain(self.waiting.iter_mut().rev())
    }

    /// Returns all pieces, also suspects, that no attempt can have stored.
    pub(crate) fn surely_not_stored(&mut self) -> impl Iterator<Item = &mut Piece> {
        let suspects = self.suspects.iter_mut().map(|suspects| &mut suspects.piece);
        let all = self.held.iter_mut().chain(self.waiting.iter_mut().rev()).chain(suspects);
        all.filter(|piece| piece.retry_state.surely_not_stored)
    }

    /// Says whether nothing is left but suspects.
    pub(crate) fn is_over(&self) -> bool {
        self.waiting.is_empty() && self.held.is_empty()
    }

    /// Says whether it is the suspects' turn. Beside the lane they wait for nothing that is held.
    pub(crate) fn is_turn_of_suspects(&self, is_aside: bool) -> bool {
        !self.suspects.is_empty() && self.waiting.is_empty() && (self.held.is_empty() || is_aside)
    }

    /// Makes the suspects pieces of this round. Nothing else is left then that has not been tried: until then
    /// inserts that have to stay behind suspects wait with them.
    pub(crate) fn begin_suspects(&mut self) {
        // In the order in which they came.
        let mut suspects: Vec<Piece> = self.suspects.drain(..).map(|suspects| suspects.piece).collect();
        suspects.sort_unstable_by_key(|piece| piece.contents.members.first().map(|member| member.id));
        let mut in_order = Vec::with_capacity(suspects.len());
        suspects.into_iter().for_each(|piece| insert_in_order(&mut in_order, piece));
        self.waiting.extend(in_order.into_iter().rev());
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.held.is_empty() && self.suspects.is_empty() && self.refused_half.is_none()
    }

    /// Says whether finding the culprits takes long.
    pub(crate) fn takes_long(&self) -> bool {
        self.narrowings > MAX_NARROWINGS_IN_LINE
    }

    /// Describes what is left of the batch: its senders, and how far it holds up others.
    pub(crate) fn remainder(&self) -> Remainder {
        let tried = self.held.iter().chain(&self.waiting).map(|piece| piece.retry_state.reach());
        let untried = (!self.suspects.is_empty() || self.refused_half.is_some()).then_some(Reach::Clients);
        let reach = tried.chain(untried).max().unwrap_or(Reach::Clients);
        Remainder { senders: self.senders(), reach, inserts: self.inserts() }
    }

    /// Returns the number of inserts that have not come to their end.
    pub(crate) fn inserts(&self) -> u64 {
        self.all().map(|piece| piece.contents.members.len() as u64).sum()
    }

    fn senders(&self) -> Senders {
        Senders::of(self.all().flat_map(|piece| &piece.contents.members))
    }

    fn all(&self) -> impl Iterator<Item = &Piece> {
        let refused_half = self.refused_half.iter().map(|refusal| &refusal.piece);
        let suspects = self.suspects.iter().map(|suspects| &suspects.piece);
        self.waiting.iter().chain(&self.held).chain(suspects).chain(refused_half)
    }

    /// Takes a refused piece apart. Returns pieces that can't be taken apart, each with its error: they fail.
    pub(crate) fn narrow(&mut self, refusal: Refusal, line: &Line) -> Vec<Refusal> {
        match (refusal.scope, refusal.piece.half) {
            (Scope::Batch, _) => vec![refusal],
            (Scope::All, Some(Half::First)) => {
                self.refused_half = Some(refusal);
                Vec::new()
            }
            (Scope::All, Some(Half::Second)) if self.is_as_the_first(&refusal) => {
                self.refused_half.take().into_iter().chain([refusal]).collect()
            }
            _ => self.take_apart(refusal, line).into_iter().collect(),
        }
    }

    fn is_as_the_first(&self, second: &Refusal) -> bool {
        self.refused_half.as_ref().is_some_and(|first| first.exception.code == second.exception.code)
    }

    /// Takes a refused first half apart if the second half was not refused as well: then the first half is to
    /// blame.
    pub(crate) fn narrow_half(&mut self, line: &Line) -> Option<Refusal> {
        let is_second = |piece: &Piece| piece.half == Some(Half::Second);
        if self.waiting.iter().chain(&self.held).any(is_second) {
            return None;
        }
        let first = self.refused_half.take()?;
        self.take_apart(first, line)
    }

    fn take_apart(&mut self, refusal: Refusal, line: &Line) -> Option<Refusal> {
        let Refusal { mut piece, exception, scope } = refusal;
        if piece.contents.members.len() < 2 {
            return Some(Refusal { piece, exception, scope });
        }
        self.narrowings += 1;
        if scope == Scope::All {
            self.halve(piece, [Some(Half::First), Some(Half::Second)]);
            return None;
        }
        let (batch, retry_state) = (self.batch, piece.retry_state.of_part());
        let part = |contents| Piece::of(batch, contents, retry_state.clone());
        match self.picked(&exception, &piece, line) {
            Some(Picked::First(count)) => {
                let rest = piece.contents.split_off(count);
                let first = piece.contents.one_by_one().into_iter().rev().map(part);
                self.waiting.extend([part(rest)].into_iter().chain(first));
            }
            Some(Picked::Suspects { members, is_whole_writers }) => {
                let piece_of_suspects = part(piece.contents.take_apart(&members));
                self.waiting.push(part(piece.contents));
                self.suspects.push(Suspects { piece: piece_of_suspects, is_whole_writers });
            }
            None => self.halve(piece, [None; 2]),
        }
        None
    }

    /// Halves a piece that is suspected. Others are stored, so the backend is there: the piece, or a part of
    /// it, is to blame.
    pub(crate) fn cut_suspected(&mut self, piece: Piece) {
        self.narrowings += 1;
        self.halve(piece, [None; 2]);
    }

    fn halve(&mut self, mut piece: Piece, marks: [Option<Half>; 2]) {
        let retry_state = piece.retry_state.of_part();
        let second = piece.contents.split_off(piece.contents.members.len() / 2);
        let part = |contents, half, retry_state| Piece { half, ..Piece::of(self.batch, contents, retry_state) };
        let halves = [part(second, marks[1], retry_state.clone()), part(piece.contents, marks[0], retry_state)];
        // The first half goes first: rows keep their order.
        self.waiting.extend(halves);
    }

    /// Halves a piece of which nobody knows whether it is stored.
    pub(crate) fn halve_unknown(&mut self, piece: Piece) {
        self.narrowings += 1;
        let error = piece.last_error.clone();
        self.halve(piece, [None; 2]);
        self.waiting.iter_mut().rev().take(2).for_each(|half| half.last_error = error.clone());
        self.is_round_over = true;
    }

    /// Divides a piece so that its first insert goes by itself, before the rest.
    pub(crate) fn probe(&mut self, piece: Piece) {
        let Piece { contents: mut first, retry_state, last_error, .. } = piece;
        let rest = first.split_off(1);
        let part = |contents| {
            let last_error = last_error.clone();
            Piece { last_error, ..Piece::of(self.batch, contents, retry_state.clone()) }
        };
        self.waiting.extend([part(rest), part(first)]);
    }

    /// Picks the members of a refused piece that are stored apart from the rest. Returns `None` if the piece
    /// is to be halved.
    fn picked(&mut self, exception: &Exception, piece: &Piece, line: &Line) -> Option<Picked> {
        let members = &piece.contents.members;
        let some_of = |picked: Vec<bool>| {
            let picked = WaitingMembers::default().with_followers(members, picked);
            Some(picked).filter(|picked| picked.contains(&true) && picked.contains(&false))
        };
        let is_stranger = || members.iter().map(|member| !line.is_trusted(member.writer)).collect();
        let Some(index) = self.named_member(exception, piece) else {
            let strangers = some_of(is_stranger()).filter(|_| !self.is_pushed);
            return strangers.map(Picked::of_writers);
        };
        if self.is_pushed {
            return Some(Picked::one(index, members.len()));
        }
        let culprit = members[index].writer;
        self.named.insert(culprit);
        let is_one_of_several = self.named.len() > 1 && !line.is_trusted(culprit);
        let strangers = is_one_of_several.then(|| some_of(is_stranger())).flatten();
        let of_writer = || some_of(members.iter().map(|member| member.writer == culprit).collect());
        if let Some(members) = strangers.or_else(of_writer) {
            return Some(Picked::of_writers(members));
        }
        if index > 0 {
            self.run = 1;
            return Some(Picked::one(index, members.len()));
        }
        // It stood behind one that was taken out before.
        self.run = (2 * self.run).clamp(1, LONGEST_RUN);
        Some(Picked::First(self.run.min(members.len() - 1)))
    }

    fn named_member(&mut self, exception: &Exception, piece: &Piece) -> Option<usize> {
        let row = exception.row().filter(|_| self.suspects_left > 0)?;
        self.bytes_left = self.bytes_left.checked_sub(piece.contents.rows.bytes() as u64)?;
        let mut ends = piece.contents.members.iter().scan(0, |end, member| {
            *end += member.rows as u64;
            Some(*end)
        });
        let index = ends.position(|end| row <= end)?;
        self.suspects_left -= 1;
        Some(index)
    }
}

/// Says whether every insert of a batch would get this error, so that looking for a culprit is in vain.
pub(crate) fn concerns_whole_batch(code: ErrorCode, rows: &Rows) -> bool {
    match rows {
        Rows::Parsed(_) | Rows::Blocks(_) => concerns_all_typed(code),
        // What only the text of one insert can have brought about.
        Rows::Passthrough(_) => {
            concerns_all_typed(code)
                && !matches!(
                    code,
                    ErrorCode::NUMBER_OF_COLUMNS_DOESNT_MATCH
                        | ErrorCode::ILLEGAL_COLUMN
                        | ErrorCode::NOT_IMPLEMENTED
                        | ErrorCode::TYPE_MISMATCH
                )
        }
    }
}

fn concerns_all_typed(code: ErrorCode) -> bool {
    let is_named = matches!(
        code,
        ErrorCode::NO_SUCH_COLUMN_IN_TABLE
            | ErrorCode::NUMBER_OF_COLUMNS_DOESNT_MATCH
            | ErrorCode::ILLEGAL_COLUMN
            | ErrorCode::NOT_IMPLEMENTED
            | ErrorCode::TYPE_MISMATCH
            | ErrorCode::UNKNOWN_TABLE
            | ErrorCode::UNKNOWN_FORMAT
            | ErrorCode::UNKNOWN_DATABASE
            | ErrorCode::UNKNOWN_SETTING
            | ErrorCode::QUOTA_EXCEEDED
            | ErrorCode::SETTING_CONSTRAINT_VIOLATION
            | ErrorCode::ACCESS_DENIED
            | ErrorCode::UNKNOWN_ROLE
    );
    is_named || code.is_about_identity()
}

/// Says whether the refusal comes from the rows' values, whenever and however often they are sent.
pub(crate) fn is_of_rows(exception: &Exception) -> bool {
    let is_about_partitions = exception.code == ErrorCode::TOO_MANY_PARTS && !exception.is_passing();
    is_about_partitions || exception.comes_of_values() && !concerns_all_typed(exception.code)
}

/// Says whether the error shows that our knowledge of the table is out of date. An error about missing rights
/// counts too: the right may be missing behind a view of the table.
pub(crate) fn shows_stale_schema(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::NOT_FOUND_COLUMN_IN_BLOCK
            | ErrorCode::NO_SUCH_COLUMN_IN_TABLE
            | ErrorCode::NUMBER_OF_COLUMNS_DOESNT_MATCH
            | ErrorCode::ILLEGAL_COLUMN
            | ErrorCode::UNKNOWN_IDENTIFIER
            | ErrorCode::TYPE_MISMATCH
            | ErrorCode::UNKNOWN_TABLE
            | ErrorCode::UNKNOWN_DATABASE
            | ErrorCode::ACCESS_DENIED
    )
}
