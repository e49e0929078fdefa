//! Tables of SQLite, with the types that their columns were declared with.

use windrow_clickhouse::Exception;
use windrow_duckdb::TableRef;
use windrow_sql::Dialect;

use crate::connection::Connection;
use crate::errors;
use crate::results::texts;
use crate::table::{Described, Table};
use crate::types;

pub(super) fn describe(connection: &mut Connection, name: &TableRef) -> Result<Option<Table>, Exception> {
    let table = Dialect::DuckDb.text(&name.table);
    // As texts, since the driver takes the type of a column from its first values.
    let rows = connection.rows(&format!(
        "SELECT name, type, CAST(\"notnull\" AS TEXT), CAST(dflt_value IS NOT NULL AS TEXT), CAST(pk AS TEXT), \
         CAST(hidden AS TEXT), CAST((SELECT count(*) FROM pragma_table_xinfo({table}) WHERE pk > 0) AS TEXT) \
         FROM pragma_table_xinfo({table}) ORDER BY cid"
    ))?;
    let rows = texts(&rows).map_err(|error| errors::of_arrow(&error, connection.version()))?;
    if rows.is_empty() {
        return Ok(None);
    }
    Ok(Some(Table::new(name, rows.iter().filter_map(|row| column(row)).collect(), None)))
}

fn column(row: &[Option<String>]) -> Option<Described> {
    let [Some(name), own_type, Some(not_null), Some(has_default), Some(key), Some(hidden), Some(keys)] = row else {
        return None;
    };
    let own_type = own_type.clone().unwrap_or_default();
    // Such a column is the row's number, which SQLite gives where nobody does.
    let is_row_number = own_type.eq_ignore_ascii_case("INTEGER") && key == "1" && keys == "1";
    Some(Described {
        name: name.clone(),
        kind: types::of_sqlite(&own_type),
        own_type,
        nullable: not_null == "0" && !is_row_number,
        has_default: has_default == "1" || is_row_number,
        generated: hidden != "0",
    })
}
