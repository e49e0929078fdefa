use std::sync::Arc;

use serde::{Deserialize, Serialize};
use windrow_clickhouse::{Call, CallError, Client, Credentials, ReplicaId};
use windrow_columns::{ColumnSpec, DataType, DefaultKind, PartitionKey};

use super::engine::{Engine, EngineDefaults};
use super::functions::{self, CONSTRAINTS};
use super::standing::{Moment, Standing};
use super::user::UserKey;
use super::views::{self, FedTable};
use super::windows::Window;
use super::{NotAdmitted, TableKey, QUESTION_TIMEOUT};
use crate::forward_reason::ForwardReason;

/// Facts about a table that inserts depend on.
#[derive(Debug)]
pub(crate) struct TableSchema {
    /// Standing of these facts.
    pub(crate) standing: Standing,
    /// Standing of all tables that the same account watches: a confirmation of it holds for this table, too.
    pub(super) watch: Option<Arc<Standing>>,
    pub(super) columns: Box<[Column]>,
    /// Says whether the engine takes a gathered batch as it would take the inserts one by one.
    pub(crate) gatherable: bool,
    /// The table's own setting `async_insert`, which gathers also the inserts that say `async_insert=0`.
    pub(crate) async_insert: bool,
    /// Column whose marks the table collapses rows by.
    pub(crate) marks: Option<Marks>,
    /// Deduplication window: the earlier inserts that the table remembers, so that a repeat is dropped.
    pub(crate) window: Window,
    /// UUID, which stays the same through renames; zero where the database gives tables none.
    pub(crate) uuid: u128,
    pub(crate) has_views: bool,
    /// Tables that get rows of this one through views, also through views behind these.
    pub(super) fed: Box<[FedTable]>,
    /// Says whether the table keeps no rows, so that only views see them.
    pub(super) keeps_none: bool,
    /// Says whether the table's rows go on to other tables.
    pub(crate) hands_on: bool,
    pub(crate) distributed: Option<Distributed>,
    /// Says whether there are several replicas, of which each can take the table's rows.
    pub(crate) is_replicated: bool,
    /// Says whether the engine shares its rows with replicas, be there any or not.
    pub(super) has_replicated_engine: bool,
    /// Replica that has said all this: each replica may have given the table a UUID of its own.
    pub(super) said_by: ReplicaId,
    /// Partition key as `system.tables` shows it; empty if there is none.
    pub(super) partition_key: String,
    /// Says whether something is computed from the rows as they are written: defaults, constraints, views.
    pub(crate) computes: bool,
    /// Says whether ClickHouse may refuse an insert because of values that it computes, or of work beside
    /// storing rows. Then a yes to an insert into another table says nothing of this one.
    pub(crate) asks_for_rights: bool,
    /// Says whether a constraint or a view computes something that depends on more than the row.
    pub(super) reads_request: bool,
}

/// Tables of the shards that a Distributed table hands its rows on to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Distributed {
    pub(crate) cluster: String,
    pub(crate) database: String,
    pub(crate) table: String,
    /// Sharding key, by which the shard of a row is found.
    pub(crate) key: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) type_name: String,
    /// Type, or the reason why it is not known here.
    pub(crate) data_type: Result<DataType, String>,
    pub(crate) default_kind: DefaultKind,
    /// Expression of the column's default; empty where there is none.
    pub(super) default_expression: Box<str>,
    /// Value of the column where it is left out, if that is a number that can be read here.
    pub(super) plain_default: Option<i64>,
    pub(crate) asks_for_rights: bool,
    /// Says whether the column's computed value depends on more than the row.
    pub(super) reads_request: bool,
}

/// A column of one byte in which ClickHouse takes two values only: the Sign of a table that collapses rows,
/// or the column that marks rows as deleted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Marks {
    pub(crate) column: String,
    pub(crate) allowed: [i8; 2],
    /// Says whether an insert may leave the column out.
    pub(crate) has_allowed_default: bool,
}

/// Says whether an expression may read something for which a user needs a right, by the names of its
/// functions: dictionaries, Join tables, files, subqueries, models, the server's own code.
fn asks_for_rights(expression: &str) -> bool {
    const MARKS: [&str; 7] = ["dict", "join", "file", "select", "catboost", "address", "demangle"];
    let expression = expression.to_ascii_lowercase();
    MARKS.iter().any(|mark| expression.contains(mark))
}

/// A column that an insert brings.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) name: String,
    /// Type as DESCRIBE shows it.
    pub(crate) type_name: String,
    /// Name, type and default for the readers; `None`: the type is not known here.
    pub(crate) spec: Option<ColumnSpec>,
    pub(crate) default_kind: DefaultKind,
    /// Says whether rows have to bring the column, since it would be computed from more than the row.
    pub(crate) has_to_be_given: bool,
}

impl Target {
    /// Notes that the values come in another type, which ClickHouse converts to the column's own.
    pub(crate) fn is_sent_as(&mut self, data_type: &DataType) {
        let (name, default_kind) = (self.name.clone(), self.default_kind);
        self.spec = Some(ColumnSpec { name, data_type: data_type.clone(), default_kind });
    }

    pub(crate) fn has_default(&self) -> bool {
        self.default_kind == DefaultKind::Default
    }
}

/// Writes the query about tables, which the conditions name in both system tables, for [`Row::read`].
pub(super) fn question(named_in_tables: &str, named_in_columns: &str) -> String {
    format!(
        "SELECT t.database, t.name, engine, engine_full, id, views, constraints, partition_key, changed, columns, \
         toUnixTimestamp(now()), dependents FROM (SELECT database, name, engine, engine_full, toString(uuid) AS id, \
         arrayZip(dependencies_database, dependencies_table) AS dependents, \
         if(notEmpty(dependencies_table), cityHash64(dependencies_database, dependencies_table), 0) AS views, \
         {CONSTRAINTS} AS constraints, partition_key, \
         toUnixTimestamp(metadata_modification_time) AS changed FROM system.tables WHERE {named_in_tables}) AS t \
         LEFT JOIN (SELECT database, table, arraySort(groupArray((position, name, type, default_kind, default_expression))) AS \
         columns FROM system.columns WHERE {named_in_columns} GROUP BY database, table) AS c \
         ON c.database = t.database AND c.table = t.name FORMAT JSONCompactEachRow"
    )
}

/// Asks for the same facts about one table with DESCRIBE, for an account that may not see all columns in the
/// system's tables.
pub(super) async fn ask_as(client: &Client, key: &TableKey, asker: &Credentials) -> Result<TableSchema, CallError> {
    let began = Moment::now();
    let quoted = |name: &str| windrow_sql::backquote(name);
    let describe = format!("DESCRIBE TABLE {}.{} FORMAT JSONCompactEachRow", quoted(&key.database), quoted(&key.table));
    let describe = Call::new(asker, &describe).timeout(QUESTION_TIMEOUT);
    let engine = format!(
        "SELECT engine, engine_full, toString(uuid), toString(notEmpty(dependencies_table)), {CONSTRAINTS}, partition_key, \
         arrayZip(dependencies_database, dependencies_table) FROM system.tables WHERE database = {{database:String}} \
         AND name = {{table:String}} FORMAT JSONCompactEachRow"
    );
    let engine = Call::new(asker, &engine).param("param_database", &key.database).param("param_table", &key.table);
    let engine = client.call(engine.timeout(QUESTION_TIMEOUT));
    let defaults = EngineDefaults::ask(client, asker);
    let (columns, engine, defaults) = tokio::try_join!(client.call(describe), engine, defaults)?;
    let said_by = engine.replica;
    let (engine, views) = Engine::read(engine.text(), defaults).unzip();
    let sources = [(key.clone(), views.unwrap_or_default())];
    let behind = views::behind(client, &UserKey::of(asker), &sources, defaults).await?.remove(key).unwrap_or_default();
    let columns: Vec<Column> = columns.text().lines().filter_map(read_column).collect();
    let schema = TableSchema::new(columns, engine, began, None);
    Ok(TableSchema { said_by, ..schema.with_behind(behind.fed, behind.reads_request) })
}

fn read_column(line: &str) -> Option<Column> {
    let fields: Vec<String> = serde_json::from_str(line).ok()?;
    let [name, data_type, default_kind, default_expression, ..] = fields.as_slice() else { return None };
    Some(Column::new(name.clone(), data_type.clone(), default_kind, default_expression))
}

/// A line of the answer to [`question`].
#[derive(Deserialize)]
pub(super) struct Row {
    database: String,
    name: String,
    engine: String,
    engine_full: String,
    uuid: String,
    /// Hash of the names of the views on the table; zero: there is none.
    views: u64,
    /// Definition of the table, if there may be constraints in it; else empty.
    constraints: String,
    partition_key: String,
    /// Time of the table's last change, in seconds since 1970; zero where the database keeps no such time.
    changed: u32,
    /// Position, name, type, kind of default and default expression of each column, sorted by position.
    columns: Vec<(u64, String, String, String, String)>,
    now: u32,
    /// Database and name of each view on the table.
    dependents: Vec<(String, String)>,
}

/// Facts by which a table is recognised as unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) uuid: u128,
    pub(super) views: u64,
    pub(super) changed: u32,
}

/// Seconds after a change within which another one may leave no trace: times of change have whole seconds.
pub(super) const YOUNG_SECONDS: u32 = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mark {
    stamp: Stamp,
    /// Says whether the table may have changed since without a trace.
    pub(super) is_young: bool,
}

impl Mark {
    /// Makes the mark of a table. `None`: the database keeps no time of changes, so it can't be watched.
    pub(super) fn of(stamp: Stamp, now: u32) -> Option<Mark> {
        let is_young = stamp.changed.saturating_add(YOUNG_SECONDS) >= now;
        (stamp.changed > 0).then_some(Mark { stamp, is_young })
    }

    /// Says whether the table is surely still the same.
    pub(super) fn is_as(&self, now: Option<&Stamp>) -> bool {
        !self.is_young && Some(&self.stamp) == now
    }
}

impl Row {
    pub(super) fn read(line: &str) -> Option<Row> {
        serde_json::from_str(line).ok()
    }

    pub(super) fn key(&self) -> TableKey {
        TableKey { database: self.database.clone(), table: self.name.clone() }
    }

    pub(super) fn mark(&self) -> Option<Mark> {
        Mark::of(Stamp { uuid: uuid(&self.uuid)?, views: self.views, changed: self.changed }, self.now)
    }

    pub(super) fn views(&self) -> Vec<TableKey> {
        views::keys(&self.dependents)
    }

    pub(super) fn schema(self, began: Moment, watch: Arc<Standing>, defaults: EngineDefaults) -> Option<TableSchema> {
        let engine = Engine {
            uuid: uuid(&self.uuid)?,
            name: self.engine,
            definition: self.engine_full,
            defaults,
            has_views: self.views != 0,
            constraints: self.constraints,
            partition_key: self.partition_key,
        };
        let columns = self.columns.into_iter();
        let columns =
            columns.map(|(_, name, data_type, kind, expression)| Column::new(name, data_type, &kind, &expression));
        // Where the database keeps no time of changes, only the time that has passed tells.
        let watch = (self.changed > 0).then_some(watch);
        Some(TableSchema::new(columns.collect(), Some(engine), began, watch))
    }
}

pub(super) fn uuid(text: &str) -> Option<u128> {
    u128::from_str_radix(&text.replace('-', ""), 16).ok()
}

impl Column {
    /// Says whether an insert may bring the column.
    pub(super) fn is_written(&self) -> bool {
        matches!(self.default_kind, DefaultKind::None | DefaultKind::Default)
    }

    /// Says whether an insert that names the column may bring it.
    fn may_be_named(&self) -> bool {
        self.is_written() || self.default_kind == DefaultKind::Ephemeral
    }

    pub(super) fn new(name: String, type_name: String, default_kind: &str, default_expression: &str) -> Column {
        let default_kind = match default_kind {
            "" => DefaultKind::None,
            "DEFAULT" => DefaultKind::Default,
            "MATERIALIZED" => DefaultKind::Materialized,
            "EPHEMERAL" => DefaultKind::Ephemeral,
            _ => DefaultKind::Alias,
        };
        let data_type = DataType::parse(&type_name).map_err(|error| error.to_string());
        let plain_default = if default_expression.is_empty() { Some(0) } else { default_expression.parse().ok() };
        let asks_for_rights = asks_for_rights(default_expression);
        let default_expression = default_expression.into();
        Column {
            name,
            data_type,
            type_name,
            default_kind,
            default_expression,
            plain_default,
            asks_for_rights,
            reads_request: false,
        }
    }

    /// Returns the kind of the default as the backend writes it.
    pub(super) fn kind_name(&self) -> &'static str {
        match self.default_kind {
            DefaultKind::None => "",
            DefaultKind::Default => "DEFAULT",
            DefaultKind::Materialized => "MATERIALIZED",
            DefaultKind::Ephemeral => "EPHEMERAL",
            DefaultKind::Alias => "ALIAS",
        }
    }

    fn target(&self) -> Target {
        // What a row leaves out of an EPHEMERAL column is computed, as with a DEFAULT.
        let default_kind = match self.default_kind {
            DefaultKind::Ephemeral => DefaultKind::Default,
            kind => kind,
        };
        let spec =
            |data_type: &DataType| ColumnSpec { name: self.name.clone(), data_type: data_type.clone(), default_kind };
        Target {
            name: self.name.clone(),
            type_name: self.type_name.clone(),
            spec: self.data_type.as_ref().ok().map(spec),
            default_kind,
            has_to_be_given: self.reads_request,
        }
    }
}

impl Column {
    /// Makes a column that the database itself fills where it isn't given, as `default_kind` says.
    pub(crate) fn plain(
        name: String,
        type_name: String,
        data_type: Result<DataType, String>,
        default_kind: DefaultKind,
    ) -> Column {
        Column {
            name,
            type_name,
            data_type,
            default_kind,
            default_expression: "".into(),
            plain_default: None,
            asks_for_rights: false,
            reads_request: false,
        }
    }
}

impl TableSchema {
    /// Makes the schema of a table in a database that is no ClickHouse: the table takes rows as they are, and
    /// hands them on to no other table.
    pub(crate) fn plain(columns: Box<[Column]>, window: Window, began: Moment) -> TableSchema {
        TableSchema {
            standing: Standing::confirmed_at(began),
            watch: None,
            columns,
            gatherable: true,
            async_insert: false,
            window,
            marks: None,
            uuid: 0,
            has_views: false,
            fed: Box::default(),
            keeps_none: false,
            distributed: None,
            has_replicated_engine: false,
            said_by: ReplicaId::FIRST,
            hands_on: false,
            is_replicated: false,
            partition_key: String::new(),
            computes: false,
            asks_for_rights: false,
            reads_request: false,
        }
    }

    fn new(
        mut columns: Vec<Column>,
        engine: Option<Engine>,
        began: Moment,
        watch: Option<Arc<Standing>>,
    ) -> TableSchema {
        functions::find_those_that_read_the_request(&mut columns);
        let computes_columns = columns.iter().any(|column| column.default_kind != DefaultKind::None);
        let has_more = engine.as_ref().is_none_or(|engine| engine.has_views || !engine.constraints.is_empty());
        let reads_request = engine.as_ref().is_some_and(|engine| engine.reads_request(&columns));
        let hands_on = engine.as_ref().is_none_or(Engine::hands_on);
        TableSchema {
            standing: Standing::confirmed_at(began),
            watch,
            computes: computes_columns || has_more,
            asks_for_rights: has_more || hands_on || columns.iter().any(|column| column.asks_for_rights),
            marks: engine.as_ref().and_then(|engine| engine.marks(&columns)),
            reads_request,
            columns: columns.into_boxed_slice(),
            gatherable: engine.as_ref().is_some_and(Engine::is_gatherable),
            async_insert: engine.as_ref().is_some_and(Engine::async_insert),
            window: engine.as_ref().map_or(Window::Never, Engine::window),
            uuid: engine.as_ref().map_or(0, |engine| engine.uuid),
            has_views: engine.as_ref().is_none_or(|engine| engine.has_views),
            fed: Box::default(),
            keeps_none: engine.as_ref().is_some_and(|engine| engine.name == "Null"),
            hands_on,
            distributed: engine.as_ref().and_then(Engine::distributed),
            is_replicated: engine.as_ref().is_some_and(Engine::is_on_all_replicas),
            has_replicated_engine: engine.as_ref().is_some_and(Engine::is_replicated),
            said_by: ReplicaId::FIRST,
            partition_key: engine.map(|engine| engine.partition_key).unwrap_or_default(),
        }
    }

    /// Adds what views do with the table's rows.
    pub(super) fn with_behind(self, fed: Box<[FedTable]>, views_read_request: bool) -> TableSchema {
        TableSchema { fed, reads_request: self.reads_request || views_read_request, ..self }
    }

    /// Says whether both schemas are the same in everything that makes a difference to an insert.
    pub(super) fn is_like(&self, other: &TableSchema) -> bool {
        let own = |it: &TableSchema| {
            let gathering = (it.gatherable, it.async_insert, it.window);
            let computing = (it.computes, it.reads_request, it.asks_for_rights);
            (gathering, it.uuid, it.has_views, it.hands_on, it.is_replicated, computing)
        };
        own(self) == own(other)
            && self.fed == other.fed
            && self.keeps_none == other.keeps_none
            && self.marks == other.marks
            && self.distributed == other.distributed
            && self.partition_key == other.partition_key
            && self.columns == other.columns
    }

    /// Returns the moment at which the last question that confirmed these facts began.
    pub(crate) fn confirmed(&self) -> Moment {
        let watched = self.watch.as_ref().map_or(Moment::default(), |watch| watch.confirmed());
        self.standing.confirmed().max(watched)
    }

    /// Says whether an insert of these columns makes ClickHouse compute something from more than the rows.
    /// The columns that the insert may bring itself are not looked at.
    pub(crate) fn reads_request(&self, targets: &[Target]) -> bool {
        let is_computed = |column: &Column| match column.default_kind {
            DefaultKind::None | DefaultKind::Alias => false,
            DefaultKind::Materialized => true,
            DefaultKind::Default | DefaultKind::Ephemeral => !targets.iter().any(|it| it.name == column.name),
        };
        self.reads_request || self.columns.iter().any(|column| column.reads_request && is_computed(column))
    }

    /// Says whether some column has times without a time zone of its own.
    pub(crate) fn has_local_times(&self) -> bool {
        const TIME: &str = "DateTime";
        let is_local = |rest: &str| {
            let arguments =
                rest.strip_prefix("64").unwrap_or(rest).strip_prefix('(').and_then(|it| it.split(')').next());
            !arguments.is_some_and(|arguments| arguments.contains('\''))
        };
        self.columns.iter().any(|column| column.type_name.split(TIME).skip(1).any(is_local))
    }

    pub(crate) fn is_partitioned(&self) -> bool {
        !matches!(self.partition_key.as_str(), "" | "tuple()")
    }

    /// Reads the partition key. `None`: there is none, or it isn't understood.
    pub(crate) fn partition_key(&self, server_timezone: &str) -> Option<PartitionKey> {
        PartitionKey::parse(&self.partition_key, server_timezone)
    }

    pub(crate) fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Returns the columns that an insert may bring.
    pub(crate) fn targets(&self) -> impl Iterator<Item = Target> + '_ {
        self.columns.iter().filter(|column| column.is_written()).map(Column::target)
    }

    /// Returns the columns that an insert may bring, with their types as the backend writes them.
    pub(crate) fn written_columns(&self) -> Vec<(String, String)> {
        let written = self.columns.iter().filter(|column| column.is_written());
        written.map(|column| (column.name.clone(), column.type_name.clone())).collect()
    }

    pub(crate) fn has_column(&self, name: &str) -> bool {
        self.columns.iter().any(|column| column.name == name)
    }

    /// Describes the first of these columns, or of all, whose type is not known here, and says why.
    pub(crate) fn unknown_type(&self, named: Option<&[String]>) -> Option<String> {
        let is_named = |column: &&Column| named.is_none_or(|names| names.contains(&column.name));
        self.columns.iter().filter(is_named).find_map(|column| {
            let why = column.data_type.as_ref().err()?;
            Some(format!("The column {} of type {} ({why})", column.name, column.type_name))
        })
    }

    /// Makes a schema of nothing but an answer to DESCRIBE.
    pub(crate) fn described(answer: &str) -> TableSchema {
        TableSchema::new(answer.lines().filter_map(read_column).collect(), None, Moment::now(), None)
    }

    pub(crate) fn type_name(&self, column: &str) -> Option<&str> {
        self.columns.iter().find(|known| known.name == column).map(|known| known.type_name.as_str())
    }

    /// Describes the columns with their defaults, in the text that ClickHouse sends to native clients.
    pub(crate) fn description(&self) -> String {
        let mut text = format!("columns format version: 1\n{} columns:\n", self.columns.len());
        for column in &self.columns {
            text.push_str(&windrow_sql::backquote(&column.name));
            text.push(' ');
            push_escaped(&mut text, &column.type_name);
            let kind = column.kind_name();
            // What a DuckDB fills in is its own to know.
            if !(kind.is_empty() || column.default_expression.is_empty()) {
                text.extend(["\t", kind, "\t"]);
                push_escaped(&mut text, &column.default_expression);
            }
            text.push('\n');
        }
        text
    }

    /// Returns the columns that an insert brings: those that it names, with or without the table's name
    /// before them, or all that can be written but for `except`.
    pub(crate) fn target_columns(
        &self,
        table: &str,
        named: Option<&[String]>,
        except: &[String],
    ) -> Result<Vec<Target>, NotAdmitted> {
        let (writable, namable) = (|column: &&Column| column.is_written(), |column: &&Column| column.may_be_named());
        let targets: Vec<&Column> = match named {
            None => self.columns.iter().filter(writable).filter(|column| !except.contains(&column.name)).collect(),
            Some(names) => {
                let known = |name: &str| self.columns.iter().find(|column| column.name == name);
                let behind_table = |name: &'_ String| known(name.strip_prefix(table)?.strip_prefix('.')?);
                let find = |name: &String| known(name).or_else(|| behind_table(name)).filter(namable);
                // A name that isn't there is the backend's to refuse; the other kinds of column have rules of their
                // own.
                names.iter().map(find).collect::<Option<_>>().ok_or(NotAdmitted::Forward(ForwardReason::Columns))?
            }
        };
        let repeats =
            targets.iter().enumerate().any(|(at, target)| targets[..at].iter().any(|other| other.name == target.name));
        match targets.is_empty() || repeats {
            true => Err(NotAdmitted::Forward(ForwardReason::Columns)),
            false => Ok(targets.into_iter().map(Column::target).collect()),
        }
    }
}

/// Appends the text, escaped as in tab-separated text; quotes are escaped as well.
fn push_escaped(out: &mut String, text: &str) {
    for char in text.chars() {
        match char {
            '\\' => out.push_str("\\\\"),
            '\'' => out.push_str("\\'"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\0' => out.push_str("\\0"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            other => out.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn target_columns_are_those_that_can_be_written() {
        let line = |name: &str, kind: &str, default: &str| format!("[{name:?}, {kind:?}, {default:?}, \"\", \"\"]");
        let lines = [
            line("a", "UInt64", ""),
            line("s", "String", "DEFAULT"),
            line("m", "UInt64", "MATERIALIZED"),
            line("e", "String", "EPHEMERAL"),
        ];
        let columns = lines.iter().filter_map(|line| read_column(line)).collect();
        let schema = TableSchema::new(columns, None, Moment::default(), None);
        let names_but = |named: Option<&[String]>, except: &[String]| {
            let specs = schema.target_columns("t", named, except).ok()?;
            Some(specs.into_iter().map(|spec| spec.name).collect::<Vec<_>>().join(","))
        };
        let names = |named: Option<&[String]>| names_but(named, &[]);
        assert_eq!(names_but(None, &["a".into(), "m".into(), "missing".into()]).as_deref(), Some("s"));
        assert_eq!(names_but(None, &["a".into(), "s".into()]), None, "nothing is left");
        assert_eq!(names(Some(&["t.s".into(), "a".into()])).as_deref(), Some("s,a"));
        assert_eq!(names(Some(&["u.s".into()])), None, "another table");
        assert_eq!(names(None).as_deref(), Some("a,s"));
        assert_eq!(names(Some(&["s".into(), "a".into()])).as_deref(), Some("s,a"));
        assert_eq!(names(Some(&["e".into(), "a".into()])).as_deref(), Some("e,a"));
        for refused in ["m", "missing"] {
            assert_eq!(names(Some(&[refused.into()])), None, "{refused}");
        }
        assert_eq!(names(Some(&["a".into(), "a".into()])), None);
    }
}
