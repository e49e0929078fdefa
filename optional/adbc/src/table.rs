//! The description of a table, and how its columns are written.

use arrow_schema::{DataType, Field, Schema};
use windrow_duckdb::{clickhouse_type, ColumnInfo, TableInfo, TableRef};

use crate::types::{self, Kind};

/// A column as its database describes it.
pub(crate) struct Described {
    pub(crate) name: String,
    /// The type as the database writes it: `numeric(18,3)`.
    pub(crate) own_type: String,
    pub(crate) kind: Kind,
    pub(crate) nullable: bool,
    pub(crate) has_default: bool,
    /// Says whether the column is computed from others, so that it takes no values.
    pub(crate) generated: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Table {
    pub(crate) info: TableInfo,
    /// The type that each column's texts are cast to, if they are cast.
    casts: Vec<Option<String>>,
    /// The schema that the driver told, where a batch has to find the same again: a driver that writes values
    /// in binary form doesn't notice that a column now has another type of the same width.
    pub(crate) shape: Option<Schema>,
}

impl Table {
    pub(crate) fn new(name: &TableRef, described: Vec<Described>, shape: Option<Schema>) -> Table {
        let casts = described.iter().map(|column| match column.kind {
            Kind::Texts | Kind::CastJson => Some(column.own_type.clone()),
            Kind::Values(_) | Kind::NotWritten(_) => None,
        });
        let casts = casts.collect();
        let columns = described.into_iter().map(column).collect();
        Table { info: TableInfo { name: name.clone(), is_view: false, columns }, casts, shape }
    }

    /// Returns the type that a column's texts are cast to. `None`: the column takes its values as they are.
    pub(crate) fn cast(&self, column: &str) -> Option<&str> {
        let at = self.info.columns.iter().position(|known| known.name == column)?;
        self.casts.get(at)?.as_deref()
    }

    pub(crate) fn casts_any(&self, columns: &[String]) -> bool {
        columns.iter().any(|column| self.cast(column).is_some())
    }
}

fn column(described: Described) -> ColumnInfo {
    let Described { name, own_type, kind, nullable, has_default, generated } = described;
    let duckdb_type = kind.duckdb_type().to_owned();
    let field = types::field(&name, &duckdb_type);
    let data_type = match (&kind, &field) {
        (Kind::NotWritten(why), _) => Err(why.clone()),
        (_, None) => Err(format!("values of the type {own_type} can't be inserted")),
        (_, Some(_)) => clickhouse_type(&duckdb_type, nullable),
    };
    let field = field.unwrap_or_else(|| Field::new(&name, DataType::Null, true));
    // What is shown of a column that takes no values is its own type.
    let duckdb_type = if data_type.is_ok() { duckdb_type } else { own_type };
    ColumnInfo { name, duckdb_type, field, data_type, nullable, has_default, generated }
}
