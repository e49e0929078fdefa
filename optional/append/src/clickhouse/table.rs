//! The target of an append: its engine and columns, and what may be written to it.

use std::sync::OnceLock;

use windrow_clickhouse::{CallError, ErrorCode};
use windrow_columns::{ColumnSpec, DataType, DefaultKind, ReadPlan, ReadSettings};

use super::method::{Engine, Method};
use super::server::Session;
use super::statements::Name;
use crate::answer::Column;
use crate::error::AppendError;
use crate::request::OpenRequest;

pub(crate) struct Table {
    pub(super) name: Name,
    /// The UUID that names the table through renames; zeros where its database gives tables none.
    pub(super) uuid: String,
    engine: Engine,
    pub(super) is_partitioned: bool,
    /// The time for which the table shows parts that were merged.
    pub(super) shows_merged_ms: u64,
    /// True if a repeated INSERT is recognised by its token.
    pub(super) deduplicates: bool,
    columns: Vec<Written>,
    /// The columns that hold values that can be inserted.
    pub(super) stored: Vec<String>,
    pub(super) plan: ReadPlan,
    pub(super) server_timezone: String,
    /// Positions of the columns that the first batch had.
    pub(super) bound: OnceLock<Vec<usize>>,
}

/// A column that batches may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Written {
    pub(super) name: String,
    /// The type as DESCRIBE has it.
    pub(super) type_name: String,
    /// The type that is sent: a text for types that ClickHouse alone can read.
    pub(super) sent: DataType,
    kind: DefaultKind,
}

#[derive(Debug, PartialEq, Eq)]
struct Facts {
    engine: Engine,
    uuid: String,
    is_partitioned: bool,
    /// The server's default window, for tables that say nothing of it; so is `old_parts_lifetime_s`.
    window: u64,
    old_parts_lifetime_s: u64,
    timezone: String,
}

const FACTS: &str = "SELECT engine, engine_full, toString(uuid), toString(notEmpty(dependencies_table)), \
    toString(notEmpty(partition_key)), (SELECT value FROM system.merge_tree_settings WHERE name = \
    'non_replicated_deduplication_window'), (SELECT value FROM system.merge_tree_settings WHERE name = \
    'old_parts_lifetime'), timezone() FROM system.tables WHERE database = {database:String} AND \
    name = {table:String} FORMAT JSONCompactEachRow";

/// Asks ClickHouse for the table.
pub(super) async fn ask(session: &Session, opening: &OpenRequest) -> Result<Table, TableError> {
    let name = Name::of(opening);
    let parameters = [("database", name.database.as_str()), ("table", name.table.as_str())];
    let (described, facts) = tokio::try_join!(describe(session, &name), session.ask(FACTS, &parameters))?;
    let facts = Facts::read(&facts).ok_or_else(|| unknown(&name))?;
    Ok(Table::new(name, facts, described, opening.columns.as_deref())?)
}

async fn describe(session: &Session, name: &Name) -> Result<Vec<Written>, CallError> {
    let statement = format!("DESCRIBE TABLE {} FORMAT JSONCompactEachRow", name.quoted());
    Ok(session.ask(&statement, &[]).await?.lines().filter_map(read_column).collect())
}

/// Finds the first column whose type in the staging table is another than the one that batches are read for. The
/// target may have been altered between the look at it and the making of its staging table: ClickHouse would
/// cast the rows then, and lose what the new type can't hold.
pub(super) async fn altered(
    session: &Session,
    staging: &Name,
    table: &Table,
) -> Result<Option<AppendError>, CallError> {
    let now = describe(session, staging).await?;
    Ok(table.columns.iter().find_map(|then| {
        let target = table.name.quoted();
        let (name, type_name) = (&then.name, &then.type_name);
        let text = match now.iter().find(|column| column.name == *name) {
            Some(now) if is_same_type(type_name, &now.type_name) => return None,
            Some(now) => {
                let now = &now.type_name;
                format!("Column {name} of {target} was changed while it was appended to: {type_name} then, {now} now")
            }
            None => format!("Column {name} of {target} was dropped while it was appended to"),
        };
        Some(AppendError::new(ErrorCode::TYPE_MISMATCH, &text))
    }))
}

/// Says whether two texts name one type. The two may have been asked for by different accounts, which may have types
/// printed with or without line breaks (`print_pretty_type_names`).
fn is_same_type(one: &str, other: &str) -> bool {
    let without_spaces = |text: &str| text.split_ascii_whitespace().collect::<String>();
    one == other
        || match (DataType::parse(one), DataType::parse(other)) {
            (Ok(one), Ok(other)) => one == other,
            (Err(_), Err(_)) => without_spaces(one) == without_spaces(other),
            _ => false,
        }
}

/// The reason why there is no table.
#[derive(Debug)]
pub(super) enum TableError {
    Call(CallError),
    Unfit(AppendError),
}

impl From<CallError> for TableError {
    fn from(error: CallError) -> TableError {
        TableError::Call(error)
    }
}

impl From<AppendError> for TableError {
    fn from(error: AppendError) -> TableError {
        TableError::Unfit(error)
    }
}

fn unknown(name: &Name) -> AppendError {
    AppendError::new(ErrorCode::UNKNOWN_TABLE, &format!("Table {} does not exist", name.quoted()))
}

impl Facts {
    fn read(text: &str) -> Option<Facts> {
        let [engine, definition, uuid, has_views, is_partitioned, window, lifetime, timezone]: [Option<String>; 8] =
            serde_json::from_str(text.lines().next()?).ok()?;
        Some(Facts {
            engine: Engine { name: engine?, definition: definition?, has_views: has_views? != "0" },
            uuid: uuid?,
            is_partitioned: is_partitioned? != "0",
            window: window.and_then(|window| window.parse().ok()).unwrap_or(0),
            old_parts_lifetime_s: lifetime.and_then(|seconds| seconds.parse().ok()).unwrap_or(0),
            timezone: timezone?,
        })
    }
}

fn read_column(line: &str) -> Option<Written> {
    let fields: Vec<String> = serde_json::from_str(line).ok()?;
    let [name, type_name, default_kind, ..] = fields.as_slice() else { return None };
    let kind = match default_kind.as_str() {
        "" => DefaultKind::None,
        "DEFAULT" => DefaultKind::Default,
        "MATERIALIZED" => DefaultKind::Materialized,
        "EPHEMERAL" => DefaultKind::Ephemeral,
        _ => DefaultKind::Alias,
    };
    let sent = DataType::parse(type_name).unwrap_or(DataType::String);
    Some(Written { name: name.clone(), type_name: type_name.clone(), sent, kind })
}

impl Table {
    fn new(name: Name, facts: Facts, described: Vec<Written>, wanted: Option<&[String]>) -> Result<Table, AppendError> {
        let is_stored = |column: &&Written| matches!(column.kind, DefaultKind::None | DefaultKind::Default);
        let stored = described.iter().filter(is_stored).map(|column| column.name.clone()).collect();
        let columns = match wanted {
            Some(wanted) => {
                wanted.iter().map(|column| choose(column, &described, &name)).collect::<Result<Vec<_>, _>>()?
            }
            None => described.into_iter().filter(Written::is_writable).collect(),
        };
        if let Some(twice) = columns.iter().enumerate().find(|(at, column)| columns[..*at].contains(column)) {
            return Err(AppendError::new(
                ErrorCode::DUPLICATE_COLUMN,
                &format!("Column {} specified more than once", twice.1.name),
            ));
        }
        let Facts { engine, uuid, is_partitioned, window, old_parts_lifetime_s, timezone } = facts;
        let number =
            |setting: &str, default: u64| engine.setting(setting).and_then(|text| text.parse().ok()).unwrap_or(default);
        let window = number("non_replicated_deduplication_window", window);
        let shows_merged_ms = number("old_parts_lifetime", old_parts_lifetime_s).saturating_mul(1000);
        let deduplicates = engine.has_parts() && (window > 0 || engine.name.starts_with("Replicated"));
        let plan = plan(columns.iter(), &timezone, false);
        let bound = OnceLock::new();
        Ok(Table {
            name,
            uuid,
            engine,
            is_partitioned,
            shows_merged_ms,
            deduplicates,
            columns,
            stored,
            plan,
            server_timezone: timezone,
            bound,
        })
    }

    pub(super) fn engine(&self) -> &Engine {
        &self.engine
    }

    pub(super) fn method(&self) -> Method {
        self.engine.method()
    }

    pub(super) fn columns(&self) -> &[Written] {
        &self.columns
    }

    /// Returns the columns that all batches have.
    pub(super) fn written(&self) -> Vec<&Written> {
        let bound = self.bound.get().map_or(&[][..], Vec::as_slice);
        bound.iter().filter_map(|&at| self.columns.get(at)).collect()
    }

    pub(super) fn answer(&self) -> Vec<Column> {
        let column = |column: &Written| Column { name: column.name.clone(), data_type: column.type_name.clone() };
        self.columns.iter().map(column).collect()
    }
}

#[cfg(feature = "fuzzing")]
impl Table {
    /// Makes a table of these columns, as DESCRIBE tells of them.
    pub(super) fn described(columns: &str) -> Option<Table> {
        let facts = Facts::read(r#"["MergeTree","MergeTree","","0","0","0","0","UTC"]"#)?;
        let name = Name { database: "d".to_owned(), table: "t".to_owned() };
        Table::new(name, facts, columns.lines().filter_map(read_column).collect(), None).ok()
    }
}

/// Makes the plan for payloads of these columns: nothing is converted with loss, NULL is no wish for a default.
pub(super) fn plan<'w>(columns: impl Iterator<Item = &'w Written>, timezone: &str, skips_others: bool) -> ReadPlan {
    let mut settings = ReadSettings::default();
    settings.set("input_format_null_as_default", "0");
    settings.set("input_format_skip_unknown_fields", if skips_others { "1" } else { "0" });
    settings.set_server_timezone(timezone);
    settings.keep_exact();
    ReadPlan::new(columns.map(Written::spec).collect(), settings)
}

impl Written {
    fn is_writable(&self) -> bool {
        !matches!(self.kind, DefaultKind::Materialized | DefaultKind::Alias)
    }

    /// Returns the column for the reader. Values that a batch leaves out are left to ClickHouse, whatever the
    /// column's kind, and not filled in here.
    fn spec(&self) -> ColumnSpec {
        let (name, data_type) = (self.name.clone(), self.sent.clone());
        ColumnSpec { name, data_type, default_kind: DefaultKind::Default }
    }
}

fn choose(wanted: &str, described: &[Written], table: &Name) -> Result<Written, AppendError> {
    match described.iter().find(|column| column.name == wanted) {
        Some(column) if column.is_writable() => Ok(column.clone()),
        Some(_) => Err(AppendError::new(
            ErrorCode::ILLEGAL_COLUMN,
            &format!("Cannot insert column {wanted}, because it is MATERIALIZED or an ALIAS"),
        )),
        None => {
            let text = format!("No such column {wanted} in table {}", table.quoted());
            Err(AppendError::new(ErrorCode::NO_SUCH_COLUMN_IN_TABLE, &text))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_is_the_same_however_it_is_printed() {
        for (one, other, same) in [
            ("Tuple(a Int8, b String)", "Tuple(\n    a Int8,\n    b String)", true),
            ("JSON(max_dynamic_paths=8, a.b UInt8)", "JSON(\n    max_dynamic_paths=8,\n    a.b UInt8)", true),
            ("AggregateFunction(sum, Tuple(a Int8))", "AggregateFunction(sum, Tuple(\n    a Int8))", true),
            ("Int64", "Int16", false),
            ("DateTime64(3)", "DateTime64(6)", false),
            ("Enum8('a b' = 1)", "Enum8('ab' = 1)", false),
            ("DateTime('Europe/Berlin')", "DateTime('UTC')", false),
            ("AggregateFunction(sum, Int8)", "AggregateFunction(sum, Int16)", false),
            ("String", "JSON", false),
        ] {
            assert_eq!(is_same_type(one, other), same, "{one}, {other}");
        }
    }
}
