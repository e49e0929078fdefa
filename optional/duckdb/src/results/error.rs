use std::fmt;

use windrow_clickhouse::ErrorCode;

/// The cause why a result can't be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResultError {
    /// A column has a type that ClickHouse's formats have nothing for.
    Type { column: String, data_type: String },
    /// A batch is not of the schema that was announced, or the library that encodes it failed.
    Data(String),
}

impl ResultError {
    /// Returns ClickHouse's code for the error.
    pub fn code(&self) -> ErrorCode {
        match self {
            ResultError::Type { .. } => ErrorCode::NOT_IMPLEMENTED,
            ResultError::Data(_) => ErrorCode::LOGICAL_ERROR,
        }
    }
}

impl fmt::Display for ResultError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ResultError::Type { column, data_type } => write!(
                f,
                "Column {column} of the result has the type {data_type}, which ClickHouse's formats have nothing for: \
                 convert it in the query, for instance by CAST({column} AS VARCHAR)"
            ),
            ResultError::Data(cause) => write!(f, "The result cannot be written: {cause}"),
        }
    }
}

impl std::error::Error for ResultError {}
