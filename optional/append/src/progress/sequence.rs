//! The numbers of one append: which have come, which are to be applied now, when all is done.

use std::collections::BTreeMap;

use super::ranges::Ranges;
use crate::request::MAX_BATCHES;

/// The distance from the lowest missing batch up to which others are taken: it bounds what is remembered of them.
pub(crate) const MAX_AHEAD: u64 = 1 << 16;

/// The meaning of a number at this moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// The batch has not come. With `lowest` everything below it has, so that nothing can go on without it.
    Missing { lowest: bool },
    /// The batch has come before.
    Here,
    /// The batch is so far ahead that it has to wait for lower ones.
    TooFarAhead,
    /// The append ends before this batch.
    BehindEnd { batches: u64 },
    /// No append has so many batches.
    TooLarge,
}

/// An end that can't be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoEnd {
    /// Another end was given before.
    Differs {
        batches: u64,
    },
    /// A batch behind the end has come.
    HasMore {
        batch: u64,
    },
    TooLarge,
}

/// The next step.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next<T> {
    /// Apply these, in this order, and say so with [`Sequence::applied`].
    Apply(Vec<(u64, T)>),
    /// All batches are applied, and it is known that there are no more.
    Finish,
    /// Wait: more batches have to come.
    Wait,
}

/// The numbers of an append. `T` is kept for a batch until the batch is applied.
#[derive(Debug)]
pub(crate) struct Sequence<T> {
    ordered: bool,
    came: Ranges,
    /// Batches that came and were not taken to be applied.
    held: BTreeMap<u64, T>,
    /// The lowest number that was not taken; used with order only. Without, all are taken as they come.
    next_to_apply: u64,
    being_applied: usize,
    applied: u64,
    batches: Option<u64>,
}

impl<T> Sequence<T> {
    pub(crate) fn new(ordered: bool) -> Sequence<T> {
        Sequence {
            ordered,
            came: Ranges::default(),
            held: BTreeMap::new(),
            next_to_apply: 0,
            being_applied: 0,
            applied: 0,
            batches: None,
        }
    }

    pub(crate) fn standing(&self, number: u64) -> Standing {
        if number >= MAX_BATCHES {
            return Standing::TooLarge;
        }
        if let Some(batches) = self.batches.filter(|&batches| number >= batches) {
            return Standing::BehindEnd { batches };
        }
        if self.came.contains(number) {
            return Standing::Here;
        }
        let lowest = self.lowest_missing();
        match number - lowest > MAX_AHEAD {
            true => Standing::TooFarAhead,
            false => Standing::Missing { lowest: number == lowest },
        }
    }

    /// Keeps a batch that is [missing](Standing::Missing). Gives back a batch that can't be kept.
    pub(crate) fn arrived(&mut self, number: u64, what: T) -> Result<(), (Standing, T)> {
        match self.standing(number) {
            Standing::Missing { .. } => {
                self.came.insert(number);
                self.held.insert(number, what);
                Ok(())
            }
            standing => Err((standing, what)),
        }
    }

    /// Notes how many batches there are.
    pub(crate) fn ends_with(&mut self, batches: u64) -> Result<(), NoEnd> {
        match (self.batches, self.came.highest()) {
            (Some(before), _) if before != batches => Err(NoEnd::Differs { batches: before }),
            (_, Some(highest)) if highest >= batches => Err(NoEnd::HasMore { batch: highest }),
            _ if batches > MAX_BATCHES => Err(NoEnd::TooLarge),
            _ => {
                self.batches = Some(batches);
                Ok(())
            }
        }
    }

    /// Returns the next step. Takes batches until they weigh `max_weight` together, and one at least.
    pub(crate) fn next(&mut self, max_weight: u64, weight: impl Fn(&T) -> u64) -> Next<T> {
        let mut taken = Vec::new();
        let mut taken_weight = 0u64;
        while taken.is_empty() || taken_weight < max_weight {
            let Some(entry) = self.held.first_entry() else { break };
            if self.ordered && *entry.key() != self.next_to_apply {
                break;
            }
            let (number, what) = entry.remove_entry();
            taken_weight = taken_weight.saturating_add(weight(&what));
            self.next_to_apply = number + 1;
            taken.push((number, what));
        }
        self.being_applied += taken.len();
        match taken.is_empty() {
            false => Next::Apply(taken),
            true if self.being_applied == 0 && self.batches == Some(self.applied) => Next::Finish,
            true => Next::Wait,
        }
    }

    /// Notes that all batches that were taken have been applied.
    pub(crate) fn applied(&mut self) {
        self.applied += self.being_applied as u64;
        self.being_applied = 0;
    }

    pub(crate) fn lowest_missing(&self) -> u64 {
        self.came.lowest_missing()
    }

    /// Says whether the held batches get fewer by themselves: some batch is being applied, or can be.
    pub(crate) fn is_moving(&self) -> bool {
        let can_be_taken = |(&number, _): (&u64, &T)| !self.ordered || number == self.next_to_apply;
        self.being_applied > 0 || self.held.first_key_value().is_some_and(can_be_taken)
    }

    /// Says whether nothing more has to come.
    pub(crate) fn is_whole(&self) -> bool {
        self.batches == Some(self.lowest_missing())
    }

    pub(crate) fn batches(&self) -> Option<u64> {
        self.batches
    }

    pub(crate) fn received(&self, max_ranges: usize) -> Vec<[u64; 2]> {
        self.came.lowest(max_ranges)
    }

    /// Lets go of everything that is held.
    pub(crate) fn take_all(&mut self) -> BTreeMap<u64, T> {
        std::mem::take(&mut self.held)
    }
}
