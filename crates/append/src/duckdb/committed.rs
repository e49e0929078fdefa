//! The appends that are committed, as the database itself remembers them: `windrow.appends`.
//!
//! A row is written in the transaction that stores an append, so it is there if and only if the append is.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt64Type};
use arrow_array::RecordBatch;
use windrow_duckdb::{DuckDb, RecordStream, Session};
use windrow_exception::Exception;

use crate::answer::{Atomicity, Committed, State};
use crate::id::AppendId;
use crate::target::Outcome;

const COLUMNS: &str =
    "(id UUID PRIMARY KEY, \"user\" VARCHAR NOT NULL, \"table\" VARCHAR NOT NULL, rows UBIGINT NOT NULL, \
                       bytes UBIGINT NOT NULL, batches UBIGINT NOT NULL, seconds DOUBLE NOT NULL, \
                       committed_at TIMESTAMPTZ NOT NULL)";

/// What is known of them here.
#[derive(Default)]
pub(super) struct CommittedAppends {
    known: Mutex<HashMap<AppendId, Entry>>,
}

#[derive(Clone)]
pub(super) struct Entry {
    pub(super) committed: Committed,
    pub(super) user: String,
}

impl CommittedAppends {
    /// Makes the table, forgets what is old, and learns the others.
    pub(super) async fn load(duckdb: &DuckDb) -> Result<CommittedAppends, Exception> {
        run(duckdb, &format!("CREATE TABLE IF NOT EXISTS {} {COLUMNS}", table(duckdb))).await?;
        run(duckdb, &prune(&table(duckdb))).await?;
        let this = CommittedAppends::default();
        for entry in ask(duckdb, &list(duckdb)).await? {
            this.insert(entry);
        }
        Ok(this)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<AppendId, Entry>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn insert(&self, entry: Entry) {
        self.lock().insert(entry.committed.id, entry);
    }

    pub(super) fn get(&self, id: AppendId) -> Outcome {
        match self.lock().get(&id).cloned() {
            Some(Entry { committed, user }) => Outcome::Committed { committed, user },
            None => Outcome::Nothing,
        }
    }

    /// Asks the database: for a commit whose answer was unclear.
    pub(super) async fn look_up(&self, duckdb: &DuckDb, id: AppendId) -> Result<Outcome, Exception> {
        for entry in ask(duckdb, &format!("{} WHERE id = '{id}'", list(duckdb))).await? {
            self.insert(entry);
        }
        Ok(self.get(id))
    }
}

fn table(duckdb: &DuckDb) -> String {
    duckdb.own_table("appends")
}

/// They are remembered so long, and so many of them.
fn prune(table: &str) -> String {
    format!(
        "DELETE FROM {table} WHERE committed_at < now() - INTERVAL 7 DAY \
         OR id NOT IN (SELECT id FROM {table} ORDER BY committed_at DESC LIMIT 100000)"
    )
}

fn list(duckdb: &DuckDb) -> String {
    format!("SELECT id::VARCHAR, \"user\", rows, bytes, batches, seconds FROM {}", table(duckdb))
}

/// What writes an append's row.
pub(super) fn insert_statement(duckdb: &DuckDb, entry: &Entry, target: &str) -> String {
    let Committed { id, rows, bytes, batches, seconds, .. } = &entry.committed;
    let text = |of: &str| format!("'{}'", of.replace('\'', "''"));
    let (own, user, target) = (table(duckdb), text(&entry.user), text(target));
    format!("INSERT INTO {own} VALUES ('{id}', {user}, {target}, {rows}, {bytes}, {batches}, {seconds:?}, now())")
}

fn session(readonly: bool) -> Session {
    Session { schema: "main".to_owned(), readonly }
}

async fn run(duckdb: &DuckDb, sql: &str) -> Result<(), Exception> {
    collect(duckdb.query(sql, &session(false)).await?).await.map(|_| ())
}

async fn ask(duckdb: &DuckDb, sql: &str) -> Result<Vec<Entry>, Exception> {
    let batches = collect(duckdb.query(sql, &session(true)).await?).await?;
    Ok(batches.iter().flat_map(|batch| (0..batch.num_rows()).filter_map(|row| entry(batch, row))).collect())
}

async fn collect(mut stream: RecordStream) -> Result<Vec<RecordBatch>, Exception> {
    let mut batches = Vec::new();
    while let Some(batch) = stream.next().await {
        batches.push(batch?);
    }
    Ok(batches)
}

fn entry(batch: &RecordBatch, row: usize) -> Option<Entry> {
    let text = |at: usize| Some(batch.columns().get(at)?.as_string_opt::<i32>()?.value(row));
    let number = |at: usize| Some(batch.columns().get(at)?.as_primitive_opt::<UInt64Type>()?.value(row));
    let seconds = batch.columns().get(5)?.as_primitive_opt::<Float64Type>()?.value(row);
    let committed = Committed {
        id: text(0)?.parse().ok()?,
        state: State::Committed,
        rows: number(2)?,
        bytes: number(3)?,
        batches: number(4)?,
        seconds,
        atomic: Atomicity::All,
    };
    Some(Entry { committed, user: text(1)?.to_owned() })
}
