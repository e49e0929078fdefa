//! The descriptions of tables as they were last seen, and the listeners for changes.
//!
//! Other programs change tables too, so a batch only begins with these descriptions: if it fails, it is tried
//! with the table as it is now.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use windrow_clickhouse::Exception;
use windrow_duckdb::TableRef;

use crate::connection::Connection;
use crate::table::Table;

type Listener = Box<dyn Fn() + Send + Sync>;

#[derive(Default)]
pub(crate) struct Tables {
    known: Mutex<HashMap<TableRef, Arc<Table>>>,
    listeners: Mutex<Vec<Listener>>,
}

/// The most tables that are known. When there are more, all are forgotten.
const MOST_TABLES: usize = 1_000;

impl Tables {
    pub(crate) fn known(&self, name: &TableRef) -> Option<Arc<Table>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    pub(crate) fn look_up(
        &self,
        connection: &mut Connection,
        name: &TableRef,
    ) -> Result<Option<Arc<Table>>, Exception> {
        let found = connection.system().describe(connection, name)?.map(Arc::new);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST_TABLES {
            known.clear();
        }
        match &found {
            Some(table) => known.insert(name.clone(), table.clone()),
            None => known.remove(name),
        };
        Ok(found)
    }

    pub(crate) fn have_changed(&self) {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner).iter().for_each(|tell| tell());
    }

    pub(crate) fn tell(&self, listener: Listener) {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner).push(listener);
    }
}
