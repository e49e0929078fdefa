//! The detection of a loop whose inserts each come on a connection of their own: a shell script, a function
//! that runs once per event.
//!
//! Such a loop can't be known by name (`writers.rs`), but it shows: every insert comes right after the flush
//! of the one before, alone. After a few of those, holding the next insert for others would be in vain.

use crate::policy::{BufferId, Micros};

/// The longest time between an acknowledgement and the next link: a new process, a new connection.
const LONGEST_LINK: Micros = Micros::from_millis(20);
/// The number of links that make a chain. Random arrivals make so many in a row about once in 2,000 times, at
/// the rate at which they do it most.
const LINKS: u8 = 3;
const MOST_LINKS: u8 = 8;

#[derive(Clone, Debug, Default)]
pub(super) struct Chain {
    links: u8,
    buffer: Option<BufferId>,
    /// The number of inserts in that buffer.
    inserts: u64,
    /// The end of the flush of a buffer with a single insert, if no insert has come since.
    lone_flush_ended: Option<Micros>,
}

impl Chain {
    pub(super) fn arrive(&mut self, now: Micros, buffer: BufferId, waits: bool) {
        if self.buffer == Some(buffer) {
            self.inserts += 1;
            self.links = 0;
            return;
        }
        let linked = waits && self.lone_flush_ended.take().is_some_and(|ended| now - ended <= LONGEST_LINK);
        self.links = if linked { (self.links + 1).min(MOST_LINKS) } else { self.links.saturating_sub(2) };
        self.buffer = Some(buffer);
        self.inserts = 1;
    }

    pub(super) fn flush_ended(&mut self, now: Micros, buffer: BufferId) {
        let lone = self.buffer == Some(buffer) && self.inserts == 1;
        self.lone_flush_ended = lone.then_some(now);
    }

    /// Says whether the only insert of this buffer is a link of a chain.
    pub(super) fn holds(&self, buffer: BufferId) -> bool {
        self.links >= LINKS && self.buffer == Some(buffer) && self.inserts == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(chain: &mut Chain, number: u64, at_ms: u64) {
        chain.arrive(Micros::from_millis(at_ms), BufferId(number), true);
        chain.flush_ended(Micros::from_millis(at_ms + 5), BufferId(number));
    }

    #[test]
    fn inserts_that_follow_each_other_alone_are_a_chain() {
        let mut chain = Chain::default();
        for number in 0..3 {
            link(&mut chain, number, number * 10);
            assert!(!chain.holds(BufferId(number)));
        }
        link(&mut chain, 3, 30);
        assert!(chain.holds(BufferId(3)));
    }

    #[test]
    fn company_ends_a_chain_at_once_and_pauses_wear_it_out() {
        let mut chain = Chain::default();
        (0..6).for_each(|number| link(&mut chain, number, number * 10));
        assert!(chain.holds(BufferId(5)));
        let mut joined = chain.clone();
        joined.arrive(Micros::from_millis(52), BufferId(5), true);
        assert!(!joined.holds(BufferId(5)));
        link(&mut chain, 6, 500);
        link(&mut chain, 7, 900);
        assert!(!chain.holds(BufferId(7)));
    }
}
