//! The appends that are committed, as the database itself remembers them: `windrow.appends`.
//!
//! A row is written in the transaction that stores an append, so it is there if and only if the append is. The oldest
//! are forgotten, here as each new one comes, in the database once in a while.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt64Type};
use arrow_array::RecordBatch;
use windrow_clickhouse::Exception;
use windrow_duckdb::{DuckDb, RecordStream};
use windrow_sql::Dialect;

use crate::answer::{Atomicity, Committed, State};
use crate::id::AppendId;
use crate::target::Outcome;

const COLUMNS: &str =
    "(id UUID PRIMARY KEY, \"user\" VARCHAR NOT NULL, \"table\" VARCHAR NOT NULL, rows UBIGINT NOT NULL, \
                       bytes UBIGINT NOT NULL, batches UBIGINT NOT NULL, seconds DOUBLE NOT NULL, \
                       committed_at TIMESTAMPTZ NOT NULL)";
/// So many are remembered, none for longer than a week.
const REMEMBERED: usize = 100_000;
/// After so many commits the table is looked through.
const PRUNED_EVERY: u64 = 1000;

/// What is known of them here.
#[derive(Default)]
pub(super) struct CommittedAppends {
    known: Mutex<Known>,
    since_pruned: AtomicU64,
}

#[derive(Default)]
struct Known {
    by_id: HashMap<AppendId, Entry>,
    /// As they were committed.
    order: VecDeque<AppendId>,
}

impl Known {
    fn insert(&mut self, entry: Entry, limit: usize) {
        let id = entry.committed.id;
        if self.by_id.insert(id, entry).is_none() {
            self.order.push_back(id);
        }
        while self.order.len() > limit {
            let oldest = self.order.pop_front();
            oldest.map(|id| self.by_id.remove(&id));
        }
    }
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
        prune(duckdb, REMEMBERED).await?;
        let this = CommittedAppends::default();
        for entry in ask(duckdb, &format!("{} ORDER BY committed_at", list(duckdb))).await? {
            this.insert(entry);
        }
        Ok(this)
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn insert(&self, entry: Entry) {
        self.lock().insert(entry, REMEMBERED);
    }

    /// One was committed. Now and then, beside everything else, the table is looked through.
    pub(super) fn committed(&self, duckdb: &DuckDb, entry: Entry) {
        self.insert(entry);
        if self.since_pruned.fetch_add(1, Ordering::Relaxed) + 1 < PRUNED_EVERY {
            return;
        }
        self.since_pruned.store(0, Ordering::Relaxed);
        let duckdb = duckdb.clone();
        tokio::spawn(async move {
            if let Err(exception) = prune(&duckdb, REMEMBERED).await {
                tracing::warn!(%exception, "committed appends could not be pruned");
            }
        });
    }

    pub(super) fn get(&self, id: AppendId) -> Outcome {
        match self.lock().by_id.get(&id).cloned() {
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

async fn prune(duckdb: &DuckDb, remembered: usize) -> Result<(), Exception> {
    let table = table(duckdb);
    let newest = format!("SELECT id FROM {table} ORDER BY committed_at DESC LIMIT {remembered}");
    let old = "committed_at < now() - INTERVAL 7 DAY";
    run(duckdb, &format!("DELETE FROM {table} WHERE {old} OR id NOT IN ({newest})")).await
}

fn list(duckdb: &DuckDb) -> String {
    format!("SELECT id::VARCHAR, \"user\", rows, bytes, batches, seconds FROM {}", table(duckdb))
}

/// What writes an append's row.
pub(super) fn insert_statement(duckdb: &DuckDb, entry: &Entry, target: &str) -> String {
    let Committed { id, rows, bytes, batches, seconds, .. } = &entry.committed;
    let text = |of: &str| Dialect::DuckDb.text(of);
    let (own, user, target) = (table(duckdb), text(&entry.user), text(target));
    format!("INSERT INTO {own} VALUES ('{id}', {user}, {target}, {rows}, {bytes}, {batches}, {seconds:?}, now())")
}

async fn run(duckdb: &DuckDb, sql: &str) -> Result<(), Exception> {
    collect(duckdb.own_query(sql).await?).await.map(|_| ())
}

async fn ask(duckdb: &DuckDb, sql: &str) -> Result<Vec<Entry>, Exception> {
    let batches = collect(duckdb.own_query(sql).await?).await?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_duckdb::DuckDbOptions;

    fn entry(id: u128) -> Entry {
        let (state, atomic) = (State::Committed, Atomicity::All);
        let id = AppendId::from_u128(id);
        let committed = Committed { id, state, rows: 1, bytes: 2, batches: 3, seconds: 0.5, atomic };
        Entry { committed, user: "joe's".to_owned() }
    }

    fn duckdb() -> DuckDb {
        let library = std::env::var_os("WINDROW_DUCKDB_LIBRARY").map(Into::into);
        DuckDb::open(DuckDbOptions { library, ..DuckDbOptions::default() }).unwrap()
    }

    #[test]
    fn the_oldest_are_forgotten() {
        let mut known = Known::default();
        for id in 0..10 {
            known.insert(entry(id), 4);
            known.insert(entry(id), 4);
        }
        assert_eq!((known.by_id.len(), known.order.len()), (4, 4));
        assert!(known.by_id.contains_key(&AppendId::from_u128(6)));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn the_database_forgets_by_age_and_number() {
        let duckdb = duckdb();
        let appends = CommittedAppends::load(&duckdb).await.unwrap();
        let own = table(&duckdb);
        for id in 0..10 {
            run(&duckdb, &insert_statement(&duckdb, &entry(id), "main.t")).await.unwrap();
        }
        run(&duckdb, &format!("UPDATE {own} SET committed_at = committed_at - to_days(8) WHERE id::VARCHAR LIKE '%9'"))
            .await
            .unwrap();
        let ids = async || {
            let mut ids: Vec<u128> =
                ask(&duckdb, &list(&duckdb)).await.unwrap().iter().map(|entry| entry.committed.id.as_u128()).collect();
            ids.sort_unstable();
            ids
        };
        prune(&duckdb, 100).await.unwrap();
        assert_eq!(ids().await, (0..9).collect::<Vec<_>>(), "a week is over");
        prune(&duckdb, 3).await.unwrap();
        assert_eq!(ids().await.len(), 3);
        run(&duckdb, &format!("DELETE FROM {own}")).await.unwrap();
        for id in 0..PRUNED_EVERY {
            let insert = format!("INSERT INTO {own} SELECT uuid(), 'u', 't', 1, 1, 1, 1, now() - INTERVAL 8 DAY");
            if id == 0 {
                run(&duckdb, &insert).await.unwrap();
            }
            appends.committed(&duckdb, entry(u128::from(id)));
        }
        while !ids().await.is_empty() {
            tokio::task::yield_now().await;
        }
    }
}
