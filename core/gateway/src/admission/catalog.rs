//! Tables as an account sees them: learnt many at a time, and watched all together.
//!
//! # Learning
//!
//! Tables are asked about in rounds (`rounds.rs`): one question of `system.tables` and `system.columns` for
//! all tables that inserts needed while the last question was under way. `system.columns` shows an account
//! only the columns that it may see, so this is done where the grants say that the account sees all columns
//! of a table. Other tables are asked about one by one, with DESCRIBE.
//!
//! # Watching
//!
//! Every half of `gather.schema_ttl_ms`, while tables are in use, one question covers all of them: for each
//! database, a sum over names, UUIDs, times of change and attached views. Where the sum is the same as
//! before, everything that was learnt of the database holds. Where it is not, the known tables of that
//! database are listed with these marks, and the tables whose marks have changed are learnt anew. Times of
//! change have whole seconds, so a table that changed a moment ago is looked at again. The views on a table,
//! and the tables that these fill, are watched with it.
//!
//! # What grows with what
//!
//! The sum costs ClickHouse about 15 µs for each table of the databases in use (150 ms for 10,000), and the gateway
//! nothing. A change costs a list of the database's known tables. A table that nobody uses any more is not watched.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::de::DeserializeOwned;
use windrow_clickhouse::{Call, CallError, Client, ReplicaId};
use windrow_sql::{quote_string, TableName};

use super::account::Accounts;
use super::doubted::is_named;
use super::engine::EngineDefaults;
use super::rounds::{Answers, Rounds};
use super::schema::{self, Mark, Row, Stamp, TableSchema};
use super::standing::{Moment, Standing};
use super::user::UserKey;
use super::views::{self, TablesBehind};
use super::{NotAdmitted, TableKey, QUESTION_TIMEOUT};
use crate::forward_reason::ForwardReason;

/// Tables in one question: their names stay well below ClickHouse's bound on the length of a query.
pub(super) const TABLES_IN_A_QUESTION: usize = 1_000;
/// Tables that are described one by one at once.
const SINGLY_AT_ONCE: usize = 4;
/// Bound of the known tables. More are a flood of names: then unused ones are forgotten.
const MOST_TABLES: usize = 100_000;

type Learnt = Result<Arc<TableSchema>, NotAdmitted>;

/// The tables that one account sees.
pub(crate) struct Catalog {
    core: Arc<Core>,
    learning: Arc<Rounds<TableKey, Learnt>>,
    watching: Arc<Rounds<(), Result<(), NotAdmitted>>>,
}

struct Core {
    client: Arc<Client>,
    accounts: Arc<Accounts>,
    viewer: UserKey,
    /// Time for which the viewer's grants are believed between two rounds: the same as for other accounts.
    viewer_ttl: Duration,
    /// Standing of all tables that are watched.
    watch: Arc<Standing>,
    has_reported: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    tables: HashMap<TableKey, WatchedTable>,
    /// Sum that the last look at each database found.
    sums: HashMap<String, Sum>,
    /// Defaults of the server's engines. They are forgotten after a failed look: they may be others then.
    engine_defaults: Option<EngineDefaults>,
}

struct WatchedTable {
    schema: Arc<TableSchema>,
    /// Mark of the table when it was learnt; `None`: the table is not watched.
    mark: Option<Mark>,
    /// Views on the table and the tables that these fill, with their marks. They are watched with it.
    behind: Vec<(TableKey, Option<Mark>)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Sum {
    tables: u64,
    marks: u64,
    /// Says whether a table of the database changed so lately that it may have changed again.
    is_young: bool,
}

impl Catalog {
    pub(super) fn new(client: Arc<Client>, accounts: Arc<Accounts>, viewer: UserKey, viewer_ttl: Duration) -> Catalog {
        let (watch, has_reported, state) = (Arc::default(), AtomicBool::new(false), Mutex::default());
        let core = Arc::new(Core { client, accounts, viewer, viewer_ttl, watch, has_reported, state });
        let learning = Rounds::new({
            let core = core.clone();
            move |keys, began| {
                let core = core.clone();
                async move { core.learn(keys, began).await }
            }
        });
        let watching = Rounds::new({
            let core = core.clone();
            move |_, began| {
                let core = core.clone();
                async move { Answers::from([((), core.look(began).await)]) }
            }
        });
        Catalog { core, learning, watching }
    }

    /// Returns the table as it was at `since` or later, and not before something was done to it at `doubted`.
    /// The error `Forward` means that this account sees no such table.
    pub(super) async fn table(&self, key: &TableKey, since: Moment, doubted: Moment) -> Learnt {
        let all_since = since;
        let since = since.max(doubted);
        if let Some(known) = self.known(key) {
            if known.confirmed() >= since {
                return Ok(known);
            }
            // One look at all tables is cheaper than learning each anew, and mostly nothing has changed.
            if known.watch.is_some() && known.confirmed() >= doubted {
                self.look(all_since).await?;
                if let Some(known) = self.known(key).filter(|known| known.confirmed() >= since) {
                    return Ok(known);
                }
            }
        }
        let given_up = || NotAdmitted::Unreachable("the question was given up".to_owned());
        self.learning.answer(key.clone(), since).await.unwrap_or_else(|| Err(given_up()))
    }

    /// Looks at all tables that are in use, or waits for a look that began at `since` or later.
    pub(super) async fn look(&self, since: Moment) -> Result<(), NotAdmitted> {
        let given_up = || NotAdmitted::Unreachable("the question was given up".to_owned());
        self.watching.answer((), since).await.unwrap_or_else(|| Err(given_up()))
    }

    /// Starts a look at all tables that are in use, without waiting for its end.
    pub(super) fn begin_look(&self, since: Moment) {
        self.watching.begin((), since);
    }

    pub(super) fn looking_since(&self) -> Option<Moment> {
        self.watching.running_since()
    }

    /// Forgets the table, which is surely not as it was learnt, and returns it as it was learnt.
    pub(super) fn forget(&self, key: &TableKey) -> Option<Arc<TableSchema>> {
        let known = self.core.lock().tables.remove(key)?;
        known.schema.standing.end();
        Some(known.schema)
    }

    pub(super) fn believes_viewer_for(&self) -> Duration {
        self.core.viewer_ttl
    }

    /// Returns the known tables that have one of these behind them, or views of which nothing is known.
    pub(super) fn concerned_by(&self, names: &[TableName]) -> Vec<TableKey> {
        self.core.lock().concerned_by(names)
    }

    pub(super) fn viewer(&self) -> &UserKey {
        &self.core.viewer
    }

    pub(super) fn client(&self) -> Arc<Client> {
        self.core.client.clone()
    }

    pub(super) fn is_failing(&self) -> bool {
        self.core.watch.has_failed_lately(Moment::default())
    }

    /// Says whether `watch` is the standing of the tables that are watched here.
    pub(super) fn watches(&self, watch: &Arc<Standing>) -> bool {
        Arc::ptr_eq(&self.core.watch, watch)
    }

    /// Returns the tables that admitted inserts are based on.
    pub(super) fn in_use(&self) -> Vec<(TableKey, Arc<TableSchema>)> {
        let state = self.core.lock();
        let in_use = state.tables.iter().filter(|(_, known)| Arc::strong_count(&known.schema) > 1);
        in_use.map(|(key, known)| (key.clone(), known.schema.clone())).collect()
    }

    fn known(&self, key: &TableKey) -> Option<Arc<TableSchema>> {
        self.core.lock().tables.get(key).map(|known| known.schema.clone())
    }
}

impl Core {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn learn(&self, keys: Vec<TableKey>, began: Moment) -> Answers<TableKey, Learnt> {
        // What it may see can change, and nobody's inserts have it looked at.
        let grants = match self.accounts.get(&self.viewer, began.before(self.viewer_ttl)).await {
            Ok(account) => account.grants.clone(),
            // It can't be asked; or it is nobody, and sees nothing.
            Err(error) => return keys.into_iter().map(|key| (key, Err(error.clone()))).collect(),
        };
        let sees_all =
            |key: &TableKey| grants.as_ref().is_some_and(|grants| grants.show_columns(&key.database, &key.table));
        let (together, singly): (Vec<_>, Vec<_>) = keys.into_iter().partition(sees_all);
        let (mut answers, mut singly) = (Answers::new(), singly);
        for keys in together.chunks(TABLES_IN_A_QUESTION) {
            match self.learn_together(keys, began).await.map_err(|error| NotAdmitted::of(&error)) {
                Ok(learnt) => answers.extend(learnt),
                // It may not read the system's tables, whatever it may do with its own.
                Err(NotAdmitted::Forward(_)) => singly.extend_from_slice(keys),
                Err(error) => answers.extend(keys.iter().map(|key| (key.clone(), Err(error.clone())))),
            }
        }
        if !singly.is_empty() {
            self.report_poor_sight();
        }
        for keys in singly.chunks(SINGLY_AT_ONCE) {
            let described = futures::future::join_all(keys.iter().map(|key| self.describe(key))).await;
            answers.extend(keys.iter().cloned().zip(described));
        }
        answers
    }

    async fn learn_together(&self, keys: &[TableKey], began: Moment) -> Result<Answers<TableKey, Learnt>, CallError> {
        let (rows, said_by) = self.rows(keys).await?;
        let defaults = self.engine_defaults().await?;
        let sources: Vec<_> = rows.iter().map(|row| (row.key(), row.views())).collect();
        let mut behind = views::behind(&self.client, &self.viewer, &sources, defaults).await?;
        let is_first_passed_over = self.client.replicas().is_first_passed_over();
        let refused =
            if is_first_passed_over { of_the_first_alone() } else { NotAdmitted::Forward(ForwardReason::UnknownTable) };
        let mut answers: Answers<_, _> = keys.iter().map(|key| (key.clone(), Err(refused.clone()))).collect();
        let mut state = self.lock();
        for row in rows {
            let (key, mark) = (row.key(), row.mark());
            let TablesBehind { fed, reads_request, marks } = behind.remove(&key).unwrap_or_default();
            let schema = row.schema(began, self.watch.clone(), defaults);
            let schema = schema.map(|schema| TableSchema { said_by, ..schema.with_behind(fed, reads_request) });
            if let Some(schema) = schema.filter(|schema| schema.is_replicated || !is_first_passed_over) {
                answers.insert(key.clone(), Ok(state.keep(key, schema, (mark, marks), began)));
            }
        }
        for (key, _) in answers.iter().filter(|(_, answer)| answer.is_err() && !is_first_passed_over) {
            state.lose(key);
        }
        Ok(answers)
    }

    /// Reports in the log, once, that learning costs more than it has to.
    fn report_poor_sight(&self) {
        if !self.has_reported.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                user = self.viewer.credentials.user,
                "the account can't see all columns of the tables that are inserted into, so each is asked about by itself, again \
                 and again: GRANT SHOW TABLES, SHOW COLUMNS ON *.* and SELECT ON system.tables, system.columns to Windrow's account"
            );
        }
    }

    async fn describe(&self, key: &TableKey) -> Learnt {
        let began = Moment::now();
        let schema = schema::ask_as(&self.client, key, &self.viewer.credentials).await;
        let is_known_here = |schema: &Result<TableSchema, _>| schema.as_ref().is_ok_and(|schema| schema.is_replicated);
        if self.client.replicas().is_first_passed_over() && !is_known_here(&schema) {
            return Err(of_the_first_alone());
        }
        let schema = schema?;
        Ok(self.lock().keep(key.clone(), schema, (None, Vec::new()), began))
    }

    async fn engine_defaults(&self) -> Result<EngineDefaults, CallError> {
        let known = self.lock().engine_defaults;
        match known {
            Some(defaults) => Ok(defaults),
            None => {
                let defaults = EngineDefaults::ask(&self.client, &self.viewer.credentials).await?;
                Ok(*self.lock().engine_defaults.insert(defaults))
            }
        }
    }

    async fn rows(&self, keys: &[TableKey]) -> Result<(Vec<Row>, ReplicaId), CallError> {
        let question = schema::question(&named(keys, "name"), &named(keys, "table"));
        let answer = ask(&self.client, &self.viewer, &question).await?;
        Ok((answer.text().lines().filter_map(Row::read).collect(), answer.replica))
    }

    async fn ask_lines<T: DeserializeOwned>(&self, question: &str) -> Result<Vec<T>, CallError> {
        ask_lines(&self.client, &self.viewer, question).await
    }

    async fn look(&self, began: Moment) -> Result<(), NotAdmitted> {
        let looked = self.look_at_all(began).await;
        match &looked {
            Ok(()) => self.watch.confirm(began),
            Err(_) => {
                self.watch.fail(began);
                self.lock().engine_defaults = None;
            }
        }
        looked.map_err(|error| match NotAdmitted::of(&error) {
            // It may not look any more: its tables are learnt anew, by whoever may.
            NotAdmitted::Forward(_) => {
                self.lock().lose_watched();
                NotAdmitted::Unreachable(error.to_string())
            }
            other => other,
        })
    }

    async fn look_at_all(&self, began: Moment) -> Result<(), CallError> {
        let in_use = self.lock().in_use();
        if in_use.is_empty() {
            return Ok(());
        }
        let databases: Vec<String> = in_use.keys().map(|name| quote_string(name)).collect();
        let question = format!(
            "SELECT database, count(), sum(cityHash64(name, uuid, metadata_modification_time, dependencies_database, \
             dependencies_table)), toUnixTimestamp(max(metadata_modification_time)) + {young} >= toUnixTimestamp(now()) FROM \
             system.tables WHERE database IN ({names}) GROUP BY database FORMAT JSONCompactEachRow",
            young = schema::YOUNG_SECONDS,
            names = databases.join(", ")
        );
        let sums = self.ask_lines::<(String, u64, u64, u8)>(&question).await?;
        let sums: HashMap<_, _> = sums
            .into_iter()
            .map(|(database, tables, marks, is_young)| (database, Sum { tables, marks, is_young: is_young > 0 }))
            .collect();
        for (database, keys) in in_use {
            let sum = sums.get(&database);
            let is_same = sum.is_some_and(|sum| !sum.is_young) && self.lock().sums.get(&database) == sum;
            if is_same && !self.lock().has_young(&keys) {
                continue;
            }
            self.look_closer(&keys, began).await?;
            let mut state = self.lock();
            match sum {
                Some(sum) => state.sums.insert(database, sum.clone()),
                None => state.sums.remove(&database),
            };
        }
        Ok(())
    }

    /// Finds out which of these tables of one database have changed, and learns those anew.
    async fn look_closer(&self, keys: &[TableKey], began: Moment) -> Result<(), CallError> {
        let mut changed = Vec::new();
        for keys in keys.chunks(TABLES_IN_A_QUESTION) {
            let question = format!(
                "SELECT database, name, toString(uuid), if(notEmpty(dependencies_table), cityHash64(dependencies_database, \
                 dependencies_table), 0), toUnixTimestamp(metadata_modification_time) FROM system.tables WHERE {} \
                 FORMAT JSONCompactEachRow",
                named(keys, "name")
            );
            let marks = self.ask_lines::<(String, String, String, u64, u32)>(&question).await?;
            let marks: HashMap<TableKey, Stamp> = marks
                .into_iter()
                .filter_map(|(database, table, uuid, views, changed)| {
                    let uuid = schema::uuid(&uuid)?;
                    Some((TableKey { database, table }, Stamp { uuid, views, changed }))
                })
                .collect();
            changed.extend(self.lock().changed(keys, &marks));
        }
        for keys in changed.chunks(TABLES_IN_A_QUESTION) {
            self.learn_together(keys, began).await?;
        }
        Ok(())
    }
}

impl State {
    /// Returns the watched tables that admitted inserts are based on, and those behind them, by database.
    /// Tables that nothing is based on are forgotten.
    fn in_use(&mut self) -> BTreeMap<String, Vec<TableKey>> {
        self.tables.retain(|_, known| Arc::strong_count(&known.schema) > 1);
        let mut by_database = BTreeMap::<String, Vec<TableKey>>::new();
        for (key, known) in self.tables.iter().filter(|(_, known)| known.mark.is_some()) {
            for key in std::iter::once(key).chain(known.behind.iter().map(|(key, _)| key)) {
                by_database.entry(key.database.clone()).or_default().push(key.clone());
            }
        }
        for keys in by_database.values_mut() {
            keys.sort_unstable();
            keys.dedup();
        }
        self.sums.retain(|database, _| by_database.contains_key(database));
        by_database
    }

    fn has_young(&self, keys: &[TableKey]) -> bool {
        let is_young = |mark: &Option<Mark>| mark.is_some_and(|mark| mark.is_young);
        let behind = || self.tables.values().flat_map(|known| &known.behind);
        keys.iter().any(|key| self.tables.get(key).is_some_and(|known| is_young(&known.mark)))
            || behind().any(|(key, mark)| is_young(mark) && keys.contains(key))
    }

    /// Returns the watched tables that may not be as they were, or have something else behind them. `now` has
    /// the stamps that were found of `keys`.
    fn changed(&self, keys: &[TableKey], now: &HashMap<TableKey, Stamp>) -> HashSet<TableKey> {
        let asked: HashSet<&TableKey> = keys.iter().collect();
        let is_as = |mark: &Mark, key: &TableKey| !asked.contains(key) || mark.is_as(now.get(key));
        // What was not seen, or keeps no time of changes, may be seen now.
        let is_same_behind = |(key, mark): &(TableKey, Option<Mark>)| match mark {
            Some(mark) => is_as(mark, key),
            None => now.get(key).is_none_or(|stamp| stamp.changed == 0),
        };
        let watched = self.tables.iter().filter_map(|(key, known)| Some((key, known.mark.as_ref()?, &known.behind)));
        let changed = watched.filter(|(key, mark, behind)| !is_as(mark, key) || !behind.iter().all(is_same_behind));
        changed.map(|(key, ..)| key.clone()).collect()
    }

    fn concerned_by(&self, names: &[TableName]) -> Vec<TableKey> {
        let is_concerned = |known: &WatchedTable| match known.mark {
            Some(_) => known.behind.iter().any(|(key, _)| names.iter().any(|name| is_named(key, name))),
            None => known.schema.has_views,
        };
        let concerned = self.tables.iter().filter(|(_, known)| is_concerned(known));
        concerned.map(|(key, _)| key.clone()).collect()
    }

    /// Returns the known table if it is still the same, else puts the new one in its place.
    fn keep(
        &mut self,
        key: TableKey,
        schema: TableSchema,
        (mark, behind): (Option<Mark>, Vec<(TableKey, Option<Mark>)>),
        began: Moment,
    ) -> Arc<TableSchema> {
        if let Some(known) = self.tables.get_mut(&key) {
            // Somebody who asked later was quicker.
            if known.schema.standing.confirmed() > began {
                return known.schema.clone();
            }
            if known.mark.is_some() == mark.is_some() && known.schema.is_like(&schema) {
                (known.mark, known.behind) = (mark, behind);
                known.schema.standing.confirm(began);
                return known.schema.clone();
            }
            known.schema.standing.end();
        }
        self.make_room();
        // What the sum was summed up over has not been compared with this.
        self.sums.remove(&key.database);
        let schema = Arc::new(schema);
        self.tables.insert(key, WatchedTable { schema: schema.clone(), mark, behind });
        schema
    }

    /// Forgets the watched tables, since nothing says any more whether they are as they were learnt.
    fn lose_watched(&mut self) {
        self.sums.clear();
        self.tables.retain(|_, known| {
            if known.mark.is_some() {
                known.schema.standing.end();
            }
            known.mark.is_none()
        });
    }

    fn lose(&mut self, key: &TableKey) {
        if let Some(known) = self.tables.remove(key) {
            known.schema.standing.end();
        }
    }

    fn make_room(&mut self) {
        if self.tables.len() >= MOST_TABLES {
            self.tables.retain(|_, known| Arc::strong_count(&known.schema) > 1);
        }
    }
}

/// Asks as the viewer. The question goes in the body, since the length of a URL has a bound.
async fn ask(client: &Client, viewer: &UserKey, question: &str) -> Result<windrow_clickhouse::Answer, CallError> {
    let body = [question.as_bytes()];
    let mut call = Call::new(&viewer.credentials, "").timeout(QUESTION_TIMEOUT);
    call = call.param("output_format_json_quote_64bit_integers", "0").body(&body);
    for role in &viewer.roles {
        call = call.param("role", role);
    }
    client.call(call).await
}

pub(super) async fn ask_lines<T: DeserializeOwned>(
    client: &Client,
    viewer: &UserKey,
    question: &str,
) -> Result<Vec<T>, CallError> {
    let answer = ask(client, viewer, question).await?;
    Ok(answer.text().lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
}

/// Makes the error for a table that may be on the first replica alone, while that one is away: another
/// replica's table of this name is another table, unless it is replicated.
fn of_the_first_alone() -> NotAdmitted {
    NotAdmitted::Unreachable("the first replica is away, and the table may be one of that server alone".to_owned())
}

/// Writes a condition that these tables meet, by database: ClickHouse then looks into these databases only.
pub(super) fn named(keys: &[TableKey], column: &str) -> String {
    let mut by_database = BTreeMap::<&str, HashSet<&str>>::new();
    for key in keys {
        by_database.entry(&key.database).or_default().insert(&key.table);
    }
    let of_one = |(database, tables): (&str, HashSet<&str>)| {
        let names: Vec<String> = tables.into_iter().map(quote_string).collect();
        format!("(database = {} AND {column} IN ({}))", quote_string(database), names.join(", "))
    };
    by_database.into_iter().map(of_one).collect::<Vec<_>>().join(" OR ")
}

#[cfg(test)]
mod tests {
    use std::slice;

    use super::*;

    fn key(table: &str) -> TableKey {
        TableKey { database: "d".into(), table: table.into() }
    }

    fn row(table: &str, changed: u32, now: u32, column: &str) -> Row {
        let line = format!(
            r#"["d","{table}","MergeTree","MergeTree ORDER BY a","00000000-0000-0000-0000-000000000001",0,"","",{changed},[[1,"{column}","UInt64","",""]],{now},[]]"#
        );
        let row = Row::read(&line).expect("a row");
        for length in 0..line.len() {
            assert!(Row::read(&line[..length]).is_none(), "cut after {length}");
        }
        row
    }

    fn keep(state: &mut State, row: Row, began: Moment) -> Arc<TableSchema> {
        let (key, mark, watch) = (row.key(), row.mark(), Arc::new(Standing::default()));
        // As it is done when it is learnt: one that can't be watched stands on nobody's looks.
        let schema = row.schema(began, watch, EngineDefaults::default()).expect("a table");
        state.keep(key, schema, (mark, Vec::new()), began)
    }

    #[test]
    fn a_table_that_is_the_same_keeps_what_stands_on_it() {
        let mut state = State::default();
        let first = keep(&mut state, row("t", 10, 100, "a"), Moment::default());
        let same = keep(&mut state, row("t", 50, 100, "a"), Moment::now());
        assert!(Arc::ptr_eq(&first, &same), "only the time of its change is another");
        let late = keep(&mut state, row("t", 9, 100, "c"), Moment::default());
        assert!(Arc::ptr_eq(&first, &late), "an answer from before");
        let other = keep(&mut state, row("t", 60, 100, "b"), Moment::now());
        assert!(first.standing.is_over() && !other.standing.is_over());
        state.lose(&key("t"));
        assert!(other.standing.is_over());
    }

    #[test]
    fn what_changed_a_moment_ago_is_looked_at_again() {
        let mut state = State::default();
        let _held = keep(&mut state, row("t", 99, 100, "a"), Moment::default());
        let stamp = Stamp { uuid: 1, views: 0, changed: 99 };
        let changed = |state: &State, stamp: Option<Stamp>| {
            let now = stamp.map(|stamp| (key("t"), stamp)).into_iter().collect();
            !state.changed(&[key("t")], &now).is_empty()
        };
        assert!(state.has_young(&[key("t")]) && changed(&state, Some(stamp)));
        keep(&mut state, row("t", 99, 102, "a"), Moment::default());
        assert!(!state.has_young(&[key("t")]) && !changed(&state, Some(stamp)));
        assert!(changed(&state, Some(Stamp { changed: 100, ..stamp })));
        assert!(changed(&state, None), "it is gone");
    }

    #[test]
    fn a_table_is_watched_with_what_is_behind_it() {
        let mut state = State::default();
        let target = TableKey { database: "e".into(), table: "u".into() };
        let stamp = Stamp { uuid: 2, views: 0, changed: 99 };
        let source = row("t", 10, 100, "a");
        let own = Stamp { uuid: 1, views: 0, changed: 10 };
        let keep = |state: &mut State, now: u32| {
            let mark = source.mark();
            let schema = row("t", 10, 100, "a").schema(Moment::now(), Arc::default(), EngineDefaults::default());
            state.keep(key("t"), schema.unwrap(), (mark, vec![(target.clone(), Mark::of(stamp, now))]), Moment::now())
        };
        let _held = keep(&mut state, 100);
        assert_eq!(state.in_use().get("e"), Some(&vec![target.clone()]));
        let found = |stamp: Stamp| HashMap::from([(target.clone(), stamp)]);
        assert!(state.has_young(slice::from_ref(&target)));
        assert!(state.changed(slice::from_ref(&target), &found(stamp)).contains(&key("t")), "it is young");
        let _held = keep(&mut state, 200);
        assert!(!state.has_young(slice::from_ref(&target)));
        assert!(state.changed(slice::from_ref(&target), &found(stamp)).is_empty());
        assert!(
            state.changed(&[key("t")], &HashMap::from([(key("t"), own)])).is_empty(),
            "the other was not asked for"
        );
        let altered = Stamp { changed: 150, ..stamp };
        assert!(state.changed(slice::from_ref(&target), &found(altered)).contains(&key("t")));
        assert!(state.changed(slice::from_ref(&target), &HashMap::new()).contains(&key("t")), "it is gone");
    }

    #[test]
    fn only_tables_in_use_are_watched_and_those_without_a_time_never() {
        let mut state = State::default();
        let held = keep(&mut state, row("held", 10, 100, "a"), Moment::default());
        let timeless = keep(&mut state, row("timeless", 0, 100, "a"), Moment::default());
        keep(&mut state, row("let_go", 10, 100, "a"), Moment::default());
        assert_eq!(state.in_use().get("d"), Some(&vec![key("held")]));
        assert_eq!(state.tables.len(), 2);
        assert!(held.watch.is_some() && timeless.watch.is_none());
        state.lose_watched();
        assert!(held.standing.is_over() && !timeless.standing.is_over());
    }

    #[test]
    fn tables_are_named_by_database() {
        let keys = [key("a"), TableKey { database: "e'".into(), table: "b".into() }];
        assert_eq!(named(&keys, "name"), "(database = 'd' AND name IN ('a')) OR (database = 'e\\'' AND name IN ('b'))");
    }
}
