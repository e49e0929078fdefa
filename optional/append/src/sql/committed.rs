//! The appends that are committed, as the database itself remembers them: `windrow.appends` in a DuckDB,
//! `windrow_appends` elsewhere.
//!
//! A row is written in the transaction that stores an append, so it is there if and only if the append is.
//! The oldest are forgotten, here as each new one comes, in the database once in a while. A DuckDB is this
//! process's own, so the appends that are known here are all there are; before other databases there are
//! other gateways as well.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use windrow_adbc::SqlDatabase;
use windrow_clickhouse::{ErrorCode, Exception};
use windrow_sql::Dialect;

use crate::answer::{Atomicity, Committed, State};
use crate::id::AppendId;
use crate::target::Outcome;

const DUCKDBS_COLUMNS: &str =
    "(id UUID PRIMARY KEY, \"user\" VARCHAR NOT NULL, \"table\" VARCHAR NOT NULL, rows UBIGINT NOT NULL, \
                       bytes UBIGINT NOT NULL, batches UBIGINT NOT NULL, seconds DOUBLE NOT NULL, \
                       committed_at TIMESTAMPTZ NOT NULL)";
/// The columns in words that most databases know.
const COLUMNS: &str = "(id VARCHAR(36) PRIMARY KEY, {user} VARCHAR(1000) NOT NULL, {table} VARCHAR(1000) NOT NULL, \
                       {rows} BIGINT NOT NULL, bytes BIGINT NOT NULL, batches BIGINT NOT NULL, \
                       seconds DOUBLE PRECISION NOT NULL, committed_at TIMESTAMP NOT NULL)";
/// The number of appends that are remembered, none for longer than a week.
const REMEMBERED: usize = 100_000;
/// The number of commits after which the table is looked through.
const PRUNED_EVERY: u64 = 1000;

/// The committed appends that are known here.
#[derive(Default)]
pub(super) struct CommittedAppends {
    known: Mutex<Known>,
    since_pruned: AtomicU64,
}

#[derive(Default)]
struct Known {
    by_id: HashMap<AppendId, Entry>,
    /// Ids in the order in which they were committed.
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
    /// Loads the appends of a DuckDB: makes the table, forgets old rows, and learns the others. Elsewhere
    /// nothing is made before there is an append, and the database is asked about each.
    pub(super) async fn load(database: &SqlDatabase) -> Result<CommittedAppends, Exception> {
        let this = CommittedAppends::default();
        if let SqlDatabase::DuckDb(_) = database {
            make(database).await?;
            prune(database, REMEMBERED).await?;
            for entry in ask(database, &format!("{} ORDER BY committed_at", list(database))).await? {
                this.insert(entry);
            }
        }
        Ok(this)
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn insert(&self, entry: Entry) {
        self.lock().insert(entry, REMEMBERED);
    }

    /// Notes that an append was committed. Now and then, beside everything else, the table is looked through.
    pub(super) fn committed(&self, database: &SqlDatabase, entry: Entry) {
        self.insert(entry);
        if self.since_pruned.fetch_add(1, Ordering::Relaxed) + 1 < PRUNED_EVERY {
            return;
        }
        self.since_pruned.store(0, Ordering::Relaxed);
        let database = database.clone();
        tokio::spawn(async move {
            if let Err(exception) = prune(&database, REMEMBERED).await {
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

    /// Asks the database for an append. If it knows of none, also says whether that is certain.
    pub(super) async fn look_up(&self, database: &SqlDatabase, id: AppendId) -> Result<(Outcome, bool), Exception> {
        match self.look(database, id).await {
            Ok(is_certain) => Ok((self.get(id), is_certain)),
            // There was none yet, or somebody has dropped what they were known by; or there can't be any.
            Err(exception) if exception.code == ErrorCode::UNKNOWN_TABLE || !database.has_transactions() => {
                Ok((Outcome::Nothing, true))
            }
            Err(exception) => Err(exception),
        }
    }

    /// Looks for an append. A row that is there is told at once. A row that isn't may be on its way: that is
    /// waited for, and looked at again.
    async fn look(&self, database: &SqlDatabase, id: AppendId) -> Result<bool, Exception> {
        let query = format!("{} WHERE id = '{id}'", list(database));
        let mut found = ask(database, &query).await?;
        let mut is_certain = true;
        if found.is_empty() {
            is_certain = database.wait_for(&insert_statement(database, &Entry::nobodys(id), "")).await?;
            found = ask(database, &query).await?;
        }
        found.into_iter().for_each(|entry| self.insert(entry));
        Ok(is_certain)
    }
}

impl Entry {
    fn nobodys(id: AppendId) -> Entry {
        let (state, atomic) = (State::Committed, Atomicity::All);
        let committed = Committed { id, state, rows: 0, bytes: 0, batches: 0, seconds: 0.0, atomic };
        Entry { committed, user: String::new() }
    }
}

pub(super) async fn make(database: &SqlDatabase) -> Result<(), Exception> {
    let columns = match database {
        SqlDatabase::DuckDb(_) => DUCKDBS_COLUMNS.to_owned(),
        SqlDatabase::Adbc(_) => ["user", "table", "rows"]
            .iter()
            .fold(COLUMNS.to_owned(), |text, name| text.replace(&format!("{{{name}}}"), &database.name(name))),
    };
    let statement = format!("CREATE TABLE IF NOT EXISTS {} {columns}", database.appends());
    match database.own_execute(&statement).await {
        // PostgreSQL says so where somebody else has just made it.
        Err(exception) if exception.code == ErrorCode::VIOLATED_CONSTRAINT => database.own_execute(&statement).await,
        made => made,
    }
}

async fn prune(database: &SqlDatabase, remembered: usize) -> Result<(), Exception> {
    let (table, week_ago) = (database.appends(), database.week_ago());
    let newest = format!("SELECT committed_at FROM {table} ORDER BY committed_at DESC LIMIT 1 OFFSET {remembered}");
    let old = format!("committed_at < {week_ago} OR committed_at <= ({newest})");
    database.own_execute(&format!("DELETE FROM {table} WHERE {old}")).await
}

/// Returns the query for the appends, with columns as texts: the widths of numbers differ among databases.
fn list(database: &SqlDatabase) -> String {
    let (user, rows) = (database.name("user"), database.name("rows"));
    let columns = ["id", &user, &rows, "bytes", "batches", "seconds"].map(|name| format!("CAST({name} AS VARCHAR)"));
    format!("SELECT {} FROM {}", columns.join(", "), database.appends())
}

/// Returns the statement that writes an append's row.
pub(super) fn insert_statement(database: &SqlDatabase, entry: &Entry, target: &str) -> String {
    let Committed { id, rows, bytes, batches, seconds, .. } = &entry.committed;
    let text = |of: &str| Dialect::DuckDb.text(of);
    let (own, user, target) = (database.appends(), text(&entry.user), text(target));
    let numbers = format!("{rows}, {bytes}, {batches}, {seconds:?}");
    format!("INSERT INTO {own} VALUES ('{id}', {user}, {target}, {numbers}, CURRENT_TIMESTAMP)")
}

/// Reads appends. A row that can't be read is an error: to leave it out would be to say that its append is
/// not stored.
async fn ask(database: &SqlDatabase, sql: &str) -> Result<Vec<Entry>, Exception> {
    let rows = database.own_texts(sql).await?;
    let read = |row: &Vec<Option<String>>| {
        entry(row).ok_or_else(|| {
            let text = format!("A row of {} can't be read: {row:?}", database.appends());
            Exception::new(ErrorCode::INCORRECT_DATA, &text, database.version_suffix())
        })
    };
    rows.iter().map(read).collect()
}

fn entry(row: &[Option<String>]) -> Option<Entry> {
    let text = |at: usize| row.get(at)?.as_deref();
    let number = |at: usize| text(at)?.parse().ok();
    let committed = Committed {
        id: text(0)?.parse().ok()?,
        state: State::Committed,
        rows: number(2)?,
        bytes: number(3)?,
        batches: number(4)?,
        seconds: text(5)?.parse().ok()?,
        atomic: Atomicity::All,
    };
    Some(Entry { committed, user: text(1)?.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_duckdb::{DuckDb, DuckDbOptions};

    fn entry(id: u128) -> Entry {
        let (state, atomic) = (State::Committed, Atomicity::All);
        let id = AppendId::from_u128(id);
        let committed = Committed { id, state, rows: 1, bytes: 2, batches: 3, seconds: 0.5, atomic };
        Entry { committed, user: "joe's".to_owned() }
    }

    fn duckdb() -> SqlDatabase {
        let library = std::env::var_os("WINDROW_DUCKDB_LIBRARY").map(Into::into);
        SqlDatabase::DuckDb(DuckDb::open(DuckDbOptions { library, ..DuckDbOptions::default() }).unwrap())
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
    async fn a_row_that_cannot_be_read_is_an_error() {
        let duckdb = duckdb();
        let row = |rows: &str| format!("SELECT '{}', 'joe', '{rows}', '2', '3', '0.5'", AppendId::from_u128(1));
        assert_eq!(ask(&duckdb, &row("1")).await.unwrap().len(), 1);
        let error = ask(&duckdb, &row("-1")).await.err().unwrap();
        assert_eq!((error.code, error.line.contains("can't be read")), (ErrorCode::INCORRECT_DATA, true), "{error}");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn the_database_forgets_by_age_and_number() {
        let duckdb = duckdb();
        let appends = CommittedAppends::load(&duckdb).await.unwrap();
        let own = duckdb.appends();
        for id in 0..10 {
            duckdb.own_execute(&insert_statement(&duckdb, &entry(id), "main.t")).await.unwrap();
        }
        duckdb
            .own_execute(&format!(
                "UPDATE {own} SET committed_at = committed_at - to_days(8) WHERE id::VARCHAR LIKE '%9'"
            ))
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
        duckdb.own_execute(&format!("DELETE FROM {own}")).await.unwrap();
        for id in 0..PRUNED_EVERY {
            let insert = format!("INSERT INTO {own} SELECT uuid(), 'u', 't', 1, 1, 1, 1, now() - INTERVAL 8 DAY");
            if id == 0 {
                duckdb.own_execute(&insert).await.unwrap();
            }
            appends.committed(&duckdb, entry(u128::from(id)));
        }
        while !ids().await.is_empty() {
            tokio::task::yield_now().await;
        }
    }
}
