//! What is known of tables, for as long as nothing can have changed it.
//!
//! Looking a table up takes DuckDB some milliseconds, which is longer than storing a batch. All statements come through
//! this process, so every one that may change a table begins a new *age*, and what was learnt in an earlier one is not
//! used any more. A transaction lives with the tables as they were when it began, whatever others have done since: it
//! compares their *shape*, which is one statement and is cheap, since an append into columns of other types can crash
//! the process.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use arrow_array::cast::AsArray;
use windrow_clickhouse::Exception;

use crate::connection::Connection;
use crate::table::{self, TableInfo, TableRef};

/// Names and types of a table's columns.
pub(crate) type Shape = Vec<(String, String)>;

#[derive(Clone)]
struct Known {
    age: u64,
    shape: Shape,
    info: TableInfo,
}

#[derive(Default)]
pub(crate) struct Tables {
    age: AtomicU64,
    known: Mutex<HashMap<TableRef, Known>>,
    others: Mutex<Vec<Listener>>,
}

type Listener = Box<dyn Fn() + Send + Sync>;

/// More are forgotten, all at once.
const MOST_TABLES: usize = 1_000;

/// With these a statement begins that changes no table. All others may.
const LEAVES_TABLES: [&str; 14] = [
    "SELECT",
    "WITH",
    "FROM",
    "VALUES",
    "TABLE",
    "SHOW",
    "DESCRIBE",
    "DESC",
    "SUMMARIZE",
    "PIVOT",
    "UNPIVOT",
    "INSERT",
    "UPDATE",
    "DELETE",
];

/// Whether it is a statement after which tables may be others.
pub fn may_change(sql: &str) -> bool {
    let word = windrow_sql::first_word(sql);
    !LEAVES_TABLES.iter().any(|known| known.eq_ignore_ascii_case(word))
}

impl Tables {
    /// To be told when a statement that may change tables has run, or was committed.
    pub(crate) fn have_changed(&self) {
        self.age.fetch_add(1, Ordering::SeqCst);
        self.others.lock().unwrap_or_else(PoisonError::into_inner).iter().for_each(|tell| tell());
    }

    /// Others that learn of tables. They are told on the thread that changed them.
    pub(crate) fn tell(&self, listener: Listener) {
        self.others.lock().unwrap_or_else(PoisonError::into_inner).push(listener);
    }

    /// For whoever asks from outside of a transaction.
    pub(crate) fn look_up(&self, connection: &mut Connection, name: &TableRef) -> Result<Option<TableInfo>, Exception> {
        let age = self.age.load(Ordering::SeqCst);
        if let Some(known) = self.known(name, age) {
            return Ok(Some(known.info));
        }
        let Some(info) = table::info(connection, name)? else { return Ok(None) };
        let shape = shape(connection, name)?;
        self.learn(name, Known { age, shape, info: info.clone() });
        Ok(Some(info))
    }

    /// For a transaction. With `has_changed` it may have changed tables itself, of which others know nothing yet.
    pub(crate) fn look_up_within(
        &self,
        connection: &mut Connection,
        name: &TableRef,
        has_changed: bool,
    ) -> Result<Option<TableInfo>, Exception> {
        let age = self.age.load(Ordering::SeqCst);
        if has_changed {
            return table::info(connection, name);
        }
        let Some(known) = self.known(name, age) else { return self.look_up(connection, name) };
        match shape(connection, name)? == known.shape {
            true => Ok(Some(known.info)),
            false => table::info(connection, name),
        }
    }

    fn known(&self, name: &TableRef, age: u64) -> Option<Known> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(name).filter(|known| known.age == age).cloned()
    }

    fn learn(&self, name: &TableRef, learnt: Known) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST_TABLES {
            known.clear();
        }
        known.insert(name.clone(), learnt);
    }
}

fn shape(connection: &mut Connection, name: &TableRef) -> Result<Shape, Exception> {
    let sql = format!(
        "SELECT typeof(COLUMNS(t.*)) FROM (VALUES (1)) AS one LEFT JOIN {} AS t ON false",
        connection.whole_name(name)
    );
    let rows = connection.rows(&sql)?;
    let Some(row) = rows.first() else { return Ok(Vec::new()) };
    let schema = row.schema();
    let columns = schema.fields().iter().zip(row.columns());
    let text = |(field, column): (&arrow_schema::FieldRef, &arrow_array::ArrayRef)| {
        let types = column.as_string_opt::<i32>().filter(|types| types.iter().flatten().count() == 1);
        (field.name().clone(), types.map_or("", |types| types.value(0)).to_owned())
    };
    Ok(columns.map(text).collect())
}
