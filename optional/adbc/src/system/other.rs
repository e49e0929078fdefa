//! Tables of a database of which only the Arrow schema is known, which every driver tells.
//!
//! The Arrow schema does not say whether a column has a default. A column that can be NULL is assumed to have
//! none. A column that can't be NULL is left to the database where an insert does not name it.

use windrow_clickhouse::{ErrorCode, Exception};
use windrow_duckdb::TableRef;

use crate::connection::Connection;
use crate::table::{Described, Table};
use crate::types;

pub(super) fn describe(connection: &mut Connection, name: &TableRef) -> Result<Option<Table>, Exception> {
    let schema = match connection.table_schema(name) {
        Ok(schema) => schema,
        Err(exception) if exception.code == ErrorCode::UNKNOWN_TABLE => return Ok(None),
        Err(exception) => return Err(exception),
    };
    let described = schema.fields().iter().map(|field| Described {
        name: field.name().clone(),
        own_type: field.data_type().to_string(),
        kind: types::of_arrow(field),
        nullable: field.is_nullable(),
        has_default: !field.is_nullable(),
        generated: false,
    });
    Ok(Some(Table::new(name, described.collect(), None)))
}
