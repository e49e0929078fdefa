use std::time::Instant;

use windrow_block::{ColumnSpec, DataType, DefaultKind, PartitionKey, TypeError};
use windrow_client::{Call, CallError, Client, Credentials};

use super::{NotAdmitted, QUESTION_TIMEOUT};

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct TableKey {
    pub(crate) database: String,
    pub(crate) table: String,
}

/// A table, as far as inserts are concerned.
#[derive(Debug)]
pub(crate) struct TableSchema {
    pub(crate) asked_at: Instant,
    columns: Vec<Column>,
    /// Whether its engine takes a gathered batch as it would take the inserts one by one.
    pub(crate) gatherable: bool,
    /// Whether it remembers what was inserted, so that a repeat is dropped.
    pub(crate) deduplicates: bool,
    pub(crate) has_views: bool,
    /// Whether its rows go on to other tables.
    pub(crate) hands_on: bool,
    /// As `system.tables` shows it; empty if there is none.
    partition_key: String,
    /// Whether something is computed from the rows as they are written: defaults, constraints, views.
    pub(crate) computes: bool,
}

#[derive(Debug)]
struct Column {
    name: String,
    type_name: String,
    data_type: Result<DataType, TypeError>,
    default_kind: DefaultKind,
}

/// A column that an insert writes.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) name: String,
    /// As DESCRIBE has it.
    pub(crate) type_name: String,
    /// Unless it is of a type that is not known here.
    pub(crate) spec: Option<ColumnSpec>,
    pub(crate) default_kind: DefaultKind,
}

impl Target {
    pub(crate) fn has_default(&self) -> bool {
        self.default_kind == DefaultKind::Default
    }
}

pub(crate) async fn ask(client: &Client, key: TableKey, asker: Credentials) -> Result<TableSchema, NotAdmitted> {
    let own = &client.endpoint().credentials;
    match ask_as(client, &key, own).await {
        Err(CallError::Exception(_)) if *own != asker => Ok(ask_as(client, &key, &asker).await?),
        result => Ok(result?),
    }
}

async fn ask_as(client: &Client, key: &TableKey, asker: &Credentials) -> Result<TableSchema, CallError> {
    let asked_at = Instant::now();
    let quoted = |name: &str| windrow_statement::backquote(name);
    let describe = format!("DESCRIBE TABLE {}.{} FORMAT JSONCompactEachRow", quoted(&key.database), quoted(&key.table));
    let describe = Call::new(asker, &describe).timeout(QUESTION_TIMEOUT);
    let engine = "SELECT engine, engine_full, (SELECT value FROM system.merge_tree_settings WHERE name = \
                  'non_replicated_deduplication_window'), toString(notEmpty(dependencies_table)), \
                  toString(position(create_table_query, ' CONSTRAINT ') > 0), partition_key FROM system.tables WHERE database = {database:String} AND \
                  name = {table:String} FORMAT JSONCompactEachRow";
    let engine = Call::new(asker, engine).param("param_database", &key.database).param("param_table", &key.table);
    let (columns, engine) = tokio::try_join!(client.call(describe), client.call(engine.timeout(QUESTION_TIMEOUT)))?;
    let engine = Engine::read(engine.text());
    let columns: Vec<Column> = columns.text().lines().filter_map(read_column).collect();
    let has_expressions = columns.iter().any(|column| column.default_kind != DefaultKind::None);
    Ok(TableSchema {
        asked_at,
        columns,
        computes: has_expressions || engine.as_ref().is_none_or(|engine| engine.has_views || engine.has_constraints),
        gatherable: engine.as_ref().is_some_and(Engine::is_gatherable),
        deduplicates: engine.as_ref().is_none_or(Engine::deduplicates),
        has_views: engine.as_ref().is_none_or(|engine| engine.has_views),
        hands_on: engine.as_ref().is_none_or(Engine::hands_on),
        partition_key: engine.map(|engine| engine.partition_key).unwrap_or_default(),
    })
}

fn read_column(line: &str) -> Option<Column> {
    let fields: Vec<String> = serde_json::from_str(line).ok()?;
    let [name, data_type, default_kind, ..] = fields.as_slice() else { return None };
    let default_kind = match default_kind.as_str() {
        "" => DefaultKind::None,
        "DEFAULT" => DefaultKind::Default,
        "MATERIALIZED" => DefaultKind::Materialized,
        "EPHEMERAL" => DefaultKind::Ephemeral,
        _ => DefaultKind::Alias,
    };
    Some(Column {
        name: name.clone(),
        type_name: data_type.clone(),
        data_type: DataType::parse(data_type),
        default_kind,
    })
}

struct Engine {
    name: String,
    /// The engine with its parameters and settings, as in the table's definition.
    definition: String,
    default_window: String,
    has_views: bool,
    has_constraints: bool,
    partition_key: String,
}

impl Engine {
    fn read(text: &str) -> Option<Engine> {
        let fields: [String; 6] = serde_json::from_str(text.lines().next()?).ok()?;
        let [name, definition, default_window, has_views, has_constraints, partition_key] = fields;
        let (has_views, has_constraints) = (has_views != "0", has_constraints != "0");
        Some(Engine { name, definition, default_window, has_views, has_constraints, partition_key })
    }

    fn is_gatherable(&self) -> bool {
        const OTHERS: [&str; 7] = ["Null", "Memory", "Log", "TinyLog", "StripeLog", "Distributed", "Buffer"];
        self.name.ends_with("MergeTree") || OTHERS.contains(&self.name.as_str())
    }

    fn hands_on(&self) -> bool {
        matches!(self.name.as_str(), "Distributed" | "Buffer")
    }

    fn deduplicates(&self) -> bool {
        let has_window = |name: &str| self.setting(name).is_none_or(|value| value.trim() != "0");
        if self.name.starts_with("Replicated") || self.name.starts_with("Shared") {
            return has_window("replicated_deduplication_window");
        }
        match self.setting("non_replicated_deduplication_window") {
            Some(window) => window.trim() != "0",
            None => self.name.ends_with("MergeTree") && self.default_window != "0",
        }
    }

    fn setting(&self, name: &str) -> Option<&str> {
        let settings = &self.definition[self.definition.find(" SETTINGS ")?..];
        let mut pairs = settings.trim_start_matches(" SETTINGS ").split(',').filter_map(|pair| pair.split_once('='));
        pairs.find(|(known, _)| known.trim() == name).map(|(_, value)| value)
    }
}

impl Column {
    fn target(&self) -> Target {
        let spec = |data_type: &DataType| ColumnSpec {
            name: self.name.clone(),
            data_type: data_type.clone(),
            default_kind: self.default_kind,
        };
        Target {
            name: self.name.clone(),
            type_name: self.type_name.clone(),
            spec: self.data_type.as_ref().ok().map(spec),
            default_kind: self.default_kind,
        }
    }
}

impl TableSchema {
    pub(crate) fn is_partitioned(&self) -> bool {
        !matches!(self.partition_key.as_str(), "" | "tuple()")
    }

    /// `None`: there is none, or it isn't understood.
    pub(crate) fn partition_key(&self, server_timezone: &str) -> Option<PartitionKey> {
        PartitionKey::parse(&self.partition_key, server_timezone)
    }

    /// The columns that an insert writes: those it names, or all that can be written.
    pub(crate) fn target_columns(&self, named: Option<&[String]>) -> Result<Vec<Target>, NotAdmitted> {
        let writable = |column: &&Column| matches!(column.default_kind, DefaultKind::None | DefaultKind::Default);
        let targets: Vec<&Column> = match named {
            None => self.columns.iter().filter(writable).collect(),
            Some(names) => {
                let find = |name: &String| self.columns.iter().find(|column| column.name == *name).filter(writable);
                // A name that isn't there is the backend's to refuse; the other kinds of column have rules of their own.
                names.iter().map(find).collect::<Option<_>>().ok_or(NotAdmitted::Forward("columns"))?
            }
        };
        let repeats =
            targets.iter().enumerate().any(|(at, target)| targets[..at].iter().any(|other| other.name == target.name));
        match targets.is_empty() || repeats {
            true => Err(NotAdmitted::Forward("columns")),
            false => Ok(targets.into_iter().map(Column::target).collect()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn engine(name: &str, definition: &str, default_window: &str) -> Engine {
        Engine {
            name: name.into(),
            definition: definition.into(),
            default_window: default_window.into(),
            has_views: false,
            has_constraints: false,
            partition_key: String::new(),
        }
    }

    #[test]
    fn windows_are_found_where_they_are_set() {
        let plain = "MergeTree ORDER BY a SETTINGS index_granularity = 8192";
        assert!(!engine("MergeTree", plain, "0").deduplicates());
        assert!(engine("MergeTree", plain, "100").deduplicates());
        let set = "MergeTree ORDER BY a SETTINGS non_replicated_deduplication_window = 5, index_granularity = 8192";
        assert!(engine("MergeTree", set, "0").deduplicates());
        let off = "MergeTree ORDER BY a SETTINGS non_replicated_deduplication_window = 0";
        assert!(!engine("MergeTree", off, "100").deduplicates());
        assert!(engine("ReplicatedMergeTree", "ReplicatedMergeTree('/a', 'b') ORDER BY a", "0").deduplicates());
        let off = "ReplicatedMergeTree('/a', 'b') ORDER BY a SETTINGS replicated_deduplication_window = 0";
        assert!(!engine("ReplicatedMergeTree", off, "0").deduplicates());
        assert!(!engine("Null", "Null", "100").deduplicates());
    }

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
        let schema = TableSchema {
            asked_at: Instant::now(),
            columns,
            gatherable: true,
            deduplicates: false,
            has_views: false,
            hands_on: false,
            partition_key: String::new(),
            computes: false,
        };
        let names = |named: Option<&[String]>| {
            let specs = schema.target_columns(named).ok()?;
            Some(specs.into_iter().map(|spec| spec.name).collect::<Vec<_>>().join(","))
        };
        assert_eq!(names(None).as_deref(), Some("a,s"));
        assert_eq!(names(Some(&["s".into(), "a".into()])).as_deref(), Some("s,a"));
        for refused in ["m", "e", "missing"] {
            assert_eq!(names(Some(&[refused.into()])), None, "{refused}");
        }
        assert_eq!(names(Some(&["a".into(), "a".into()])), None);
    }
}
