//! Tables of PostgreSQL, as its catalogue has them.

use windrow_clickhouse::Exception;
use windrow_duckdb::TableRef;
use windrow_sql::Dialect;

use crate::connection::Connection;
use crate::errors;
use crate::results::texts;
use crate::table::{Described, Table};
use crate::types;

/// The query for the columns of a table. Each row has a column's name, its type, NOT NULL, whether it has a
/// default, whether it is computed, and an enum's names one after the other in DuckDB's spelling.
const COLUMNS: &str = "\
    SELECT a.attname::text, format_type(a.atttypid, a.atttypmod), a.attnotnull::text, \
    (a.atthasdef OR a.attidentity <> '')::text, (a.attgenerated <> '' OR a.attidentity = 'a')::text, \
    (SELECT string_agg('''' || replace(e.enumlabel, '''', '''''') || '''', ', ' ORDER BY e.enumsortorder) FROM pg_enum e \
    WHERE e.enumtypid = a.atttypid) \
    FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid \
    WHERE a.attrelid = to_regclass({table}) AND a.attnum > 0 AND NOT a.attisdropped \
    AND c.relkind IN ('r', 'p', 'v', 'm', 'f') ORDER BY a.attnum";

pub(super) fn describe(connection: &mut Connection, name: &TableRef) -> Result<Option<Table>, Exception> {
    let regclass = Dialect::DuckDb.text(&connection.system().table(name));
    let rows = connection.rows(&COLUMNS.replace("{table}", &regclass))?;
    let rows = texts(&rows).map_err(|error| errors::of_arrow(&error, connection.version()))?;
    if rows.is_empty() {
        return Ok(None);
    }
    let described = rows.iter().filter_map(|row| column(row)).collect();
    let shape = connection.table_schema(name)?;
    Ok(Some(Table::new(name, described, Some(shape))))
}

fn column(row: &[Option<String>]) -> Option<Described> {
    let [Some(name), Some(own_type), Some(not_null), Some(has_default), Some(generated), names] = row else {
        return None;
    };
    let is = |text: &String| text == "true";
    let kind = types::of_postgresql(own_type, names.as_deref());
    Some(Described {
        name: name.clone(),
        own_type: own_type.clone(),
        kind,
        nullable: !is(not_null),
        has_default: is(has_default),
        generated: is(generated),
    })
}
