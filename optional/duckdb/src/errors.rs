//! DuckDB's errors in ClickHouse's form: the code that each kind of error gets.

use std::fmt;

use adbc_core::error::{Error, Status};
use windrow_clickhouse::{ErrorCode, Exception};

/// The error of a database that can't be opened: a sentence that says what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenError(pub String);

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for OpenError {}

/// The cause of a commit that did not confirm that all is stored.
#[derive(Debug, Clone)]
pub enum CommitError {
    /// The commit was refused, and nothing of the transaction is stored.
    Refused(Exception),
    /// The outcome is not known: a disk failed in the middle, or the database went away.
    Unknown(Exception),
}

impl CommitError {
    pub fn exception(&self) -> &Exception {
        let (CommitError::Refused(exception) | CommitError::Unknown(exception)) = self;
        exception
    }
}

impl fmt::Display for CommitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.exception().fmt(f)
    }
}

impl std::error::Error for CommitError {}

/// Makes an exception of an error of DuckDB. `version` is the suffix of its text, such as `(DuckDB v1.5.6)`.
pub(crate) fn exception(error: &Error, version: &str) -> Exception {
    of_text(&error.message, error.status, version)
}

pub(crate) fn of_text(text: &str, status: Status, version: &str) -> Exception {
    let unwrapped = unwrapped(text);
    let text = unwrapped.as_deref().unwrap_or(text);
    Exception::new(code_of(text, status), text.trim_end(), version)
}

/// Returns the text of an error that comes as JSON, with kind and message in separate fields.
fn unwrapped(text: &str) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Apart {
        exception_type: String,
        exception_message: String,
    }
    let Apart { exception_type, exception_message } = serde_json::from_str(text.get(text.find('{')?..)?).ok()?;
    Some(format!("{exception_type} Error: {exception_message}"))
}

fn code_of(text: &str, status: Status) -> ErrorCode {
    let has = |part: &str| text.contains(part);
    if status == Status::Cancelled {
        return ErrorCode::QUERY_WAS_CANCELLED;
    }
    // Also behind "Failed to append" and "Failed to commit", which have no kind of their own.
    if has("NOT NULL constraint failed") {
        return ErrorCode::CANNOT_INSERT_NULL_IN_ORDINARY_COLUMN;
    }
    if has("constraint failed") || has("constraint violation") || has("violates") && has("constraint") {
        return ErrorCode::VIOLATED_CONSTRAINT;
    }
    if has("No space left on device") {
        return ErrorCode::NOT_ENOUGH_SPACE;
    }
    let kind = text.split(" Error: ").next().unwrap_or_default();
    match kind.trim_start() {
        "INTERRUPT" => ErrorCode::QUERY_WAS_CANCELLED,
        "Parser" => ErrorCode::SYNTAX_ERROR,
        "Catalog" if has("Table with name") && has("already exists") => ErrorCode::TABLE_ALREADY_EXISTS,
        "Catalog" if has("Schema with name") && has("already exists") => ErrorCode::DATABASE_ALREADY_EXISTS,
        "Catalog" if has("Function with name") || has("Function") && has("does not exist") => {
            ErrorCode::UNKNOWN_FUNCTION
        }
        "Catalog" if has("Schema with name") || has("No catalog + schema named") => ErrorCode::UNKNOWN_DATABASE,
        "Catalog" if has("Type with name") => ErrorCode::UNKNOWN_TYPE,
        "Catalog" if has("unrecognized configuration parameter") => ErrorCode::UNKNOWN_SETTING,
        "Catalog" if has("does not exist") => ErrorCode::UNKNOWN_TABLE,
        "Binder" if has("Catalog \"") && has("does not exist") => ErrorCode::UNKNOWN_DATABASE,
        "Binder" if has("No function matches") => ErrorCode::ILLEGAL_TYPE_OF_ARGUMENT,
        "Binder" if has("does not have a column") || has("not found in FROM clause") || has("Referenced column") => {
            ErrorCode::UNKNOWN_IDENTIFIER
        }
        "Binder" if has("table") && has("columns but") => ErrorCode::NUMBER_OF_COLUMNS_DOESNT_MATCH,
        "Binder" => ErrorCode::UNKNOWN_IDENTIFIER,
        "Conversion" if has("Could not convert string") => ErrorCode::CANNOT_PARSE_TEXT,
        "Conversion" | "Mismatch Type" | "Type" => ErrorCode::TYPE_MISMATCH,
        "Constraint" => ErrorCode::VIOLATED_CONSTRAINT,
        "Out of Range" => ErrorCode::VALUE_IS_OUT_OF_RANGE_OF_DATA_TYPE,
        "Out of Memory" => ErrorCode::MEMORY_LIMIT_EXCEEDED,
        "Not implemented" => ErrorCode::NOT_IMPLEMENTED,
        "Permission" => ErrorCode::ACCESS_DENIED,
        "IO" if has("could not write") => ErrorCode::NOT_ENOUGH_SPACE,
        "IO" if has("Cannot open file") || has("No such file") || has("No files found") => ErrorCode::FILE_DOESNT_EXIST,
        "IO" => ErrorCode::CANNOT_READ_FROM_FILE_DESCRIPTOR,
        "Invalid Input" if has("read-only") => ErrorCode::READONLY,
        "Invalid Input" => ErrorCode::BAD_ARGUMENTS,
        "TransactionContext" if has("in read-only mode") => ErrorCode::READONLY,
        "TransactionContext" if has("onflict") => ErrorCode::ABORTED,
        _ => ErrorCode::STD_EXCEPTION,
    }
}

/// Says whether this error only reports that an earlier error has aborted the transaction.
pub(crate) fn is_aftermath(exception: &Exception) -> bool {
    exception.line.contains("Current transaction is aborted")
}

/// Says whether DuckDB has given up its database: nothing works any more until it is opened again. Only the
/// kind of the error says so; the same words further on may come from the user's statement.
pub(crate) fn is_fatal(exception: &Exception) -> bool {
    exception.line.contains("DB::Exception: FATAL Error: ")
}
