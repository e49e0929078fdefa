//! DuckDB's errors in ClickHouse's form: which code each of its kinds becomes.

use std::fmt;

use adbc_core::error::{Error, Status};
use windrow_clickhouse::Exception;

/// Why a database can't be opened, in a sentence that says what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenError(pub String);

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for OpenError {}

/// Why a commit did not say that all is stored.
#[derive(Debug, Clone)]
pub enum CommitError {
    /// Nothing of the transaction is stored.
    Refused(Exception),
    /// It may be stored or not: a disk failed in the middle, or the database went away.
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

pub(crate) const SYNTAX_ERROR: i32 = 62;
pub(crate) const QUERY_WAS_CANCELLED: i32 = 394;
pub(crate) const READONLY: i32 = 164;
pub(crate) const STD_EXCEPTION: i32 = 1001;
const MEMORY_LIMIT_EXCEEDED: i32 = 241;
const NOT_ENOUGH_SPACE: i32 = 243;

/// An error of DuckDB's. `version` is what stands behind its text, such as `(DuckDB v1.5.6)`.
pub(crate) fn exception(error: &Error, version: &str) -> Exception {
    of_text(&error.message, error.status, version)
}

pub(crate) fn of_text(text: &str, status: Status, version: &str) -> Exception {
    let unwrapped = unwrapped(text);
    let text = unwrapped.as_deref().unwrap_or(text);
    Exception::new(code_of(text, status), text.trim_end(), version)
}

/// Some errors come as JSON, with kind and message apart.
fn unwrapped(text: &str) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Apart {
        exception_type: String,
        exception_message: String,
    }
    let Apart { exception_type, exception_message } = serde_json::from_str(text.get(text.find('{')?..)?).ok()?;
    Some(format!("{exception_type} Error: {exception_message}"))
}

fn code_of(text: &str, status: Status) -> i32 {
    let has = |part: &str| text.contains(part);
    if status == Status::Cancelled {
        return QUERY_WAS_CANCELLED;
    }
    // Also behind "Failed to append" and "Failed to commit", which have no kind of their own.
    if has("NOT NULL constraint failed") {
        return 349;
    }
    if has("constraint failed") || has("constraint violation") || has("violates") && has("constraint") {
        return 469;
    }
    if has("No space left on device") {
        return NOT_ENOUGH_SPACE;
    }
    let kind = text.split(" Error: ").next().unwrap_or_default();
    match kind.trim_start() {
        "INTERRUPT" => QUERY_WAS_CANCELLED,
        "Parser" => SYNTAX_ERROR,
        "Catalog" if has("Table with name") && has("already exists") => 57,
        "Catalog" if has("Schema with name") && has("already exists") => 82,
        "Catalog" if has("Function with name") || has("Function") && has("does not exist") => 46,
        "Catalog" if has("Schema with name") || has("No catalog + schema named") => 81,
        "Catalog" if has("Type with name") => 50,
        "Catalog" if has("unrecognized configuration parameter") => 115,
        "Catalog" if has("does not exist") => 60,
        "Binder" if has("Catalog \"") && has("does not exist") => 81,
        "Binder" if has("No function matches") => 43,
        "Binder" if has("does not have a column") || has("not found in FROM clause") || has("Referenced column") => 47,
        "Binder" if has("table") && has("columns but") => 20,
        "Binder" => 47,
        "Conversion" if has("Could not convert string") => 6,
        "Conversion" | "Mismatch Type" | "Type" => 53,
        "Constraint" => 469,
        "Out of Range" => 321,
        "Out of Memory" => MEMORY_LIMIT_EXCEEDED,
        "Not implemented" => 48,
        "Permission" => 497,
        "IO" if has("could not write") => NOT_ENOUGH_SPACE,
        "IO" if has("Cannot open file") || has("No such file") || has("No files found") => 107,
        "IO" => 74,
        "Invalid Input" if has("read-only") => READONLY,
        "Invalid Input" => 36,
        "TransactionContext" if has("in read-only mode") => READONLY,
        "TransactionContext" if has("onflict") => 236,
        _ => STD_EXCEPTION,
    }
}

/// Whether an earlier error of the transaction is all that this one is about.
pub(crate) fn is_aftermath(exception: &Exception) -> bool {
    exception.line.contains("Current transaction is aborted")
}

/// Whether DuckDB has given up its database: nothing works any more until it is opened again. It is the error's kind
/// that says so; the same words further behind may be of whoever sent the statement.
pub(crate) fn is_fatal(exception: &Exception) -> bool {
    exception.line.contains("DB::Exception: FATAL Error: ")
}
