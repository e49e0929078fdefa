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
const TOO_LARGE_STRING_SIZE: i32 = 131;
const ALL_CONNECTION_TRIES_FAILED: i32 = 279;
/// FUNCTION_THROW_IF_VALUE_IS_NON_ZERO: by whoever wrote the function.
const THROWN: i32 = 395;

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
    let is_lost = LOST.iter().any(|words| text.contains(words));
    let is_drivers_own = state.is_empty() || state == INTERNAL_ERROR && is_lost;
    if !is_drivers_own {
        // The database itself has answered. Its words may be anybody's: a trigger's, or a value's.
        return of_sqlstate(state, text).unwrap_or_else(|| match of_status(status) {
            // What PostgreSQL's driver says of any error.
            NETWORK_ERROR => STD_EXCEPTION,
            code => code,
        });
    }
    // A driver that has lost its connection knows no SQLSTATE, or makes one up.
    if is_lost {
        return NETWORK_ERROR;
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

fn of_sqlstate(state: &str, text: &str) -> Option<i32> {
    Some(match state {
        "22003" => 321,
        "22012" => 153,
        // Values in another binary form than the column's: its type has changed.
        "22P03" => TYPE_MISMATCH,
        "23502" => NULL_IN_ORDINARY_COLUMN,
        "25006" => READONLY,
        // It was idle for too long, or its transaction took too long: the server has closed the connection.
        "25P03" | "25P04" => NETWORK_ERROR,
        "28000" | "28P01" => AUTHENTICATION_FAILED,
        "3D000" | "3F000" => 81,
        // Nobody knows how it ended.
        "40003" => NETWORK_ERROR,
        "42501" => ACCESS_DENIED,
        "42601" => SYNTAX_ERROR,
        "42703" => 47,
        "42804" | "42846" => TYPE_MISMATCH,
        "42883" => 46,
        "42P01" => UNKNOWN_TABLE,
        "42P07" => 57,
        "53100" => NOT_ENOUGH_SPACE,
        "53300" => 202,
        "55006" | "55P03" => ABORTED,
        "57014" if text.contains("user request") => QUERY_WAS_CANCELLED,
        "57014" => TIMEOUT_EXCEEDED,
        // A foreign table's server is away.
        "HV00N" => ALL_CONNECTION_TRIES_FAILED,
        _ => match state.get(..2)? {
            "08" => NETWORK_ERROR,
            // The server ends or starts, or has ended the session.
            "57" if state.starts_with("57P") => NETWORK_ERROR,
            "0A" => NOT_IMPLEMENTED,
            "22" => INCORRECT_DATA,
            "23" | "44" => VIOLATED_CONSTRAINT,
            "40" | "72" => ABORTED,
            "53" => 241,
            // A row of an index that is too large, a trigger that calls itself.
            "54" => TOO_LARGE_STRING_SIZE,
            "58" => NOT_ENOUGH_SPACE,
            // What functions and triggers raise.
            "09" | "20" | "21" | "27" | "2F" | "38" | "39" | "P0" => THROWN,
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

    /// Each class of PostgreSQL's list, with a state of it that nobody lists, and some that users make up. Only a
    /// connection that is lost counts as such, whatever the driver and the text say.
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
                assert_eq!(found == NETWORK_ERROR, is_lost, "{state}: {found}");
            }
        }
        for state in ["57P02", "57P04", "57P05", "25P04", "40003"] {
            assert_eq!(code(state, Status::IO, ""), NETWORK_ERROR, "{state}");
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
        assert_eq!(worded(117, told, "").row(), Some(7));
    }
}
