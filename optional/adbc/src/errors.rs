//! Errors of drivers in ClickHouse's form: the code that each error gets.
//!
//! The code decides what is done: whether a batch is tried again, whether it is divided until the bad insert
//! is found, whether the table is looked up again. A SQLSTATE gives the code best. Where a driver has none,
//! its text gives it (SQLite's), and at last the kind of error that ADBC knows.

use adbc_core::error::{Error, Status};
use windrow_clickhouse::{ErrorCode, Exception};

/// Makes an exception of a driver's error. `version` is the suffix of its text, such as `(PostgreSQL)`.
pub(crate) fn exception(error: &Error, version: &str) -> Exception {
    let state = sqlstate(error);
    let code = code_of(&state, error.status, &error.message);
    worded(code, &error.message, version)
}

/// Makes an exception of an error that comes while a result is read. It has the driver's text inside an error
/// of Arrow.
pub(crate) fn of_arrow(error: &arrow_schema::ArrowError, version: &str) -> Exception {
    let told = match error {
        arrow_schema::ArrowError::CDataInterface(text) => text.clone(),
        other => other.to_string(),
    };
    let told = told.split_once("Producer error: ").map_or(told.as_str(), |(_, told)| told);
    let state = told.rsplit_once("SQLSTATE: ").map_or("", |(_, state)| state.trim_end());
    worded(code_of(state, Status::Unknown, told), told, version)
}

/// Says whether the connection can't be used any more.
pub(crate) fn is_lost(exception: &Exception) -> bool {
    exception.code == ErrorCode::NETWORK_ERROR
}

fn sqlstate(error: &Error) -> String {
    let state: String = error.sqlstate.iter().map(|&byte| char::from(byte as u8)).collect();
    match state.as_str() {
        "00000" | "\0\0\0\0\0" => String::new(),
        _ => state,
    }
}

fn worded(code: ErrorCode, told: &str, version: &str) -> Exception {
    let text = text(told);
    let exception = Exception::new(code, text, version);
    copied_row(text).map_or(exception.clone(), |row| at_row(&exception, row))
}

/// Adds the row that an error is about, in the words that ClickHouse uses for it.
pub(crate) fn at_row(exception: &Exception, row: u64) -> Exception {
    let place = match exception.code {
        ErrorCode::VIOLATED_CONSTRAINT => format!("DB::Exception: A constraint is violated at row {row}: "),
        _ => format!("DB::Exception: (at row {row}) "),
    };
    Exception { line: exception.line.replacen("DB::Exception: ", &place, 1), ..exception.clone() }
}

/// Returns an error's text without the parts that drivers add: the statement, which may contain anything, and
/// the SQLSTATE.
fn text(told: &str) -> &str {
    let ends = ["\nQuery was:", "\nquery was:", "\nquery:", "\n. SQLSTATE:", ". SQLSTATE:", " SQLSTATE:"];
    let end = ends.iter().filter_map(|end| told.find(end)).min().unwrap_or(told.len());
    // PostgreSQL's own words begin there.
    let begin = told.find("ERROR:  ").map_or(0, |at| at + "ERROR:  ".len()).min(end);
    told[begin..end].trim()
}

/// Returns the row of a batch that PostgreSQL means: it counts the rows of a COPY.
fn copied_row(text: &str) -> Option<u64> {
    let (_, context) = text.rsplit_once("CONTEXT:  COPY ")?;
    let (_, line) = context.rsplit_once(", line ")?;
    line.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

fn code_of(state: &str, status: Status, text: &str) -> ErrorCode {
    let is_lost = LOST.iter().any(|words| text.contains(words));
    let is_drivers_own = state.is_empty() || state == INTERNAL_ERROR && is_lost;
    if !is_drivers_own {
        // The database itself has answered. Its words may be anybody's: a trigger's, or a value's.
        return of_sqlstate(state, text).unwrap_or_else(|| match of_status(status) {
            // What PostgreSQL's driver says of any error.
            ErrorCode::NETWORK_ERROR => ErrorCode::STD_EXCEPTION,
            code => code,
        });
    }
    // A driver that has lost its connection knows no SQLSTATE, or makes one up.
    if is_lost {
        return ErrorCode::NETWORK_ERROR;
    }
    of_text(text).unwrap_or_else(|| of_status(status))
}

const INTERNAL_ERROR: &str = "XX000";
const LOST: [&str; 6] = [
    "server closed the connection",
    "no connection to the server",
    "terminating connection",
    "Connection refused",
    "connection is closed",
    "error reading from server: ",
];

fn of_sqlstate(state: &str, text: &str) -> Option<ErrorCode> {
    Some(match state {
        "22003" => ErrorCode::VALUE_IS_OUT_OF_RANGE_OF_DATA_TYPE,
        "22012" => ErrorCode::ILLEGAL_DIVISION,
        // Values in another binary form than the column's: its type has changed.
        "22P03" => ErrorCode::TYPE_MISMATCH,
        "23502" => ErrorCode::CANNOT_INSERT_NULL_IN_ORDINARY_COLUMN,
        "25006" => ErrorCode::READONLY,
        // It was idle for too long, or its transaction took too long: the server has closed the connection.
        "25P03" | "25P04" => ErrorCode::NETWORK_ERROR,
        "28000" | "28P01" => ErrorCode::AUTHENTICATION_FAILED,
        "3D000" | "3F000" => ErrorCode::UNKNOWN_DATABASE,
        // Nobody knows how it ended.
        "40003" => ErrorCode::NETWORK_ERROR,
        "42501" => ErrorCode::ACCESS_DENIED,
        "42601" => ErrorCode::SYNTAX_ERROR,
        "42703" => ErrorCode::UNKNOWN_IDENTIFIER,
        "42804" | "42846" => ErrorCode::TYPE_MISMATCH,
        "42883" => ErrorCode::UNKNOWN_FUNCTION,
        "42P01" => ErrorCode::UNKNOWN_TABLE,
        "42P07" => ErrorCode::TABLE_ALREADY_EXISTS,
        "53100" => ErrorCode::NOT_ENOUGH_SPACE,
        "53300" => ErrorCode::TOO_MANY_SIMULTANEOUS_QUERIES,
        "55006" | "55P03" => ErrorCode::ABORTED,
        "57014" if text.contains("user request") => ErrorCode::QUERY_WAS_CANCELLED,
        "57014" => ErrorCode::TIMEOUT_EXCEEDED,
        // A foreign table's server is away.
        "HV00N" => ErrorCode::ALL_CONNECTION_TRIES_FAILED,
        _ => match state.get(..2)? {
            "08" => ErrorCode::NETWORK_ERROR,
            // The server ends or starts, or has ended the session.
            "57" if state.starts_with("57P") => ErrorCode::NETWORK_ERROR,
            "0A" => ErrorCode::NOT_IMPLEMENTED,
            "22" => ErrorCode::INCORRECT_DATA,
            "23" | "44" => ErrorCode::VIOLATED_CONSTRAINT,
            "40" | "72" => ErrorCode::ABORTED,
            "53" => ErrorCode::MEMORY_LIMIT_EXCEEDED,
            // A row of an index that is too large, a trigger that calls itself.
            "54" => ErrorCode::TOO_LARGE_STRING_SIZE,
            "58" => ErrorCode::NOT_ENOUGH_SPACE,
            // What functions and triggers raise.
            "09" | "20" | "21" | "27" | "2F" | "38" | "39" | "P0" => ErrorCode::FUNCTION_THROW_IF_VALUE_IS_NON_ZERO,
            _ => return None,
        },
    })
}

fn of_text(text: &str) -> Option<ErrorCode> {
    let has = |words: &str| text.contains(words);
    Some(match () {
        () if has("NOT NULL constraint failed") => ErrorCode::CANNOT_INSERT_NULL_IN_ORDINARY_COLUMN,
        () if has("constraint failed") || has("onstraint violation") => ErrorCode::VIOLATED_CONSTRAINT,
        () if has("database is locked") || has("database table is locked") => ErrorCode::ABORTED,
        () if has("database or disk is full") => ErrorCode::NOT_ENOUGH_SPACE,
        () if has("disk I/O error") => ErrorCode::NOT_ENOUGH_SPACE,
        () if has("readonly database") || has("in a read-only transaction") => ErrorCode::READONLY,
        () if has("no such table") => ErrorCode::UNKNOWN_TABLE,
        () if has("no such column") => ErrorCode::UNKNOWN_IDENTIFIER,
        () if has("has no column named") || has("does not exist in target table") => ErrorCode::NO_SUCH_COLUMN_IN_TABLE,
        () if has("cannot store ") => ErrorCode::TYPE_MISMATCH,
        () if has("datatype mismatch") => ErrorCode::INCORRECT_DATA,
        () if has("syntax error") => ErrorCode::SYNTAX_ERROR,
        () => return None,
    })
}

fn of_status(status: Status) -> ErrorCode {
    match status {
        Status::IO => ErrorCode::NETWORK_ERROR,
        Status::Timeout => ErrorCode::TIMEOUT_EXCEEDED,
        Status::Cancelled => ErrorCode::QUERY_WAS_CANCELLED,
        Status::Unauthenticated => ErrorCode::AUTHENTICATION_FAILED,
        Status::Unauthorized => ErrorCode::ACCESS_DENIED,
        Status::NotFound => ErrorCode::UNKNOWN_TABLE,
        Status::AlreadyExists => ErrorCode::TABLE_ALREADY_EXISTS,
        Status::Integrity => ErrorCode::VIOLATED_CONSTRAINT,
        Status::InvalidData => ErrorCode::INCORRECT_DATA,
        Status::InvalidArguments => ErrorCode::BAD_ARGUMENTS,
        Status::NotImplemented => ErrorCode::NOT_IMPLEMENTED,
        _ => ErrorCode::STD_EXCEPTION,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(state: &str, status: Status, text: &str) -> ErrorCode {
        code_of(state, status, text)
    }

    /// Tries each class of PostgreSQL's list, with a state of it that is not listed, and some that users make
    /// up. Only a lost connection counts as such, whatever the driver and the text say.
    #[test]
    fn each_class_of_sqlstate_is_told_from_a_lost_connection() {
        let classes =
            "00 01 02 03 08 09 0A 0B 0F 0L 0P 0Z 10 20 21 22 23 24 25 26 27 28 2B 2D 2F 34 38 39 3B 3D 3F 40 42 \
                       44 53 54 55 57 58 72 F0 HV P0 XX ZZ U1 99 MY";
        for class in classes.split_whitespace() {
            for rest in ["000", "001", "999", "P01", "P03", "XYZ"] {
                let state = format!("{class}{rest}");
                let found = code(&state, Status::IO, "terminating connection: Connection refused");
                let is_lost = class == "08" || ["57P01", "57P03", "25P03", INTERNAL_ERROR].contains(&state.as_str());
                assert_eq!(found == ErrorCode::NETWORK_ERROR, is_lost, "{state}: {found}");
            }
        }
        for state in ["57P02", "57P04", "57P05", "25P04", "40003"] {
            assert_eq!(code(state, Status::IO, ""), ErrorCode::NETWORK_ERROR, "{state}");
        }
    }

    #[test]
    fn what_a_trigger_raises_is_of_its_row_whatever_it_says() {
        let text = "ERROR:  database is locked, server closed the connection, Connection refused";
        for state in ["P0001", "P0004", "38000", "21000", "27000", "54000"] {
            let exception = Exception::new(code(state, Status::IO, text), text, "");
            assert!(exception.comes_of_values() && !exception.is_passing(), "{state}");
        }
    }

    #[test]
    fn what_passes_is_told_from_what_does_not() {
        let passing =
            |state: &str, text: &str| Exception::new(code(state, Status::Internal, text), text, "").is_passing();
        for state in ["08006", "57P01", "57P03", "53300", "53200", "53100", "40001", "40P01", "55P03", "57014", "58030"]
        {
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
        assert_eq!(worded(ErrorCode::INCORRECT_DATA, told, "").row(), Some(7));
    }
}
