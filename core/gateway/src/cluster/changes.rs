//! What one gateway tells the others: that a statement which went through it may have changed tables or rights, and which
//! tables' rows are gone. It goes along with a ping, which is sent at once then, and again until it is answered.

use std::fmt::Write;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{watch, Notify};

/// As the deduplication index knows them. More than this are all.
const MOST_TABLES: usize = 200;
/// Whoever sent the statement waits no longer until a gateway that answers has heard of it.
const PATIENCE: Duration = Duration::from_secs(2);

/// What has changed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Change {
    /// Tables or rights: what was asked about them.
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

    /// As the value of a parameter: `1` or `0` for what was learnt, then `all` or the tables.
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

/// What one other gateway has yet to hear.
#[derive(Default)]
pub(super) struct Untold {
    state: Mutex<State>,
    /// There is something to tell.
    pub(super) news: Notify,
    /// How many changes it has heard of.
    told: watch::Sender<u64>,
}

#[derive(Default)]
struct State {
    change: Change,
    count: u64,
}

impl Untold {
    /// Ends when it is told, or after some time; it is told then all the same.
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

    /// All there is to be told, with its count for [`heard`](Self::heard).
    pub(super) fn take(&self) -> Option<(Change, u64)> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let change = std::mem::take(&mut state.change);
        (!change.is_nothing()).then_some((change, state.count))
    }

    pub(super) fn heard(&self, count: u64) {
        self.told.send_modify(|told| *told = (*told).max(count));
    }

    /// It is to be told again.
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
