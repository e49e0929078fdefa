//! The statements of an append into ClickHouse.

use windrow_sql::{backquote, quote_string};

use super::method::Method;
use super::table::Table;
use crate::id::AppendId;
use crate::request::OpenRequest;

/// A table by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Name {
    pub(super) database: String,
    pub(super) table: String,
}

impl Name {
    pub(super) fn of(opening: &OpenRequest) -> Name {
        Name { database: opening.database.clone(), table: opening.table.clone() }
    }

    pub(super) fn quoted(&self) -> String {
        format!("{}.{}", backquote(&self.database), backquote(&self.table))
    }

    /// Returns the staging table of an append, beside its target. A renamed staging table has this name with
    /// something behind it.
    pub(super) fn staging(&self, id: AppendId) -> Name {
        Name { database: self.database.clone(), table: format!("__windrow_append_{}", id.digits()) }
    }
}

/// The settings that a staging table has of its own. No merges, and none for rows whose TTL is over: rows in
/// a part stay in it, until it has moved. A number for each part, by which it is recognised in the other
/// table, and by which parts of the same rows differ. A window, so that an INSERT can be sent again.
const STAGING_SETTINGS: &str = "assign_part_uuids = 1, non_replicated_deduplication_window = 1000000, \
    max_bytes_to_merge_at_max_space_in_pool = 1, max_bytes_to_merge_at_min_space_in_pool = 1, \
    max_number_of_merges_with_ttl_in_pool = 0, \
    parts_to_delay_insert = 1000000, parts_to_throw_insert = 1000000, inactive_parts_to_delay_insert = 0, \
    inactive_parts_to_throw_insert = 0";

/// Returns the statements that make a staging table.
pub(super) fn create_staging(staging: &Name, target: &Name, table: &Table) -> Vec<String> {
    let name = staging.quoted();
    let adjust = || format!("ALTER TABLE {name} MODIFY SETTING {STAGING_SETTINGS}");
    let like = format!("CREATE TABLE {name} AS {}", target.quoted());
    match (table.method(), table.engine().unreplicated()) {
        (Method::Parts, _) => vec![like, adjust()],
        (Method::PartsByPartition, Some(engine)) => vec![format!("{like} ENGINE = {engine}"), adjust()],
        _ => vec![format!("{like} ENGINE = MergeTree ORDER BY tuple() SETTINGS {STAGING_SETTINGS}")],
    }
}

pub(super) fn insert_blocks(staging: &Name, columns: &[&str]) -> String {
    format!("INSERT INTO {} ({}) FORMAT Native", staging.quoted(), list(columns))
}

/// Returns a statement that is refused to an account that may see nothing of such a table, whether there is
/// one or not.
pub(super) fn exists(table: &Name) -> String {
    format!("EXISTS TABLE {}", table.quoted())
}

/// Returns an INSERT of no rows, which tells whether its account may insert into the table.
pub(super) fn insert_nothing(target: &Name, columns: &[&str]) -> String {
    format!("INSERT INTO {} ({}) FORMAT Native", target.quoted(), list(columns))
}

pub(super) fn move_partition(staging: &Name, partition: &str, target: &Name) -> String {
    let partition = quote_string(partition);
    format!("ALTER TABLE {} MOVE PARTITION ID {partition} TO TABLE {}", staging.quoted(), target.quoted())
}

pub(super) fn attach_all(staging: &Name, target: &Name) -> String {
    format!("ALTER TABLE {} ATTACH PARTITION ALL FROM {}", target.quoted(), staging.quoted())
}

pub(super) fn attach_partition(staging: &Name, partition: &str, target: &Name) -> String {
    let partition = quote_string(partition);
    format!("ALTER TABLE {} ATTACH PARTITION ID {partition} FROM {}", target.quoted(), staging.quoted())
}

/// Returns the INSERT of the staging table's rows. It is refused if the target's types are others by now than
/// those of its staging table: ClickHouse would cast the rows.
pub(super) fn insert_rows<S: AsRef<str>>(staging: &Name, columns: &[S], target: &Name) -> String {
    let names: Vec<String> = columns.iter().map(|column| quote_string(column.as_ref())).collect();
    let columns = list(columns);
    let others = format!(
        "SELECT count() FROM (SELECT name FROM system.columns WHERE database = {} AND table IN ({}, {}) AND name IN ({}) \
         GROUP BY name HAVING uniqExact(type) > 1)",
        quote_string(&target.database),
        quote_string(&target.table),
        quote_string(&staging.table),
        names.join(", ")
    );
    format!(
        "INSERT INTO {} ({columns}) SELECT {columns} FROM {} WHERE NOT throwIf(({others}) > 0, {})",
        target.quoted(),
        staging.quoted(),
        quote_string("the columns of the table have other types than when the append was opened")
    )
}

pub(super) fn drop_part(staging: &Name, part: &str) -> String {
    format!("ALTER TABLE {} DROP PART {}", staging.quoted(), quote_string(part))
}

pub(super) fn rename(from: &Name, to: &Name) -> String {
    format!("RENAME TABLE {} TO {}", from.quoted(), to.quoted())
}

pub(super) fn drop_table(name: &Name) -> String {
    format!("DROP TABLE IF EXISTS {} SYNC", name.quoted())
}

fn list<S: AsRef<str>>(columns: &[S]) -> String {
    columns.iter().map(|column| backquote(column.as_ref())).collect::<Vec<_>>().join(", ")
}
