//! The writers that are expected back: they wait for their insert and send the next one as soon as it is stored.
//!
//! A writer is believed to be such a loop once it came back within the horizon after a flush that it waited
//! for. From then on the end of its flush makes it expected, until it comes or its time is up. Everything is
//! counted per flush ("round"), so an arrival costs one lookup in a map and one step on two counters.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

use crate::policy::{BufferId, BufferPolicy, Micros};

/// The number of writers remembered per half; two halves are kept. A table with more writers at once does not
/// follow a common rhythm any more.
const WRITERS_PER_HALF: usize = 8_192;
/// The number of inserts in a row after which their writer is taken for the table's only one.
const SOLE_AFTER: u64 = 4;
const ROUNDS: usize = 1_024;
/// The number of usual deviations that the time allowed for coming back adds to the usual time. It also adds
/// a millisecond.
const PATIENCE_DEVIATIONS: f64 = 8.0;
const PATIENCE_FLOOR: Micros = Micros::from_millis(1);
/// The number of returns that the usual time back is a mean of, about.
const RETURN_MEMORY: f64 = 64.0;

#[derive(Clone, Debug, Default)]
pub(super) struct Writers {
    recent: Seen,
    older: Seen,
    rounds: VecDeque<Round>,
    /// The id of `rounds[0]`.
    first_round: u64,
    /// The number of loops of ended rounds that are not back and not given up.
    expected: u64,
    /// A time not later than the first round that will be given up.
    next_expiry: Micros,
    back_after_us: f64,
    back_deviation_us: f64,
    returns: f64,
    /// The writer of the latest insert, if the writer waits; `in_a_row` counts its inserts in a row.
    latest: Option<u64>,
    in_a_row: u64,
    horizon: Micros,
}

type Seen = HashMap<u64, Last, BuildHasherDefault<IdHasher>>;

#[derive(Clone, Copy, Debug)]
struct Last {
    round: u64,
    is_loop: bool,
}

/// A buffer, from its opening until its writers had time to come back.
#[derive(Clone, Copy, Debug)]
struct Round {
    inserts: u64,
    /// The number of loops among its writers that have not been seen since.
    loops: u64,
    /// The number of inserts of returning loops that may as well send the next one to another gateway.
    roaming: u64,
    state: RoundState,
}

#[derive(Clone, Copy, Debug)]
enum RoundState {
    Running,
    Expected { ended_at: Micros, expires_at: Micros },
    GivenUp { ended_at: Micros },
}

impl Writers {
    pub(super) fn buffer_opened(&mut self, id: BufferId) {
        if self.rounds.is_empty() {
            self.first_round = id.0;
        }
        debug_assert_eq!(self.first_round + self.rounds.len() as u64, id.0);
        if self.rounds.len() == ROUNDS {
            self.drop_first_round();
        }
        self.rounds.push_back(Round { inserts: 0, loops: 0, roaming: 0, state: RoundState::Running });
    }

    /// Notes an insert of a writer that waits. Returns whether an acknowledgement caused it.
    pub(super) fn arrive(&mut self, now: Micros, writer: u64, buffer: BufferId, horizon: Micros) -> bool {
        self.horizon = horizon;
        self.count_row(Some(writer));
        let last = self.recent.get(&writer).or_else(|| self.older.get(&writer)).copied();
        let is_loop = last.is_some_and(|last| self.came_back(now, last));
        self.remember(writer, Last { round: buffer.0, is_loop });
        if let Some(round) = self.round_mut(buffer.0) {
            round.inserts += 1;
            round.loops += u64::from(is_loop);
        }
        is_loop
    }

    /// Notes an insert of a writer that may send its next one to another gateway. The writer is not waited
    /// for here: if two gateways waited for each other's writers, neither would let any go.
    pub(super) fn arrive_roaming(&mut self, writer: u64, buffer: BufferId, came_back: bool) {
        self.count_row(Some(writer));
        if let Some(round) = self.round_mut(buffer.0) {
            round.inserts += 1;
            round.roaming += u64::from(came_back);
        }
    }

    /// Notes an insert whose writer may send more at any moment.
    pub(super) fn arrive_unblocked(&mut self) {
        self.count_row(None);
    }

    fn count_row(&mut self, writer: Option<u64>) {
        if self.latest != writer || writer.is_none() {
            self.latest = writer;
            self.in_a_row = 0;
        }
        self.in_a_row += 1;
    }

    fn came_back(&mut self, now: Micros, last: Last) -> bool {
        let horizon = self.horizon;
        let Some(round) = self.round_mut(last.round) else {
            return false;
        };
        round.loops -= u64::from(last.is_loop);
        let ended_at = match round.state {
            // Not blocked after all: several inserts of one connection under way at once.
            RoundState::Running => return false,
            RoundState::Expected { ended_at, .. } => {
                self.expected -= u64::from(last.is_loop);
                ended_at
            }
            RoundState::GivenUp { ended_at } => ended_at,
        };
        let back_after = now - ended_at;
        if back_after > horizon {
            return false;
        }
        self.learn(back_after);
        true
    }

    pub(super) fn flush_ended(&mut self, now: Micros, buffer: BufferId) {
        let expires_at = now + self.patience();
        let Some(round) = self.round_mut(buffer.0) else {
            return;
        };
        round.state = RoundState::Expected { ended_at: now, expires_at };
        let loops = round.loops;
        if loops > 0 {
            self.next_expiry = if self.expected == 0 { expires_at } else { self.next_expiry.min(expires_at) };
            self.expected += loops;
        }
        self.forget_rounds(now);
    }

    /// Returns the time until which holding is worth it for writers that are on their way back; `None` if
    /// there are none.
    pub(super) fn expected_until(&mut self, now: Micros) -> Option<Micros> {
        if self.expected > 0 && now >= self.next_expiry {
            self.give_up(now);
        }
        (self.expected > 0).then_some(self.next_expiry)
    }

    /// Says whether the buffer holds the blocked insert of the only writer that the table has had for a while.
    pub(super) fn sole_writer_is_in(&self, buffer: &BufferPolicy) -> bool {
        self.latest.is_some() && self.in_a_row >= SOLE_AFTER && buffer.inserts() == 1
    }

    /// Says whether the buffer holds loops and nothing else.
    pub(super) fn only_loops_in(&self, buffer: &BufferPolicy) -> bool {
        let loops = self.round(buffer.id.0).map_or(0, |round| round.loops + round.roaming);
        loops > 0 && loops == buffer.inserts()
    }

    fn give_up(&mut self, now: Micros) {
        let mut next = Micros::NEVER;
        for round in &mut self.rounds {
            let RoundState::Expected { ended_at, expires_at } = round.state else {
                continue;
            };
            if now >= expires_at {
                round.state = RoundState::GivenUp { ended_at };
                self.expected -= round.loops;
            } else if round.loops > 0 {
                next = next.min(expires_at);
            }
        }
        self.next_expiry = next;
    }

    fn forget_rounds(&mut self, now: Micros) {
        while let Some(first) = self.rounds.front() {
            let ended_at = match first.state {
                RoundState::Running => return,
                RoundState::Expected { ended_at, .. } | RoundState::GivenUp { ended_at } => ended_at,
            };
            if now <= ended_at + self.horizon {
                return;
            }
            self.drop_first_round();
        }
    }

    fn drop_first_round(&mut self) {
        if let Some(round) = self.rounds.pop_front() {
            self.first_round += 1;
            if matches!(round.state, RoundState::Expected { .. }) {
                self.expected -= round.loops;
            }
        }
    }

    fn remember(&mut self, writer: u64, last: Last) {
        if self.recent.len() >= WRITERS_PER_HALF && !self.recent.contains_key(&writer) {
            std::mem::swap(&mut self.recent, &mut self.older);
            self.recent.clear();
        }
        self.recent.insert(writer, last);
    }

    fn learn(&mut self, back_after: Micros) {
        let sample = back_after.0 as f64;
        if self.returns < RETURN_MEMORY {
            self.returns += 1.0;
        }
        if self.returns == 1.0 {
            (self.back_after_us, self.back_deviation_us) = (sample, sample / 2.0);
        }
        let weight = 1.0 / self.returns.max(2.0);
        self.back_deviation_us += ((sample - self.back_after_us).abs() - self.back_deviation_us) * weight;
        self.back_after_us += (sample - self.back_after_us) * weight;
    }

    fn patience(&self) -> Micros {
        let learned = Micros((self.back_after_us + PATIENCE_DEVIATIONS * self.back_deviation_us) as u64);
        (learned + PATIENCE_FLOOR).min(self.horizon)
    }

    fn round(&self, id: u64) -> Option<&Round> {
        let index = id.checked_sub(self.first_round)?;
        self.rounds.get(usize::try_from(index).ok()?)
    }

    fn round_mut(&mut self, id: u64) -> Option<&mut Round> {
        let index = id.checked_sub(self.first_round)?;
        self.rounds.get_mut(usize::try_from(index).ok()?)
    }
}

/// A hasher of writer ids. The gateway counts the ids up, no client chooses them: one multiplication spreads
/// them well enough.
#[derive(Clone, Copy, Debug, Default)]
struct IdHasher(u64);

impl Hasher for IdHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, id: u64) {
        let mixed = (self.0 ^ id).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.0 = mixed ^ (mixed >> 32);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
