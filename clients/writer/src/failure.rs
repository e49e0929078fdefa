//! The conclusions that may be drawn from a failed attempt.

use std::fmt;

use windrow_clickhouse::{ErrorCode, Exception};

/// The reason why an attempt to store a batch failed.
#[derive(Debug, Clone)]
pub struct Failure {
    pub kind: FailureKind,
    /// ClickHouse's code, if ClickHouse answered.
    pub code: Option<ErrorCode>,
    pub message: String,
    /// The row, counted from 1, that the error names. It is only a hint.
    pub row: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureKind {
    /// The error may pass, or the outcome is not known: the same rows are sent again under the same id.
    Passing,
    /// Values of some row are refused; nothing of the batch is stored. The batch is cut until the guilty rows
    /// are known.
    Values,
    /// The table, its columns or the account are the reason, not the rows; nothing of the batch is stored. The
    /// error won't pass by itself: a buffer that survives tries again, another hands the rows over with the error.
    Refused,
    /// A view of the table failed, so the error won't pass and rows may be stored. They are handed over with
    /// the error.
    MaybeStored,
}

impl Failure {
    /// Makes the failure of an attempt without an answer: none came, or none could be asked for.
    pub fn passing(message: impl Into<String>) -> Failure {
        Failure { kind: FailureKind::Passing, code: None, message: message.into(), row: None }
    }

    /// Makes the failure of an attempt that ClickHouse answered with an error.
    ///
    /// ClickHouse takes a block through its table's expressions and constraints before anything of it is
    /// kept, and hands it to the views of the table then: an error of a view may come when the table has the
    /// rows. All other errors that are not known to be for good are taken for passing: a repeat under the
    /// same id is harmless, a row that is given up too early is not.
    pub fn of_exception(exception: &Exception) -> Failure {
        let kind = match () {
            () if exception.is_passing() || exception.leaves_outcome_open() => FailureKind::Passing,
            () if is_of_the_structure(exception) => FailureKind::Refused,
            () if exception.comes_of_values() && exception.is_of_a_view() => FailureKind::MaybeStored,
            () if exception.comes_of_values() || is_about_partitions(exception) => FailureKind::Values,
            () if refuses_everything(exception.code) => FailureKind::Refused,
            () => FailureKind::Passing,
        };
        Failure { kind, code: Some(exception.code), message: exception.line.clone(), row: exception.row() }
    }
}

/// Says whether the types in front of the rows are not the table's any more. That error has a code of bad values.
fn is_of_the_structure(exception: &Exception) -> bool {
    exception.code == ErrorCode::INCORRECT_DATA && exception.line.contains(": (while reading header)")
}

/// Says whether a batch has more partitions than one INSERT may write to. Halves of the batch have fewer.
fn is_about_partitions(exception: &Exception) -> bool {
    exception.code == ErrorCode::TOO_MANY_PARTS
}

/// Says whether the error is of the statement, the account or the table, whatever the rows are.
fn refuses_everything(code: ErrorCode) -> bool {
    let is_named = matches!(
        code,
        ErrorCode::NOT_FOUND_COLUMN_IN_BLOCK
            | ErrorCode::NO_SUCH_COLUMN_IN_TABLE
            | ErrorCode::ILLEGAL_COLUMN
            | ErrorCode::UNKNOWN_IDENTIFIER
            | ErrorCode::NOT_IMPLEMENTED
            | ErrorCode::UNKNOWN_TYPE
            | ErrorCode::UNKNOWN_TABLE
            | ErrorCode::SYNTAX_ERROR
            | ErrorCode::UNKNOWN_FORMAT
            | ErrorCode::UNKNOWN_DATABASE
            | ErrorCode::UNKNOWN_SETTING
            | ErrorCode::DATABASE_ACCESS_DENIED
            | ErrorCode::SETTING_CONSTRAINT_VIOLATION
            | ErrorCode::ACCESS_DENIED
            | ErrorCode::UNKNOWN_ROLE
    );
    is_named || code.is_about_identity()
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(code: ErrorCode, text: &str) -> FailureKind {
        Failure::of_exception(&Exception::new(code, text, "(version 26.7.2.1)")).kind
    }

    #[test]
    fn codes_tell_rows_from_circumstances() {
        assert_eq!(
            kind(ErrorCode::VIOLATED_CONSTRAINT, "Constraint `c` for table d.t is violated at row 2."),
            FailureKind::Values
        );
        assert_eq!(
            kind(ErrorCode::TOO_MANY_PARTS, "Too many partitions for single INSERT block (more than 100)."),
            FailureKind::Values
        );
        assert_eq!(kind(ErrorCode::TOO_MANY_PARTS, "Too many parts (3000)"), FailureKind::Passing);
        assert_eq!(kind(ErrorCode::UNKNOWN_TABLE, "Table d.t does not exist"), FailureKind::Refused);
        let header =
            "Type of 'a' must be Int64, not Int32: (while reading header): While executing BinaryRowInputFormat.";
        assert_eq!(kind(ErrorCode::INCORRECT_DATA, header), FailureKind::Refused);
        assert_eq!(
            kind(ErrorCode::VIOLATED_CONSTRAINT, "Constraint `c` is violated: while pushing to view d.v"),
            FailureKind::MaybeStored
        );
        for passing in [
            ErrorCode::SOCKET_TIMEOUT,
            ErrorCode::MEMORY_LIMIT_EXCEEDED,
            ErrorCode::NOT_ENOUGH_SPACE,
            ErrorCode::UNKNOWN_STATUS_OF_INSERT,
            ErrorCode::QUERY_WAS_CANCELLED,
            ErrorCode::QUERY_WITH_SAME_ID_IS_ALREADY_RUNNING,
            ErrorCode::from_number(1002),
        ] {
            assert_eq!(kind(passing, "x"), FailureKind::Passing, "{passing}");
        }
    }

    #[test]
    fn the_row_of_an_error_is_a_hint() {
        let exception = Exception::new(
            ErrorCode::VIOLATED_CONSTRAINT,
            "Constraint `p` for table d.t (uuid) is violated at row 2. Expression",
            "",
        );
        assert_eq!(Failure::of_exception(&exception).row, Some(2));
    }
}
