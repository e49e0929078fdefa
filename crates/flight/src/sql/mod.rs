//! As much SQL as is written or looked through here, in the words of either database.

mod ddl;
mod insert;
mod kind;
mod literal;
mod marks;
mod scan;

pub(crate) use ddl::create_table;
pub(crate) use insert::{bound_insert, BoundInsert};
pub(crate) use kind::{kind, Kind};
pub(crate) use literal::filled;
pub(crate) use marks::marks;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    DuckDb,
    ClickHouse,
}

impl Dialect {
    /// A name as it stands in a statement.
    pub(crate) fn name(self, name: &str) -> String {
        match self {
            Dialect::DuckDb => format!("\"{}\"", name.replace('"', "\"\"")),
            Dialect::ClickHouse => windrow_statement::backquote(name),
        }
    }

    /// A text as it stands in a statement.
    pub(crate) fn text(self, text: &str) -> String {
        match self {
            Dialect::DuckDb => format!("'{}'", text.replace('\'', "''")),
            Dialect::ClickHouse => windrow_statement::quote_string(text),
        }
    }

    pub(crate) fn table(self, database: Option<&str>, table: &str) -> String {
        match database {
            Some(database) => format!("{}.{}", self.name(database), self.name(table)),
            None => self.name(table),
        }
    }
}
