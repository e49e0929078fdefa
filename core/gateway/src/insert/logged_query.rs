//! An insert's statement as `system.asynchronous_insert_log` shows it: as ClickHouse writes it anew, with the database
//! and all columns named, however the client wrote it.

use windrow_sql::{backquote_if_need, quote_string, InsertStatement};

use super::dedup_settings::is_token;
use super::role::{role, Role};
use crate::admission::{TableKey, Target};

/// Bound of a logged query: it stands in buffers, in logs, and with each of thousands of statements.
const MAX_BYTES: usize = 4096;

/// Writes the query as the log shows it. `format` may be another than the statement's, if a setting says so.
pub(crate) fn logged_query(key: &TableKey, targets: &[Target], statement: &InsertStatement, format: &str) -> String {
    let columns: Vec<String> = targets.iter().map(|target| backquote_if_need(&target.name)).collect();
    let (database, table) = (backquote_if_need(&key.database), backquote_if_need(&key.table));
    let mut query = format!("INSERT INTO {database}.{table} ({})", columns.join(", "));
    let settings = statement.settings.iter().filter(|(name, _)| !is_of_one_insert(name));
    let settings: Vec<String> = settings.map(|(name, value)| format!("{name} = {}", literal(value))).collect();
    if !settings.is_empty() {
        query.push_str(" SETTINGS ");
        query.push_str(&settings.join(", "));
    }
    query.push_str(" FORMAT ");
    query.push_str(format);
    let end = (0..=MAX_BYTES.min(query.len())).rev().find(|at| query.is_char_boundary(*at));
    query.truncate(end.unwrap_or(0));
    query
}

/// Says whether no other insert has the same setting. The query leaves it out, since it is shown for all
/// inserts that are the same otherwise.
pub(crate) fn is_of_one_insert(name: &str) -> bool {
    role(name) == Role::Private || is_token(name)
}

fn literal(value: &str) -> String {
    let digits = value.strip_prefix('-').unwrap_or(value);
    match digits.starts_with(|c: char| c.is_ascii_digit()) && digits.parse::<f64>().is_ok() {
        true => value.to_owned(),
        false => quote_string(value),
    }
}
