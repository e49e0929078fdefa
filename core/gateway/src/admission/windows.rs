//! Windows of deduplication: how many of the blocks stored last a table remembers, so that a repeat is dropped, and
//! whose wish that was.
//!
//! Windrow needs a window so that a batch which is sent again, after a lost answer or a crash, is stored once. It can
//! give a table one: by a default for all tables on an engine of its own, by `ALTER TABLE ... MODIFY SETTING`
//! elsewhere. That window must not deduplicate what clients send, so it has to be told from one that the table's owner
//! has set: its size is a number that nobody else chooses.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use windrow_clickhouse::{Call, Client, Purpose};
use windrow_sql::backquote;

use super::views::Fed;
use super::{TableKey, QUESTION_TIMEOUT};

/// The size of a window that is Windrow's.
pub const MARKED_WINDOW: u64 = 10_061;

/// What a table remembers of the blocks it stored last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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
pub(crate) enum WindowOrigin {
    Had,
    Given,
}

/// How much is remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Clone)]
pub(crate) struct Windows {
    manage: bool,
    /// Why they have none.
    reported: Arc<Mutex<HashMap<TableKey, String>>>,
}

/// More tables than anybody wants to read about.
const MAX_REPORTED: usize = 10_000;

impl Windows {
    pub(crate) fn new(manage: bool) -> Windows {
        Windows { manage, reported: Arc::default() }
    }

    pub(crate) fn manage(&self) -> bool {
        self.manage
    }

    /// Why the table has none, if that was told.
    pub(super) fn told(&self, key: &TableKey) -> Option<String> {
        self.lock().get(key).cloned()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<TableKey, String>> {
        self.reported.lock().unwrap_or_else(PoisonError::into_inner)
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
    pub(crate) async fn settle(&self, client: &Client, key: &TableKey, window: Window) -> Result<WindowOrigin, String> {
        let settled = Self::settled(client, key, window, self.obstacle(window)).await;
        self.told_of(key, None, settled)
    }

    /// The same for a table that gets rows by a view; `on_replicas`: of a table on several replicas.
    pub(super) async fn settle_fed(
        &self,
        client: &Client,
        fed: &Fed,
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
