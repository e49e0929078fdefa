//! News that one gateway sends to the others: a statement may have changed tables or privileges, and rows of some
//! tables are gone. They are sent with a ping, which then goes out at once, and again until it is answered.

use std::fmt::Write;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{watch, Notify};

/// Number of tables that a change can name, by their ids in the deduplication index. More tables mean all tables.
const MOST_TABLES: usize = 200;
/// Longest time that the sender of a statement waits until the gateways that answer have heard of its change.
const PATIENCE: Duration = Duration::from_secs(2);

/// A change that one gateway tells the others.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Change {
    /// Says whether tables or privileges may have changed: cached answers about them may then be wrong.
    pub(crate) learnt: bool,
    pub(crate) gone: Gone,
}

/// Tables whose rows are gone, or some of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Gone {
    Of(Vec<u128>),
    OfAnyTable,
}

impl Default for Gone {
    fn default() -> Self {
        Gone::Of(Vec::new())
    }
}

impl Change {
    fn is_nothing(&self) -> bool {
        !self.learnt && self.gone == Gone::default()
    }

    fn and(&mut self, more: Change) {
        self.learnt |= more.learnt;
        match (&mut self.gone, more.gone) {
            (Gone::Of(tables), Gone::Of(more)) => {
                tables.extend(more);
                tables.sort_unstable();
                tables.dedup();
                if tables.len() > MOST_TABLES {
                    self.gone = Gone::OfAnyTable;
                }
            }
            (gone, _) => *gone = Gone::OfAnyTable,
        }
    }

    /// Writes the change as the value of a parameter: `1` or `0` for `learnt`, then `all` or the tables.
    pub(super) fn text(&self) -> String {
        let mut text = String::from(if self.learnt { "1" } else { "0" });
        match &self.gone {
            Gone::OfAnyTable => text.push_str(".all"),
            Gone::Of(tables) => tables.iter().for_each(|table| _ = write!(text, ".{table:x}")),
        }
        text
    }

    pub(crate) fn read(text: &str) -> Option<Change> {
        let mut parts = text.split('.');
        let learnt = match parts.next()? {
            "0" => false,
            "1" => true,
            _ => return None,
        };
        let rest: Vec<&str> = parts.collect();
        let gone = match rest.as_slice() {
            ["all"] => Gone::OfAnyTable,
            tables if tables.len() > MOST_TABLES => return None,
            tables => Gone::Of(tables.iter().map(|table| u128::from_str_radix(table, 16).ok()).collect::<Option<_>>()?),
        };
        Some(Change { learnt, gone })
    }
}

/// Changes that one other gateway has yet to hear of.
#[derive(Default)]
pub(super) struct Untold {
    state: Mutex<State>,
    /// A signal that there is something to tell.
    pub(super) news: Notify,
    /// The number of changes that the other gateway has heard of.
    told: watch::Sender<u64>,
}

#[derive(Default)]
struct State {
    change: Change,
    count: u64,
}

impl Untold {
    /// Tells a change. Returns when the other gateway has heard of it, or after some time; it is told then
    /// all the same.
    pub(super) async fn tell(&self, change: Change) {
        let count = {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.change.and(change);
            state.count += 1;
            state.count
        };
        self.news.notify_one();
        let mut told = self.told.subscribe();
        // The sender lives as long as this does.
        let _ = tokio::time::timeout(PATIENCE, told.wait_for(|told| *told >= count)).await;
    }

    /// Takes all changes that are to be told, with their count for [`heard`](Self::heard).
    pub(super) fn take(&self) -> Option<(Change, u64)> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let change = std::mem::take(&mut state.change);
        (!change.is_nothing()).then_some((change, state.count))
    }

    pub(super) fn heard(&self, count: u64) {
        self.told.send_modify(|told| *told = (*told).max(count));
    }

    /// Puts back a change that was not heard, to be told again.
    pub(super) fn not_heard(&self, change: Change) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).change.and(change);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_read_as_they_are_written_and_nothing_else_is() {
        let of = |learnt, gone| Change { learnt, gone };
        for change in
            [of(true, Gone::default()), of(false, Gone::Of(vec![0, 7, u128::MAX])), of(true, Gone::OfAnyTable)]
        {
            assert_eq!(Change::read(&change.text()), Some(change));
        }
        for text in ["", "2", "1.", "1.x", "0.all.1", "1.100000000000000000000000000000000"] {
            assert_eq!(Change::read(text), None, "{text}");
        }
    }

    #[test]
    fn many_tables_are_all() {
        let mut change = Change::default();
        for table in 0..=MOST_TABLES as u128 {
            change.and(Change { learnt: false, gone: Gone::Of(vec![table]) });
        }
        assert_eq!(change.gone, Gone::OfAnyTable);
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_not_heard_is_told_again() {
        let untold = Untold::default();
        assert!(untold.take().is_none());
        untold.tell(Change { learnt: true, gone: Gone::Of(vec![1]) }).await;
        let (change, _) = untold.take().unwrap();
        untold.not_heard(change.clone());
        assert_eq!(untold.take().unwrap(), (change, 1));
    }
}
