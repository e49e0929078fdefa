//! Answers about the service and its tables, in the layout of Flight SQL.

mod info;
mod layout;
mod tables;
mod types;

pub(crate) use info::sql_info;
pub(crate) use layout::{
    catalogs, db_schemas, foreign_keys, primary_keys, sql_info_layout, table_types, tables_layout, xdbc_type_info,
};
pub(crate) use tables::{list_catalogs, list_db_schemas, list_primary_keys, list_table_types, list_tables};
pub(crate) use types::list_types;
