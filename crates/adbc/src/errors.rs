//! Errors of drivers in ClickHouse's form: which code each becomes.
//!
//! What the code says decides what is done: whether a batch is tried again, whether it is taken apart until the guilty
//! insert is found, whether the table is looked up anew. A SQLSTATE says it best. Where a driver gives none, its text
//! does (SQLite's), and at last the kind of error that ADBC knows.

use adbc_core::error::{Error, Status};
use windrow_clickhouse::Exception;

pub(crate) const NETWORK_ERROR: i32 = 210;
pub(crate) const NOT_IMPLEMENTED: i32 = 48;
pub(crate) const QUERY_WAS_CANCELLED: i32 = 394;
pub(crate) const STD_EXCEPTION: i32 = 1001;
pub(crate) const TYPE_MISMATCH: i32 = 53;
pub(crate) const UNKNOWN_TABLE: i32 = 60;
const NO_SUCH_COLUMN_IN_TABLE: i32 = 16;
const ACCESS_DENIED: i32 = 497;
const AUTHENTICATION_FAILED: i32 = 516;
pub(crate) const ABORTED: i32 = 236;
const INCORRECT_DATA: i32 = 117;
const NOT_ENOUGH_SPACE: i32 = 243;
const NULL_IN_ORDINARY_COLUMN: i32 = 349;
pub(crate) const READONLY: i32 = 164;
const SYNTAX_ERROR: i32 = 62;
const TIMEOUT_EXCEEDED: i32 = 159;
pub(crate) const VIOLATED_CONSTRAINT: i32 = 469;

/// `version` is what stands behind the text, such as `(PostgreSQL)`.
pub(crate) fn exception(error: &Error, version: &str) -> Exception {
    let state = sqlstate(error);
    let code = code_of(&state, error.status, &error.message);
    worded(code, &error.message, version)
}

/// An error that comes while a result is read: the driver's text in an error of Arrow's.
pub(crate) fn of_arrow(error: &arrow_schema::ArrowError, version: &str) -> Exception {
    let told = match error {
        arrow_schema::ArrowError::CDataInterface(text) => text.clone(),
        other => other.to_string(),
    };
    let told = told.split_once("Producer error: ").map_or(told.as_str(), |(_, told)| told);
    let state = told.rsplit_once("SQLSTATE: ").map_or("", |(_, state)| state.trim_end());
    worded(code_of(state, Status::Unknown, told), told, version)
}

/// Whether the connection is of no use any more.
pub(crate) fn is_lost(exception: &Exception) -> bool {
    exception.code == NETWORK_ERROR
}

/// Whether a commit that failed with this has surely stored nothing: it is a constraint that was looked at last.
pub(crate) fn is_final(exception: &Exception) -> bool {
    exception.comes_of_values()
}

fn sqlstate(error: &Error) -> String {
    let state: String = error.sqlstate.iter().map(|&byte| char::from(byte as u8)).collect();
    match state.as_str() {
        "00000" | "\0\0\0\0\0" => String::new(),
        _ => state,
    }
}

fn worded(code: i32, told: &str, version: &str) -> Exception {
    let text = text(told);
    let exception = Exception::new(code, text, version);
    copied_row(text).map_or(exception.clone(), |row| at_row(&exception, row))
}

/// Says in which row of what was sent an error lies, in the words by which ClickHouse says it.
pub(crate) fn at_row(exception: &Exception, row: u64) -> Exception {
    let place = match exception.code {
        VIOLATED_CONSTRAINT => format!("DB::Exception: A constraint is violated at row {row}: "),
        _ => format!("DB::Exception: (at row {row}) "),
    };
    Exception { line: exception.line.replacen("DB::Exception: ", &place, 1), ..exception.clone() }
}

/// Without what drivers put around it: the statement, which may hold anything, and the SQLSTATE.
fn text(told: &str) -> &str {
    let ends = ["\nQuery was:", "\nquery was:", "\nquery:", "\n. SQLSTATE:", ". SQLSTATE:", " SQLSTATE:"];
    let end = ends.iter().filter_map(|end| told.find(end)).min().unwrap_or(told.len());
    // PostgreSQL's own words begin there.
    let begin = told.find("ERROR:  ").map_or(0, |at| at + "ERROR:  ".len()).min(end);
    told[begin..end].trim()
}

/// The row of a batch that PostgreSQL means: it counts those of a COPY.
fn copied_row(text: &str) -> Option<u64> {
    let (_, context) = text.rsplit_once("CONTEXT:  COPY ")?;
    let (_, line) = context.rsplit_once(", line ")?;
    line.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

fn code_of(state: &str, status: Status, text: &str) -> i32 {
    // A driver that has lost its connection knows no SQLSTATE. With one, the words may be of a value.
    if state.is_empty() && LOST.iter().any(|words| text.contains(words)) {
        return NETWORK_ERROR;
    }
    of_sqlstate(state, text).or_else(|| of_text(text)).unwrap_or_else(|| of_status(status))
}

const LOST: [&str; 6] = [
    "server closed the connection",
    "no connection to the server",
    "terminating connection",
    "Connection refused",
    "connection is closed",
    "error reading from server: ",
];

fn of_sqlstate(state: &str, text: &str) -> Option<i32> {
    Some(match state {
        "" | "XX000" => return None,
        "22003" => 321,
        "22012" => 153,
        // Values in another binary form than the column's: its type has changed.
        "22P03" => TYPE_MISMATCH,
        "23502" => NULL_IN_ORDINARY_COLUMN,
        "25006" => READONLY,
        "28000" | "28P01" => AUTHENTICATION_FAILED,
        "3D000" | "3F000" => 81,
        "40001" | "40P01" | "55P03" => ABORTED,
        "42501" => ACCESS_DENIED,
        "42601" => SYNTAX_ERROR,
        "42703" => 47,
        "42804" | "42846" => TYPE_MISMATCH,
        "42883" => 46,
        "42P01" => UNKNOWN_TABLE,
        "42P07" => 57,
        "53100" => NOT_ENOUGH_SPACE,
        "53300" => 202,
        "57014" if text.contains("user request") => QUERY_WAS_CANCELLED,
        "57014" => TIMEOUT_EXCEEDED,
        "58030" => NOT_ENOUGH_SPACE,
        _ => match state.get(..2)? {
            "08" | "57" => NETWORK_ERROR,
            "0A" => NOT_IMPLEMENTED,
            "22" => INCORRECT_DATA,
            "23" => VIOLATED_CONSTRAINT,
            "40" => ABORTED,
            "53" => 241,
            _ => return None,
        },
    })
}

fn of_text(text: &str) -> Option<i32> {
    let has = |words: &str| text.contains(words);
    Some(match () {
        () if has("NOT NULL constraint failed") => NULL_IN_ORDINARY_COLUMN,
        () if has("constraint failed") || has("onstraint violation") => VIOLATED_CONSTRAINT,
        () if has("database is locked") || has("database table is locked") => ABORTED,
        () if has("database or disk is full") => NOT_ENOUGH_SPACE,
        () if has("disk I/O error") => NOT_ENOUGH_SPACE,
        () if has("readonly database") || has("in a read-only transaction") => READONLY,
        () if has("no such table") => UNKNOWN_TABLE,
        () if has("no such column") => 47,
        () if has("has no column named") || has("does not exist in target table") => NO_SUCH_COLUMN_IN_TABLE,
        () if has("cannot store ") => TYPE_MISMATCH,
        () if has("datatype mismatch") => INCORRECT_DATA,
        () if has("syntax error") => SYNTAX_ERROR,
        () => return None,
    })
}

fn of_status(status: Status) -> i32 {
    match status {
        Status::IO => NETWORK_ERROR,
        Status::Timeout => TIMEOUT_EXCEEDED,
        Status::Cancelled => QUERY_WAS_CANCELLED,
        Status::Unauthenticated => AUTHENTICATION_FAILED,
        Status::Unauthorized => ACCESS_DENIED,
        Status::NotFound => UNKNOWN_TABLE,
        Status::AlreadyExists => 57,
        Status::Integrity => VIOLATED_CONSTRAINT,
        Status::InvalidData => INCORRECT_DATA,
        Status::InvalidArguments => 36,
        Status::NotImplemented => NOT_IMPLEMENTED,
        _ => STD_EXCEPTION,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(state: &str, status: Status, text: &str) -> i32 {
        code_of(state, status, text)
    }

    #[test]
    fn what_passes_is_told_from_what_does_not() {
        let passing =
            |state: &str, text: &str| Exception::new(code(state, Status::Internal, text), text, "").is_passing();
        for state in ["08006", "57P01", "57P03", "53300", "53200", "53100", "40001", "40P01", "55P03"] {
            assert!(passing(state, ""), "{state}");
        }
        assert!(passing("", "[libpq] Failed to execute COPY: server closed the connection unexpectedly"));
        assert!(passing("", "failed to execute: database is locked"));
        for state in ["23505", "23502", "22001", "22003", "22P02", "42P01", "42703", "42501", "42601"] {
            assert!(!passing(state, ""), "{state}");
        }
    }

    #[test]
    fn what_comes_of_values_is_told_from_what_concerns_the_table() {
        let of_values = |state: &str| Exception::new(code(state, Status::Internal, ""), "", "").comes_of_values();
        for state in ["23505", "23502", "23514", "22001", "22003", "22021", "22P02"] {
            assert!(of_values(state), "{state}");
        }
        for state in ["42P01", "42501", "42703"] {
            assert!(!of_values(state), "{state}");
        }
    }

    #[test]
    fn the_statement_is_no_part_of_the_text() {
        let told = "Failed to prepare query: ERROR:  syntax error\n\nQuery was: SELEC 1. SQLSTATE: 42601";
        assert_eq!(text(told), "syntax error");
        assert_eq!(text("failed to execute: x\nquery was: INSERT"), "failed to execute: x");
        let told = "[libpq] Failed: ERROR:  value too long\nCONTEXT:  COPY t, line 7, column a\n. SQLSTATE: 22001";
        assert_eq!(worded(117, told, "").row(), Some(7));
    }
}
