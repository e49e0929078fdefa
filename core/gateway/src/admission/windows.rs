//! Deduplication windows: the number of its latest blocks that a table remembers, so that a repeat is
//! dropped, and whether Windrow or the table's owner has set it.
//!
//! Windrow needs a window so that a batch which is sent again, after a lost answer or a crash, is stored
//! once. It can give a window to a table: by a default for all tables on an embedded ClickHouse, by
//! `ALTER TABLE ... MODIFY SETTING` elsewhere. That window must not deduplicate clients' inserts, so it has
//! to be told from one that the table's owner has set: its size is a number that nobody else chooses.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use windrow_clickhouse::{Call, Client, Purpose};
use windrow_sql::backquote;

use super::views::FedTable;
use super::{TableKey, QUESTION_TIMEOUT};

/// Size in blocks by which a window is known to be Windrow's.
pub const MARKED_WINDOW: u64 = 10_061;

/// Memory that a table has of its latest blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Window {
    /// The table has no window, and can't be given one: its engine has none, or it is replicated.
    Never,
    /// The table has no window so far.
    None,
    /// A window for Windrow's batches. Clients' inserts are not to be deduplicated by it.
    Windrows,
    /// A window that is meant for clients' inserts.
    Owners(Bounds),
}

/// Origin of a table's window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WindowOrigin {
    Had,
    Given,
}

/// Size of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Bounds {
    pub(crate) blocks: u64,
    /// Time for which a block is remembered; `None`: for ever.
    pub(crate) age: Option<Duration>,
}

impl Window {
    /// Says whether a batch that is sent again under its id is stored once.
    pub(crate) fn recognises_batches(self) -> bool {
        matches!(self, Window::Windrows | Window::Owners(_))
    }

    /// Makes the window whose size a setting gives.
    pub(crate) fn of_blocks(blocks: u64, age: Option<Duration>) -> Window {
        match blocks {
            0 => Window::None,
            MARKED_WINDOW => Window::Windrows,
            blocks => Window::Owners(Bounds { blocks, age }),
        }
    }
}

/// Means to set windows where that is wanted, and to tell the log, once for each table, where there is none.
#[derive(Clone)]
pub(crate) struct Windows {
    manage: bool,
    /// Reasons why tables have no window, as far as they were reported.
    reported: Arc<Mutex<HashMap<TableKey, String>>>,
}

/// Bound of the tables that are reported: nobody wants to read about more.
const MAX_REPORTED: usize = 10_000;

impl Windows {
    pub(crate) fn new(manage: bool) -> Windows {
        Windows { manage, reported: Arc::default() }
    }

    pub(crate) fn manage(&self) -> bool {
        self.manage
    }

    /// Returns the reason why the table has no window, if it was reported.
    pub(super) fn told(&self, key: &TableKey) -> Option<String> {
        self.lock().get(key).cloned()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<TableKey, String>> {
        self.reported.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says whether batches will be recognised, if [`settle`](Self::settle) succeeds.
    pub(crate) fn will_recognise_batches(&self, window: Window) -> bool {
        window.recognises_batches() || (self.manage && window == Window::None)
    }

    /// Returns the reason why batches won't be recognised, whatever is done.
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

    /// Gives the table a window if it has none and is to have one. Fails with the reason why it has none.
    pub(crate) async fn settle(&self, client: &Client, key: &TableKey, window: Window) -> Result<WindowOrigin, String> {
        let settled = Self::settled(client, key, window, self.obstacle(window)).await;
        self.told_of(key, None, settled)
    }

    /// Settles the window of a table that gets rows through a view. `on_replicas` means that the view is on a
    /// table with several replicas.
    pub(super) async fn settle_fed(
        &self,
        client: &Client,
        fed: &FedTable,
        on_replicas: bool,
    ) -> Result<WindowOrigin, String> {
        let window = fed.window.unwrap_or(Window::Never);
        let settled = Self::settled(client, &fed.table, window, fed.obstacle(self, on_replicas)).await;
        self.told_of(&fed.table, Some(&fed.view), settled)
    }

    async fn settled(
        client: &Client,
        key: &TableKey,
        window: Window,
        obstacle: Option<&'static str>,
    ) -> Result<WindowOrigin, String> {
        match obstacle {
            Some(why) => Err(why.to_owned()),
            None if window.recognises_batches() => Ok(WindowOrigin::Had),
            None => Self::give(client, key).await.map(|()| WindowOrigin::Given),
        }
    }

    fn told_of(
        &self,
        key: &TableKey,
        view: Option<&TableKey>,
        settled: Result<WindowOrigin, String>,
    ) -> Result<WindowOrigin, String> {
        match &settled {
            Ok(_) => drop(self.lock().remove(key)),
            Err(why) => self.report(key, view, why),
        }
        settled
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

    fn report(&self, key: &TableKey, view: Option<&TableKey>, why: &str) {
        let mut reported = self.lock();
        if reported.len() >= MAX_REPORTED || reported.insert(key.clone(), why.to_owned()).is_some() {
            return;
        }
        drop(reported);
        let TableKey { database, table } = key;
        let Some(view) = view else {
            tracing::warn!(database, table, "the table does not deduplicate: a batch that is sent again after a crash or a lost answer may be stored twice; {why}");
            return;
        };
        let view = format!("{}.{}", view.database, view.table);
        tracing::warn!(database, table, view, "the table, which a materialized view fills, does not deduplicate: of a batch that is sent again after a crash or a lost answer it may have the view's rows twice; {why}");
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
