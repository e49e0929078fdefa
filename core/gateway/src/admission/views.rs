//! Tables that get rows of another one through materialized views, and through views behind these, and
//! whether such tables recognise a batch that comes a second time.
//!
//! A batch that is sent again after a lost answer goes through the views once more, whatever the table itself
//! knows. So each table at the end of a view needs a window as well. These tables are looked for level by
//! level: the views on all tables that are being learnt, the tables that these views fill, the views on
//! those. Where there are no views, nothing is asked.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::PoisonError;

use serde::Deserialize;
use windrow_clickhouse::{CallError, Client};
use windrow_sql::{view_target, ViewTarget};

use super::catalog::{ask_lines, named, TABLES_IN_A_QUESTION};
use super::engine::{self, EngineDefaults};
use super::functions;
use super::schema::{self, Mark, Stamp, TableSchema};
use super::sharding::Shards;
use super::user::UserKey;
use super::windows::{Window, WindowOrigin, Windows};
use super::{Admission, Learnt, TableKey};

/// Bound of the views and tables that are looked for: nobody's tables have more behind them.
const MOST_BEHIND: usize = 10_000;

/// A table that gets rows through a view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FedTable {
    pub(crate) table: TableKey,
    /// The view that fills it.
    pub(crate) view: TableKey,
    /// Deduplication window of the table; `None`: the account can't see the table.
    pub(super) window: Option<Window>,
    has_replicated_engine: bool,
}

impl FedTable {
    /// Returns the reason why the table won't recognise a repeated batch, whatever is done. `on_replicas`
    /// means that another replica may get the batch the second time.
    pub(super) fn obstacle(&self, windows: &Windows, on_replicas: bool) -> Option<&'static str> {
        let Some(window) = self.window else {
            return Some(
                "Windrow's account can't see whether it has a window of deduplication: GRANT SHOW TABLES on it and on \
                 the view to that account",
            );
        };
        match on_replicas && !self.has_replicated_engine {
            true => Some("it is not replicated, and another replica may get the batch the second time"),
            false => windows.obstacle(window),
        }
    }
}

/// Tables and views behind a table.
#[derive(Debug, Default)]
pub(super) struct TablesBehind {
    pub(super) fed: Box<[FedTable]>,
    /// Says whether some view computes its rows from the request.
    pub(super) reads_request: bool,
    /// Views, and the tables that they fill, with the mark of each. `None`: the account can't see it, or
    /// there is no time of its changes.
    pub(super) marks: Vec<(TableKey, Option<Mark>)>,
}

#[derive(Deserialize)]
struct Row {
    database: String,
    name: String,
    engine: String,
    engine_full: String,
    uuid: String,
    views: u64,
    changed: u32,
    /// Definition of a view; empty for a table.
    create: String,
    dependents: Vec<(String, String)>,
    now: u32,
    /// Name of the table, and then, where the server says so, the database and the table that a view fills.
    fills: Vec<String>,
}

struct Node {
    mark: Option<Mark>,
    engine: String,
    window: Window,
    has_replicated_engine: bool,
    /// Says whether a view reads the request.
    reads_request: bool,
    /// Table that a view fills, or views on a table.
    next: Vec<TableKey>,
}

/// Finds the tables and views behind each of `sources`, which are given with the views on them.
pub(super) async fn behind(
    client: &Client,
    viewer: &UserKey,
    sources: &[(TableKey, Vec<TableKey>)],
    defaults: EngineDefaults,
) -> Result<HashMap<TableKey, TablesBehind>, CallError> {
    let mut nodes = HashMap::new();
    let mut asked = BTreeSet::new();
    let mut next: BTreeSet<TableKey> = sources.iter().flat_map(|(_, views)| views).cloned().collect();
    while !next.is_empty() && asked.len() < MOST_BEHIND {
        let level: Vec<TableKey> = next.iter().cloned().collect();
        for keys in level.chunks(TABLES_IN_A_QUESTION) {
            let rows = ask_lines::<Row>(client, viewer, &question(keys)).await?;
            nodes.extend(rows.into_iter().filter_map(|row| Some((row.key(), row.node(defaults)?))));
        }
        let found = level.iter().filter_map(|key| nodes.get(key)).flat_map(|node: &Node| node.next.clone());
        let found: BTreeSet<TableKey> = found.collect();
        asked.append(&mut next);
        next = found.difference(&asked).cloned().collect();
    }
    Ok(sources.iter().map(|(source, views)| (source.clone(), behind_one(&nodes, views))).collect())
}

fn question(keys: &[TableKey]) -> String {
    format!(
        "SELECT database, name, engine, engine_full, toString(uuid), if(notEmpty(dependencies_table), \
         cityHash64(dependencies_database, dependencies_table), 0), toUnixTimestamp(metadata_modification_time), \
         if(engine LIKE '%View', create_table_query, ''), arrayZip(dependencies_database, dependencies_table), \
         toUnixTimestamp(now()), array(COLUMNS('^(name|target_database|target_table)$')) FROM system.tables WHERE {} \
         FORMAT JSONCompactEachRow",
        named(keys, "name")
    )
}

impl Row {
    fn key(&self) -> TableKey {
        TableKey { database: self.database.clone(), table: self.name.clone() }
    }

    fn node(self, defaults: EngineDefaults) -> Option<Node> {
        let stamp = Stamp { uuid: schema::uuid(&self.uuid)?, views: self.views, changed: self.changed };
        let (window, has_replicated_engine) = engine::window(&self.engine, &self.engine_full, defaults);
        let next = match self.engine.ends_with("View") {
            true => self.target().into_iter().collect(),
            false => keys(&self.dependents),
        };
        let mark = Mark::of(stamp, self.now);
        let reads_request = functions::view_reads_request(&self.create);
        Some(Node { mark, engine: self.engine, window, has_replicated_engine, reads_request, next })
    }

    /// Returns the table that this view fills.
    fn target(&self) -> Option<TableKey> {
        if let [_, database, table] = self.fills.as_slice() {
            return (!table.is_empty()).then(|| TableKey { database: database.clone(), table: table.clone() });
        }
        match view_target(&self.create)? {
            ViewTarget::Table(name) => {
                let database = name.database.unwrap_or_else(|| self.database.clone());
                Some(TableKey { database, table: name.table })
            }
            // As ClickHouse names them, in databases that know tables by their UUID and in others.
            ViewTarget::Inner => {
                let table = match schema::uuid(&self.uuid)? {
                    0 => format!(".inner.{}", self.name),
                    _ => format!(".inner_id.{}", self.uuid),
                };
                Some(TableKey { database: self.database.clone(), table })
            }
        }
    }
}

pub(super) fn keys(names: &[(String, String)]) -> Vec<TableKey> {
    names.iter().map(|(database, table)| TableKey { database: database.clone(), table: table.clone() }).collect()
}

fn behind_one(nodes: &HashMap<TableKey, Node>, views: &[TableKey]) -> TablesBehind {
    let (mut fed, mut marks, mut reads_request) = (BTreeMap::new(), BTreeMap::new(), false);
    let mut waiting = views.to_vec();
    while let Some(view) = waiting.pop() {
        let node = nodes.get(&view);
        if marks.insert(view.clone(), node.and_then(|node| node.mark)).is_some() {
            continue;
        }
        reads_request |= node.is_some_and(|node| node.reads_request);
        let Some(target) = node.and_then(|node| node.next.first()) else {
            // Nobody can say which table it is.
            fed.insert(
                view.clone(),
                FedTable { table: view.clone(), view, window: None, has_replicated_engine: false },
            );
            continue;
        };
        let table = nodes.get(target);
        marks.insert(target.clone(), table.and_then(|table| table.mark));
        waiting.extend(table.iter().flat_map(|table| &table.next).cloned());
        // What keeps no rows has none twice.
        if table.is_some_and(|table| table.engine == "Null") {
            continue;
        }
        let (window, has_replicated_engine) =
            table.map_or((None, false), |table| (Some(table.window), table.has_replicated_engine));
        fed.entry(target.clone()).or_insert(FedTable { table: target.clone(), view, window, has_replicated_engine });
    }
    TablesBehind { fed: fed.into_values().collect(), reads_request, marks: marks.into_iter().collect() }
}

/// A table that gets rows through a view, and may store those of a repeated batch twice.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Unprotected {
    pub(crate) table: TableKey,
    pub(crate) view: TableKey,
    pub(crate) why: String,
}

impl Unprotected {
    fn of(fed: &FedTable, source: &TableSchema, windows: &Windows) -> Option<Unprotected> {
        let why = fed.obstacle(windows, source.is_replicated).map(str::to_owned);
        // The table is to have a window, and could not be given one.
        let could_not = || windows.told(&fed.table).filter(|_| !fed.window.is_some_and(Window::recognises_batches));
        Some(Unprotected { table: fed.table.clone(), view: fed.view.clone(), why: why.or_else(could_not)? })
    }
}

impl std::fmt::Display for Unprotected {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Unprotected { table, view, why } = self;
        let (table, view) = ((&table.database, &table.table), (&view.database, &view.table));
        write!(f, "{}.{}, which the view {}.{} fills: {why}", table.0, table.1, view.0, view.1)
    }
}

impl Admission {
    /// Says whether the table will recognise a repeated batch, if [`give_windows`](Self::give_windows)
    /// succeeds. Where the table keeps no rows, the tables that views fill have to recognise it.
    pub(crate) fn will_recognise_batches(&self, schema: &TableSchema) -> bool {
        let will = |window| self.windows.will_recognise_batches(window);
        match schema.keeps_none && !schema.fed.is_empty() {
            true => schema.fed.iter().all(|fed| fed.obstacle(&self.windows, schema.is_replicated).is_none()),
            false => will(schema.window),
        }
    }

    /// Gives windows to the table and to those that views fill from it, if they are to have some. Fails with
    /// the reason why the table has none, or, where the table keeps no rows, why the others have none.
    pub(crate) async fn give_windows(&self, key: &TableKey, schema: &TableSchema) -> Result<(), String> {
        let Learnt::ClickHouse(it) = &self.learnt else { return Ok(()) };
        let (client, on_replicas) = (&it.client, schema.is_replicated);
        let fed = schema.fed.iter().map(|fed| async move {
            let settled = self.windows.settle_fed(client, fed, on_replicas).await;
            settled.inspect(|settled| self.forget_if_given(&fed.table, *settled))
        });
        let fed = futures::future::join_all(fed).await;
        let is_any_given = fed.contains(&Ok(WindowOrigin::Given));
        let own = match schema.keeps_none && !schema.fed.is_empty() {
            true => fed.into_iter().collect::<Result<Vec<_>, _>>().map(|_| WindowOrigin::Had),
            false => self.windows.settle(client, key, schema.window).await,
        };
        // Also that it has others behind it by now.
        self.forget_if_given(
            key,
            if is_any_given { WindowOrigin::Given } else { *own.as_ref().unwrap_or(&WindowOrigin::Had) },
        );
        own.map(drop)
    }

    fn forget_if_given(&self, key: &TableKey, settled: WindowOrigin) {
        if settled == WindowOrigin::Given {
            self.forget_table(key);
        }
    }

    /// Returns the reason why a batch that is sent again may be stored twice, in the table or behind it.
    pub(crate) fn obstacle(&self, schema: &TableSchema) -> Option<String> {
        let own = self.windows.obstacle(schema.window).map(str::to_owned);
        let fed = || schema.fed.iter().find_map(|fed| Some(Unprotected::of(fed, schema, &self.windows)?.to_string()));
        match schema.keeps_none && !schema.fed.is_empty() {
            true => fed(),
            false => own.or_else(fed),
        }
    }

    /// Returns the tables that get rows through views on the tables in use, and may have these rows twice.
    pub(crate) fn unprotected(&self) -> Vec<Unprotected> {
        let Learnt::ClickHouse(it) = &self.learnt else { return Vec::new() };
        let others = it.others.lock().unwrap_or_else(PoisonError::into_inner);
        let in_use = others.values().flat_map(|other| other.in_use()).chain(it.own.in_use());
        let mut all: Vec<Unprotected> = in_use
            .flat_map(|(_, schema)| {
                let found = schema.fed.iter().filter_map(|fed| Unprotected::of(fed, &schema, &self.windows));
                found.collect::<Vec<_>>()
            })
            .chain(self.shards.iter().flat_map(Shards::unprotected))
            .collect();
        all.sort_unstable();
        all.dedup_by(|one, other| one.table == other.table);
        all
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn key(name: &str) -> TableKey {
        TableKey { database: "d".into(), table: name.into() }
    }

    fn node(name: &str, engine: &str, engine_full: &str, create: &str, dependents: &[&str]) -> (TableKey, Node) {
        let dependents: Vec<[&str; 2]> = dependents.iter().map(|name| ["d", name]).collect();
        let id = "00000000-0000-0000-0000-000000000001";
        let line = [json!("d"), json!(name), json!(engine), json!(engine_full), json!(id), json!(0), json!(10)];
        let line = [&line[..], &[json!(create), json!(dependents), json!(100), json!([name])]].concat();
        let line = json!(line).to_string();
        for length in 0..line.len() {
            assert!(serde_json::from_str::<Row>(&line[..length]).is_err(), "cut after {length}");
        }
        let row: Row = serde_json::from_str(&line).expect("a row");
        (row.key(), row.node(EngineDefaults::default()).expect("a table"))
    }

    fn table(name: &str, blocks: u64, dependents: &[&str]) -> (TableKey, Node) {
        let engine = format!("MergeTree ORDER BY a SETTINGS non_replicated_deduplication_window = {blocks}");
        node(name, "MergeTree", &engine, "", dependents)
    }

    fn view(name: &str, to: &str) -> (TableKey, Node) {
        let create = format!("CREATE MATERIALIZED VIEW d.{name} {to} AS SELECT a FROM d.t");
        node(name, "MaterializedView", "", &create, &[])
    }

    fn lacking(nodes: impl IntoIterator<Item = (TableKey, Node)>, views: &[&str]) -> Vec<String> {
        let views: Vec<TableKey> = views.iter().map(|name| key(name)).collect();
        let behind = behind_one(&nodes.into_iter().collect(), &views);
        let windows = Windows::new(false);
        let lacking = behind.fed.iter().filter(|fed| fed.obstacle(&windows, false).is_some());
        lacking.map(|fed| format!("{} by {}", fed.table.table, fed.view.table)).collect()
    }

    #[test]
    fn what_the_server_says_of_a_views_target_counts() {
        let fills = |create: &str, fills: &[&str]| {
            let line = json!(["d", "v", "MaterializedView", "", "0", 0, 0, create, [], 100, fills]).to_string();
            serde_json::from_str::<Row>(&line).unwrap().target().map(|target| (target.database, target.table))
        };
        let key = |database: &str, table: &str| Some((database.to_owned(), table.to_owned()));
        assert_eq!(fills("", &["v", "e", "u"]), key("e", "u"));
        assert_eq!(fills("CREATE MATERIALIZED VIEW v TO e.w AS SELECT 1", &["v"]), key("e", "w"));
        assert_eq!(fills("CREATE MATERIALIZED VIEW v ENGINE = Null AS SELECT 1", &["v"]), key("d", ".inner.v"));
        assert_eq!(fills("", &["v", "", ""]), None);
        assert_eq!(fills("", &[]), None);
    }

    #[test]
    fn each_table_at_the_end_of_a_view_needs_a_window() {
        assert_eq!(lacking([view("v", "TO d.u"), table("u", 9, &[])], &["v"]), [""; 0]);
        assert_eq!(lacking([view("v", "TO u"), table("u", 0, &[])], &["v"]), ["u by v"]);
        let inner = ".inner_id.00000000-0000-0000-0000-000000000001";
        let own = view("v", "(`a` UInt64) ENGINE = MergeTree ORDER BY a");
        assert_eq!(lacking([own, table(inner, 0, &[])], &["v"]), [format!("{inner} by v")]);
        let log = node("u", "Log", "Log", "", &[]);
        assert_eq!(lacking([view("v", "TO d.u"), log], &["v"]), ["u by v"], "it has no window at all");
    }

    #[test]
    fn views_behind_views_are_followed() {
        let chain = |middle, last| {
            let links = [view("v", "TO d.m"), table("m", middle, &["w"]), view("w", "TO d.u"), table("u", last, &[])];
            lacking(links, &["v"])
        };
        assert_eq!(chain(9, 9), [""; 0]);
        assert_eq!(chain(9, 0), ["u by w"]);
        assert_eq!(chain(0, 9), ["m by v"]);
        let nothing_kept =
            [view("v", "TO d.m"), node("m", "Null", "Null", "", &["w"]), view("w", "TO d.u"), table("u", 0, &[])];
        assert_eq!(lacking(nothing_kept, &["v"]), ["u by w"]);
        let round = [view("v", "TO d.m"), table("m", 0, &["w"]), view("w", "TO d.m")];
        assert_eq!(lacking(round, &["v"]), ["m by v"]);
        let fan = [view("v", "TO d.a"), view("w", "TO d.b"), table("a", 0, &[]), table("b", 0, &[])];
        assert_eq!(lacking(fan, &["v", "w"]), ["a by v", "b by w"]);
    }

    #[test]
    fn what_is_not_seen_is_told() {
        assert_eq!(lacking([], &["v"]), ["v by v"]);
        assert_eq!(lacking([view("v", "TO d.u")], &["v"]), ["u by v"]);
        let other = node("v", "WindowView", "", "CREATE WINDOW VIEW d.v TO d.u AS SELECT 1", &[]);
        assert_eq!(lacking([other, table("u", 9, &[])], &["v"]), ["v by v"]);
    }

    #[test]
    fn a_plain_target_of_a_table_on_replicas_does_not_do() {
        let behind = behind_one(&[view("v", "TO d.u"), table("u", 9, &[])].into(), &[key("v")]);
        let windows = Windows::new(true);
        assert!(behind.fed[0].obstacle(&windows, true).is_some() && behind.fed[0].obstacle(&windows, false).is_none());
    }
}
