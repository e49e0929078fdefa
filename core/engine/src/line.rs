//! The state that the batches of one shape share: which of them are set aside, whose inserts were refused a
//! moment ago, and how many were stored.
//!
//! A batch that may never be stored, or whose culprits take long to find, is *set aside*: its lane goes on
//! without it, and it is tried beside the lane. Order is kept where it can matter:
//!
//! - An insert waits behind inserts of its own connection that are aside.
//! - An insert that was acknowledged before it was stored (levels `memory` and `disk`) does not overtake
//!   another such insert: one client may have sent both, on two connections. A client that waits until its
//!   insert is stored sends what comes behind it after that; so its insert waits for nobody else's.
//! - Inserts that come from the journal may be anybody's: all inserts wait behind them.
//! - Nobody waits for ever behind inserts that may be somebody else's: `RetryState::reach` says how far that
//!   waiting reaches, and until when.
//! - While nothing says that the batch itself is to blame (it is *in doubt*), the backend may be away. Then a
//!   batch that comes behind is tried only directly after the batch in doubt has failed again: the batch in
//!   doubt is the first to be stored when the backend is back. If one behind it is stored instead, the batch
//!   in doubt is to blame.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::feeder::FEEDER;
use crate::member::Member;
use crate::retry_state::Reach;
use crate::shape::Shape;

/// Number of batches that may be aside: each that ends wakes all others. Further batches wait in their lane.
const MOST_ASIDE: usize = 256;
/// Number of writers whose latest outcome is remembered, for each of the two outcomes.
const MOST_WRITERS: usize = 4096;

/// The senders of some inserts.
#[derive(Default, Clone)]
pub(crate) struct Senders {
    connections: HashSet<u64>,
    /// Some of the inserts were acknowledged before they were stored.
    are_some_acknowledged: bool,
}

impl Senders {
    pub(crate) fn of<'m>(members: impl IntoIterator<Item = &'m Member>) -> Senders {
        let mut senders = Senders::default();
        members.into_iter().for_each(|member| senders.add(member));
        senders
    }

    pub(crate) fn add(&mut self, member: &Member) {
        self.connections.insert(member.writer);
        self.are_some_acknowledged |= !member.is_asked();
    }

    pub(crate) fn is_nobody(&self) -> bool {
        self.connections.is_empty()
    }

    pub(crate) fn may_be_anybody(&self) -> bool {
        self.connections.contains(&FEEDER)
    }
}

/// Members of a batch that wait: members that have to stay behind them in the batch wait as well.
#[derive(Default)]
pub(crate) struct WaitingMembers {
    /// The first member of each connection.
    of_writers: HashMap<u64, u64>,
    /// The first member that was acknowledged already, the first that may be anybody's, and the first of all.
    acknowledged: Option<u64>,
    of_anybody: Option<u64>,
    first: Option<u64>,
    /// The furthest reach of these members.
    reach: Option<Reach>,
}

impl WaitingMembers {
    pub(crate) fn add(&mut self, member: &Member, reach: Reach) {
        self.reach = self.reach.max(Some(reach));
        let is_earlier = |first: &Option<u64>| first.is_none_or(|first| member.id < first);
        if reach >= Reach::Clients && !member.is_asked() && is_earlier(&self.acknowledged) {
            self.acknowledged = Some(member.id);
        }
        if reach >= Reach::Unknown && is_earlier(&self.first) {
            self.first = Some(member.id);
        }
        if reach >= Reach::Unknown && member.writer == FEEDER && is_earlier(&self.of_anybody) {
            self.of_anybody = Some(member.id);
        }
        if reach >= Reach::Connection && member.writer != FEEDER {
            let first = self.of_writers.entry(member.writer).or_insert(member.id);
            *first = member.id.min(*first);
        }
    }

    fn is_before(&self, member: &Member) -> bool {
        let of_writer = match member.writer {
            FEEDER => self.first,
            writer => self.of_writers.get(&writer).copied(),
        };
        let acknowledged = self.acknowledged.filter(|_| !member.is_asked());
        [of_writer, acknowledged, self.of_anybody].into_iter().flatten().any(|first| first < member.id)
    }

    pub(crate) fn are_before_any(&self, members: &[Member]) -> bool {
        members.iter().any(|member| self.is_before(member))
    }

    /// Returns the members that were picked, and those that have to stay behind them or behind members that
    /// wait already. A member that stays behind holds up others in its turn, as far as the members do that it
    /// waits for.
    pub(crate) fn with_followers(mut self, members: &[Member], mut picked: Vec<bool>) -> Vec<bool> {
        let reach = self.reach.unwrap_or(Reach::Clients);
        for (member, picked) in members.iter().zip(&mut picked) {
            *picked |= self.is_before(member);
            if *picked {
                self.add(member, reach);
            }
        }
        picked
    }
}

#[derive(Default)]
pub(crate) struct Line {
    state: Mutex<State>,
    moved: Notify,
    /// Lock for sending: of the batches that are aside one is sent at a time.
    beside: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct State {
    places: u64,
    stored: u64,
    stored_inserts: u64,
    aside: BTreeMap<u64, Aside>,
    /// Writers whose latest insert was stored, and (`suspected`) those whose latest insert was refused by
    /// itself.
    trusted: HashSet<u64>,
    suspected: HashSet<u64>,
}

/// The rest of a batch that is aside: its senders, and how far it holds up others.
pub(crate) struct Remainder {
    pub(crate) senders: Senders,
    pub(crate) reach: Reach,
    pub(crate) inserts: u64,
}

struct Aside {
    remainder: Remainder,
    in_doubt: bool,
    /// Number of times that all of the batch has been tried.
    rounds: u64,
}

impl Aside {
    /// Says whether inserts of this connection have to stay behind the batch.
    fn is_before(&self, writer: u64, is_acknowledged: bool) -> bool {
        let Remainder { senders, reach, .. } = &self.remainder;
        let is_same_connection = writer != FEEDER && senders.connections.contains(&writer);
        let may_be_anybody = writer == FEEDER || senders.may_be_anybody();
        let may_be_one_clients = is_acknowledged && senders.are_some_acknowledged;
        is_same_connection && *reach >= Reach::Connection
            || may_be_anybody && *reach >= Reach::Unknown
            || may_be_one_clients && *reach >= Reach::Clients
    }

    fn is_before_some(&self, senders: &Senders) -> bool {
        senders.connections.iter().any(|writer| self.is_before(*writer, senders.are_some_acknowledged))
    }
}

impl State {
    fn remember(&mut self, writer: u64, was_stored: bool) {
        let (now, before) = match was_stored {
            true => (&mut self.trusted, &mut self.suspected),
            false => (&mut self.suspected, &mut self.trusted),
        };
        // Who stands behind what comes from the journal isn't known.
        if writer == FEEDER || now.contains(&writer) {
            return;
        }
        if now.len() >= MOST_WRITERS {
            now.clear();
        }
        now.insert(writer);
        before.remove(&writer);
    }

    /// Returns the last batch in doubt before this place, and how often it has been tried.
    fn in_doubt_before(&self, place: u64) -> Option<(u64, u64)> {
        let before = self.aside.range(..place).rev().find(|(_, aside)| aside.in_doubt);
        before.map(|(place, aside)| (*place, aside.rounds))
    }

    fn is_behind_one_aside(&self, member: &Member) -> bool {
        self.aside.values().any(|aside| aside.is_before(member.writer, !member.is_asked()))
    }
}

impl Line {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of pieces that have been stored.
    pub(crate) fn stored(&self) -> u64 {
        self.lock().stored
    }

    pub(crate) fn stored_inserts(&self) -> u64 {
        self.lock().stored_inserts
    }

    pub(crate) fn was_stored(&self, members: &[Member]) {
        let mut state = self.lock();
        state.stored += 1;
        state.stored_inserts += members.len() as u64;
        members.iter().for_each(|member| state.remember(member.writer, true));
    }

    /// Notes that an insert of this writer was refused by itself.
    pub(crate) fn was_refused(&self, writer: u64) {
        self.lock().remember(writer, false);
    }

    /// Marks the members that go by themselves, behind the others: those whose writer's latest insert was
    /// refused, and those that have to stay behind a batch that is aside.
    pub(crate) fn suspects(&self, members: &[Member]) -> Vec<bool> {
        let state = self.lock();
        if state.aside.is_empty() && state.suspected.is_empty() {
            return Vec::new();
        }
        let is_suspect =
            |member: &Member| state.suspected.contains(&member.writer) || state.is_behind_one_aside(member);
        WaitingMembers::default().with_followers(members, members.iter().map(is_suspect).collect())
    }

    pub(crate) fn is_trusted(&self, writer: u64) -> bool {
        self.lock().trusted.contains(&writer)
    }

    /// Returns the number of batches aside of which nobody knows whether they are to blame.
    pub(crate) fn doubts(&self) -> u32 {
        self.lock().aside.values().filter(|aside| aside.in_doubt).count() as u32
    }

    /// Waits until one of the batches that are aside may be sent.
    pub(crate) async fn beside(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.beside.lock().await
    }

    /// Returns the lock for sending a batch that is aside, or `None` if another one is being sent.
    pub(crate) fn try_beside(&self) -> Option<tokio::sync::MutexGuard<'_, ()>> {
        self.beside.try_lock().ok()
    }

    async fn until(&self, mut is_so: impl FnMut(&State) -> bool) {
        loop {
            let moved = self.moved.notified();
            tokio::pin!(moved);
            // From here on nothing is missed.
            moved.as_mut().enable();
            if is_so(&self.lock()) {
                return;
            }
            moved.await;
        }
    }
}

/// A batch's place among those of its shape. The place is given up when this value is dropped.
pub(crate) struct Position {
    shape: Arc<Shape>,
    number: u64,
}

impl Position {
    /// Takes the place behind all other batches.
    pub(crate) fn last(shape: &Arc<Shape>) -> Position {
        let mut state = shape.line.lock();
        state.places += 1;
        Position { shape: shape.clone(), number: state.places }
    }

    fn line(&self) -> &Line {
        &self.shape.line
    }

    /// Sets the batch aside, with what is left of it.
    pub(crate) fn set_aside(&self, remainder: Remainder, in_doubt: bool) {
        let mut state = self.line().lock();
        let rounds = state.aside.get(&self.number).map_or(0, |aside| aside.rounds);
        state.aside.insert(self.number, Aside { remainder, in_doubt, rounds });
        drop(state);
        self.line().moved.notify_waiters();
    }

    /// Notes that all of the batch has been tried, and that something is to be tried again.
    pub(crate) fn was_tried(&self, remainder: Remainder) {
        if let Some(aside) = self.line().lock().aside.get_mut(&self.number) {
            aside.rounds += 1;
            aside.remainder = remainder;
        }
        self.line().moved.notify_waiters();
    }

    /// Says whether one more batch may step aside.
    pub(crate) fn has_room_aside(&self) -> bool {
        self.line().lock().aside.len() < MOST_ASIDE
    }

    /// Returns the number of inserts of the other batches that are aside.
    pub(crate) fn inserts_aside(&self) -> u64 {
        let state = self.line().lock();
        let others = state.aside.iter().filter(|(number, _)| **number != self.number);
        others.map(|(_, aside)| aside.remainder.inserts).sum()
    }

    /// Says whether a batch before this one is in doubt.
    pub(crate) fn has_to_follow(&self) -> bool {
        self.line().lock().in_doubt_before(self.number).is_some()
    }

    /// Waits until the batch in doubt before this one has been tried once more, or isn't in doubt any more.
    pub(crate) async fn follow(&self) {
        let at_first = self.line().lock().in_doubt_before(self.number);
        let is_turn = |state: &State| {
            let now = state.in_doubt_before(self.number);
            now.is_none() || now != at_first
        };
        self.line().until(is_turn).await;
    }

    /// Waits until no batch before this one is aside that these senders have to stay behind.
    pub(crate) async fn until_none_is_before(&self, senders: &Senders) {
        self.line()
            .until(|state| !state.aside.range(..self.number).any(|(_, aside)| aside.is_before_some(senders)))
            .await;
    }
}

impl Drop for Position {
    fn drop(&mut self) {
        let was_aside = self.line().lock().aside.remove(&self.number).is_some();
        if was_aside {
            self.line().moved.notify_waiters();
        }
    }
}
