//! Descriptions of tables, kept for as long as no statement can have changed them.
//!
//! Looking a table up takes DuckDB some milliseconds, which is longer than storing a batch. All statements
//! come through this process, so every statement that may change a table begins a new *age*, and descriptions
//! of an earlier age are not used any more. A transaction sees the tables as they were when it began,
//! whatever others have done since. So it compares their *shape*, which is one cheap statement: an append
//! into columns of other types can crash the process.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use arrow_array::cast::AsArray;
use windrow_clickhouse::Exception;

use crate::connection::Connection;
use crate::statement::first_word;
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

/// The most tables that are known. When there are more, all are forgotten.
const MOST_TABLES: usize = 1_000;

/// First words of the statements that change no table. All others may.
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

/// Says whether tables may be different after the statement.
pub fn may_change(sql: &str) -> bool {
    let word = first_word(sql);
    !LEAVES_TABLES.iter().any(|known| known.eq_ignore_ascii_case(word))
}

impl Tables {
    /// Notes that a statement that may change tables has run, or was committed.
    pub(crate) fn have_changed(&self) {
        self.age.fetch_add(1, Ordering::SeqCst);
        self.others.lock().unwrap_or_else(PoisonError::into_inner).iter().for_each(|tell| tell());
    }

    /// Registers a listener for changes. It is called on the thread that changed the tables.
    pub(crate) fn tell(&self, listener: Listener) {
        self.others.lock().unwrap_or_else(PoisonError::into_inner).push(listener);
    }

    /// Returns the description of a table, outside of a transaction.
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

    /// Returns the description of a table, inside a transaction. `has_changed` says that the transaction may
    /// have changed tables itself, which others do not see yet.
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
