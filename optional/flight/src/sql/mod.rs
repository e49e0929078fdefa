//! The SQL that is written or examined here, in the dialect of either database.

mod ddl;
mod insert;
mod kind;
mod literal;
mod marks;

pub(crate) use ddl::create_table;
pub(crate) use insert::{bound_insert, BoundInsert};
pub(crate) use kind::{kind, Kind};
pub(crate) use literal::filled;
pub(crate) use marks::marks;
pub(crate) use windrow_sql::Dialect;
