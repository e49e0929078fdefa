//! The questions that a pipeline asks about the backend's tables, and the trait that answers them.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use bytes::Bytes;
use windrow_clickhouse::Exception;
use windrow_columns::{Block, ColumnSpec, DataType, DefaultKind};
use windrow_engine::sink::{Destination, Form};

pub type Asking<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

pub trait Tables: Send + Sync + 'static {
    /// Describes the table as it is now, ignoring earlier knowledge. With `exactly_once`, a table that could
    /// be given a window for its batches, as is done for inserts, is given one. Without, the description only
    /// says whether it could be.
    fn describe<'a>(
        &'a self,
        database: &'a str,
        table: &'a str,
        exactly_once: bool,
    ) -> Asking<'a, Result<TableDescription, TableError>>;

    /// Asks how ClickHouse itself reads a payload: `SELECT ... FROM format(...)`. On DuckDB the answer is
    /// [`AskError::Nobody`].
    fn ask_format<'a>(&'a self, question: FormatQuestion<'a>) -> Asking<'a, Result<Block, AskError>>;
}

/// A table, with everything that writing to it needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableDescription {
    /// Columns that can be written, in the table's order.
    pub columns: Vec<TableColumn>,
    /// Destination under the gateway's own account, without columns yet: [`TableDescription::destination`] adds them.
    pub destination: Destination,
    /// The cause why a repeated batch would be stored twice, or `None` if it would not.
    pub no_deduplication: Option<String>,
    /// Time zone of values that have none of their own.
    pub time_zone: String,
    /// First two numbers of ClickHouse's version.
    pub server_version: Option<(u32, u32)>,
    /// Settings of the backend that may affect how payloads are read.
    pub settings: Vec<(String, String)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableColumn {
    pub name: String,
    /// Type in the backend's words.
    pub type_name: String,
    /// The parsed type, or the cause why its values can't be written from here.
    pub data_type: Result<DataType, String>,
    pub default_kind: DefaultKind,
}

impl TableDescription {
    /// Returns the destination of batches of these columns.
    pub fn destination<'c>(&self, columns: impl IntoIterator<Item = &'c ColumnSpec>) -> Destination {
        let (columns, types) =
            columns.into_iter().map(|column| (column.name.clone(), column.data_type.clone())).unzip();
        Destination { columns, form: Form::Native { types }, ..self.destination.clone() }
    }
}

#[derive(Debug, Clone)]
pub enum TableError {
    /// The backend refuses: the table does not exist, or may not be written to.
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

/// A payload that ClickHouse has to read, since it isn't certain to be read the same way here.
#[derive(Debug, Clone)]
pub struct FormatQuestion<'q> {
    /// ClickHouse's name of the format.
    pub format: &'q str,
    /// Columns that the payload is read into. The answer has a column for each, in this order.
    pub columns: &'q [ColumnSpec],
    /// ClickHouse's settings for reading.
    pub settings: &'q [(String, String)],
    pub payload: Bytes,
}

#[derive(Debug, Clone)]
pub enum AskError {
    /// ClickHouse can't read the payload either.
    Refused(Exception),
    /// ClickHouse can't be asked at present.
    Unavailable(String),
    /// The backend is not ClickHouse.
    Nobody,
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use windrow_clickhouse::{Credentials, ErrorCode};

    /// A backend without tables, which gives one fixed answer to questions about formats.
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

    /// Describes a table with columns of these names and types, none with a DEFAULT.
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
