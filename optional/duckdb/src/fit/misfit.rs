//! The reasons why a value, or a whole column, can't be stored as it is.

use std::fmt;

use arrow_schema::DataType;
use windrow_clickhouse::{ErrorCode, Exception};

use crate::table::TableRef;

/// The reason why rows can't be stored as they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CannotStore {
    /// The column. `None`: the reason is not about one column.
    pub column: Option<String>,
    /// The row within its batch, from 0 on. `None`: the reason is about all rows.
    pub row: Option<usize>,
    /// ClickHouse's code for it.
    pub code: ErrorCode,
    pub why: String,
}

/// The same reason before it is known which column it is about.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CannotStoreValue {
    pub(crate) row: Option<usize>,
    pub(crate) why: Why,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Why {
    Type(String),
    Range(String),
    Value(String),
}

impl CannotStoreValue {
    pub(crate) fn of_type(from: &DataType, to: impl fmt::Display) -> CannotStoreValue {
        CannotStoreValue { row: None, why: Why::Type(format!("values of Arrow's {from} don't go into {to}")) }
    }

    pub(crate) fn range(row: usize, value: impl fmt::Display, to: impl fmt::Display) -> CannotStoreValue {
        CannotStoreValue { row: Some(row), why: Why::Range(format!("{value} is no value of {to}")) }
    }

    pub(crate) fn lossy(row: usize, value: impl fmt::Display, to: impl fmt::Display) -> CannotStoreValue {
        CannotStoreValue { row: Some(row), why: Why::Range(format!("{to} doesn't hold {value} exactly")) }
    }

    pub(crate) fn value(row: usize, why: impl Into<String>) -> CannotStoreValue {
        CannotStoreValue { row: Some(row), why: Why::Value(why.into()) }
    }

    pub(crate) fn other(why: &str) -> CannotStoreValue {
        CannotStoreValue { row: None, why: Why::Type(why.to_owned()) }
    }

    /// Moves the reason to another row: the row that contains the value.
    pub(crate) fn in_row(self, row: impl FnOnce(usize) -> usize) -> CannotStoreValue {
        CannotStoreValue { row: self.row.map(row), why: self.why }
    }

    pub(crate) fn of_column(self, name: &str) -> CannotStore {
        let (code, why) = match self.why {
            Why::Type(why) => (ErrorCode::TYPE_MISMATCH, why),
            Why::Range(why) => (ErrorCode::VALUE_IS_OUT_OF_RANGE_OF_DATA_TYPE, why),
            Why::Value(why) => (ErrorCode::INCORRECT_DATA, why),
        };
        CannotStore { column: Some(name.to_owned()), row: self.row, code, why }
    }
}

impl CannotStore {
    pub(crate) fn unknown(column: &str, table: &TableRef) -> CannotStore {
        let why = format!("there is no such column in table {}.{} to insert into", table.schema, table.table);
        CannotStore { column: Some(column.to_owned()), row: None, code: ErrorCode::NO_SUCH_COLUMN_IN_TABLE, why }
    }

    pub(crate) fn twice(column: &str) -> CannotStore {
        CannotStore {
            column: Some(column.to_owned()),
            row: None,
            code: ErrorCode::DUPLICATE_COLUMN,
            why: "it is given twice".into(),
        }
    }

    pub(crate) fn missing(column: &str) -> CannotStore {
        let why = "the batch doesn't have it; all batches must have the first one's columns".to_owned();
        CannotStore { column: Some(column.to_owned()), row: None, code: ErrorCode::NUMBER_OF_COLUMNS_DOESNT_MATCH, why }
    }

    pub(crate) fn count(wanted: usize, given: usize, table: &TableRef) -> CannotStore {
        let why = format!("{given} columns are given for {wanted} of table {}.{}", table.schema, table.table);
        CannotStore { column: None, row: None, code: ErrorCode::NUMBER_OF_COLUMNS_DOESNT_MATCH, why }
    }

    pub(crate) fn other(why: &str) -> CannotStore {
        CannotStore { column: None, row: None, code: ErrorCode::INCORRECT_DATA, why: why.to_owned() }
    }

    /// Makes an exception in ClickHouse's form.
    pub fn exception(&self, version_suffix: &str) -> Exception {
        Exception::new(self.code, &self.to_string(), version_suffix)
    }
}

impl fmt::Display for CannotStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(column) = &self.column {
            write!(f, "Column `{column}`: ")?;
        }
        f.write_str(&self.why)?;
        // Counted from 1 on, as ClickHouse counts.
        self.row.map_or(Ok(()), |row| write!(f, ": (at row {})", row + 1))
    }
}

impl std::error::Error for CannotStore {}
