//! What a pipeline asks of whoever knows the backend's tables.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use bytes::Bytes;
use windrow_clickhouse::Exception;
use windrow_columns::{Block, ColumnSpec, DataType, DefaultKind};
use windrow_engine::sink::{Destination, Form};

pub type Asking<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

pub trait Tables: Send + Sync + 'static {
    /// The table as it is now: what was known of it before does not count. With `exactly_once`, a table that could be
    /// given a window for its batches, as is done for inserts, is given one; without, it is only said whether it could
    /// be.
    fn describe<'a>(
        &'a self,
        database: &'a str,
        table: &'a str,
        exactly_once: bool,
    ) -> Asking<'a, Result<TableDescription, TableError>>;

    /// How ClickHouse itself reads a payload: `SELECT ... FROM format(...)`. There is nobody to ask on DuckDB.
    fn ask_format<'a>(&'a self, question: FormatQuestion<'a>) -> Asking<'a, Result<Block, AskError>>;
}

/// A table as far as writing to it is concerned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableDescription {
    /// Those that can be written, in the table's order.
    pub columns: Vec<TableColumn>,
    /// As the gateway's own account, with no columns yet: [`TableDescription::destination`] puts them in.
    pub destination: Destination,
    /// Why a repeated batch would be stored twice; nothing if it would not.
    pub no_deduplication: Option<String>,
    /// Of values without a time zone of their own.
    pub time_zone: String,
    /// ClickHouse's first two numbers.
    pub server_version: Option<(u32, u32)>,
    /// Settings of the backend that may bear on how payloads are read.
    pub settings: Vec<(String, String)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableColumn {
    pub name: String,
    /// As the backend calls it.
    pub type_name: String,
    /// Or why values of it can't be written from here.
    pub data_type: Result<DataType, String>,
    pub default_kind: DefaultKind,
}

impl TableDescription {
    /// Where batches of these columns go.
    pub fn destination<'c>(&self, columns: impl IntoIterator<Item = &'c ColumnSpec>) -> Destination {
        let (columns, types) =
            columns.into_iter().map(|column| (column.name.clone(), column.data_type.clone())).unzip();
        Destination { columns, form: Form::Native { types }, ..self.destination.clone() }
    }
}

#[derive(Debug, Clone)]
pub enum TableError {
    /// The backend's own word: the table is not there, or may not be written to.
    Refused(Exception),
    /// The backend can't be asked at present.
    Unavailable(String),
}

impl fmt::Display for TableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TableError::Refused(exception) => exception.fmt(f),
            TableError::Unavailable(text) => f.write_str(text),
        }
    }
}

/// A payload that isn't certain to be read here as ClickHouse would read it.
#[derive(Debug, Clone)]
pub struct FormatQuestion<'q> {
    /// ClickHouse's name.
    pub format: &'q str,
    /// What the payload is to be read into; the answer has a column for each, in this order.
    pub columns: &'q [ColumnSpec],
    /// ClickHouse's settings of reading.
    pub settings: &'q [(String, String)],
    pub payload: Bytes,
}

#[derive(Debug, Clone)]
pub enum AskError {
    /// ClickHouse can't read it either.
    Refused(Exception),
    /// ClickHouse can't be asked at present.
    Unavailable(String),
    /// There is no ClickHouse.
    Nobody,
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use windrow_clickhouse::{Credentials, ErrorCode};

    /// Knows no table, and of a format what is said here.
    pub(crate) enum NoTable {
        NobodyToAsk,
        /// ClickHouse refuses with this code.
        Refused(ErrorCode),
    }

    impl Tables for NoTable {
        fn describe<'a>(
            &'a self,
            _database: &'a str,
            _table: &'a str,
            _exactly_once: bool,
        ) -> Asking<'a, Result<TableDescription, TableError>> {
            Box::pin(async { Err(TableError::Unavailable("nobody is there".to_owned())) })
        }

        fn ask_format<'a>(&'a self, _question: FormatQuestion<'a>) -> Asking<'a, Result<Block, AskError>> {
            let said = match self {
                NoTable::NobodyToAsk => AskError::Nobody,
                NoTable::Refused(code) => AskError::Refused(Exception::new(*code, "no", "")),
            };
            Box::pin(async { Err(said) })
        }
    }

    /// A table with columns of these names and types, none with a DEFAULT.
    pub(crate) fn description(columns: &[(&str, &str)]) -> TableDescription {
        let column = |(name, type_name): &(&str, &str)| TableColumn {
            name: (*name).to_owned(),
            type_name: (*type_name).to_owned(),
            data_type: DataType::parse(type_name).map_err(|error| error.to_string()),
            default_kind: DefaultKind::None,
        };
        let destination = Destination {
            database: "default".to_owned(),
            table: "events".to_owned(),
            columns: Vec::new(),
            form: Form::Native { types: Vec::new() },
            credentials: Credentials { user: "windrow".to_owned(), password: String::new() },
            own_account: true,
            roles: Vec::new(),
            quota_key: String::new(),
            shard: None,
            settings: Vec::new(),
            deduplicates: true,
            is_replicated: false,
            has_views: false,
            hands_on: false,
            partitioning: None,
        };
        TableDescription {
            columns: columns.iter().map(column).collect(),
            destination,
            no_deduplication: None,
            time_zone: "UTC".to_owned(),
            server_version: None,
            settings: Vec::new(),
        }
    }
}
