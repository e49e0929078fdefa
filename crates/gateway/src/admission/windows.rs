//! Windows of deduplication: how many of the blocks stored last a table remembers, so that a repeat is dropped, and
//! whose wish that was.
//!
//! Windrow needs a window so that a batch which is sent again, after a lost answer or a crash, is stored once. It can
//! give a table one: by a default for all tables on an engine of its own, by `ALTER TABLE ... MODIFY SETTING`
//! elsewhere. That window must not deduplicate what clients send, so it has to be told from one that the table's owner
//! has set: its size is a number that nobody else chooses.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use windrow_clickhouse::{Call, Client, Purpose};
use windrow_sql::backquote;

use super::{TableKey, QUESTION_TIMEOUT};

/// The size of a window that is Windrow's.
pub const MARKED_WINDOW: u64 = 10_061;

/// What a table remembers of the blocks it stored last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Window {
    /// Nothing, and it can't be given a window: its engine has none.
    Never,
    /// Nothing so far.
    None,
    /// A window for Windrow's batches. Clients' inserts are not to be deduplicated by it.
    Windrows,
    /// A window that is meant for clients' inserts.
    Owners(Bounds),
}

/// How a table has come to its window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Settled {
    Had,
    Given,
}

/// How much is remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub(crate) blocks: u64,
    /// For how long; without it, for ever.
    pub(crate) age: Option<Duration>,
}

impl Window {
    /// Whether a batch that is sent again under its id is stored once.
    pub(crate) fn recognises_batches(self) -> bool {
        matches!(self, Window::Windrows | Window::Owners(_))
    }

    /// Of a window whose size a setting gives.
    pub(crate) fn of_blocks(blocks: u64, age: Option<Duration>) -> Window {
        match blocks {
            0 => Window::None,
            MARKED_WINDOW => Window::Windrows,
            blocks => Window::Owners(Bounds { blocks, age }),
        }
    }
}

/// Sets windows where that is wanted, and tells the log, once for each table, where there is none.
pub(crate) struct Windows {
    manage: bool,
    reported: Mutex<HashSet<TableKey>>,
}

/// More tables than anybody wants to read about.
const MAX_REPORTED: usize = 10_000;

impl Windows {
    pub(crate) fn new(manage: bool) -> Windows {
        Windows { manage, reported: Mutex::default() }
    }

    pub(crate) fn manage(&self) -> bool {
        self.manage
    }

    /// Whether batches will be recognised, if [`settle`](Self::settle) succeeds.
    pub(crate) fn will_recognise_batches(&self, window: Window) -> bool {
        window.recognises_batches() || (self.manage && window == Window::None)
    }

    /// Why batches won't be recognised, whatever is done.
    pub(crate) fn obstacle(&self, window: Window) -> Option<&'static str> {
        match window {
            Window::None if self.manage => None,
            Window::None => Some(
                "it has no window of deduplication: set non_replicated_deduplication_window for it, or \
                 manage_deduplication_window for all",
            ),
            Window::Never => Some("its engine has no window of deduplication"),
            Window::Windrows | Window::Owners(_) => None,
        }
    }

    /// Gives the table a window if it has none and shall have one. Or says why it has none.
    pub(crate) async fn settle(&self, client: &Client, key: &TableKey, window: Window) -> Result<Settled, String> {
        if window.recognises_batches() {
            return Ok(Settled::Had);
        }
        let given = match self.obstacle(window) {
            Some(why) => Err(why.to_owned()),
            None => Self::give(client, key).await,
        };
        given.inspect_err(|why| self.report(key, why)).map(|()| Settled::Given)
    }

    async fn give(client: &Client, key: &TableKey) -> Result<(), String> {
        let table = format!("{}.{}", backquote(&key.database), backquote(&key.table));
        let statement =
            format!("ALTER TABLE {table} MODIFY SETTING non_replicated_deduplication_window = {MARKED_WINDOW}");
        // Only tables of one server are given one: of the server that has their rows.
        let there = Purpose::First;
        let call = Call::new(&client.endpoint().credentials, &statement).purpose(there).timeout(QUESTION_TIMEOUT);
        match client.call(call).await {
            Ok(_) => {
                let TableKey { database, table } = key;
                tracing::info!(
                    database,
                    table,
                    blocks = MARKED_WINDOW,
                    "the table was given a window of deduplication for Windrow's batches"
                );
                Ok(())
            }
            Err(error) => {
                let user = &client.endpoint().credentials.user;
                Err(format!("it can't be given a window (GRANT ALTER SETTINGS ON {table} TO {user}): {error}"))
            }
        }
    }

    fn report(&self, key: &TableKey, why: &str) {
        let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        if reported.len() < MAX_REPORTED && reported.insert(key.clone()) {
            let TableKey { database, table } = key;
            tracing::warn!(database, table, "the table does not deduplicate: a batch that is sent again after a crash or a lost answer may be stored twice; {why}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_marked_size_is_windrows() {
        assert_eq!(Window::of_blocks(MARKED_WINDOW, None), Window::Windrows);
        assert_eq!(Window::of_blocks(0, None), Window::None);
        assert_eq!(Window::of_blocks(100, None), Window::Owners(Bounds { blocks: 100, age: None }));
    }

    #[test]
    fn batches_are_recognised_by_any_window() {
        let (by_hand, managed) = (Windows::new(false), Windows::new(true));
        assert!(!by_hand.will_recognise_batches(Window::None) && managed.will_recognise_batches(Window::None));
        assert!(!managed.will_recognise_batches(Window::Never));
        assert!(by_hand.will_recognise_batches(Window::Windrows));
    }
}
