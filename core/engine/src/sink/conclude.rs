//! Conclusions from a ClickHouse error about the rows that were sent: whether some of them may be stored.
//!
//! ClickHouse takes a block through its table's expressions and constraints, hands it to the table and from
//! there to the views that hang on it, and keeps what was written when the block is through. So an error that
//! comes from the values, and is not a view's, was raised before anything was kept. An error of a view is
//! raised when the table, and other views, may already have the rows (they mostly have). The text of a view's
//! error says that it is one.
//!
//! A batch over several partitions is written as several parts, all of them before the first is kept
//! (`spread.rs`). Between the first part that is kept and the last, only a disk or Keeper can fail; values
//! can't, and memory has been taken by then. If the table has a window, and such an error passes, the same
//! batch is sent again.

use windrow_clickhouse::{ErrorCode, Exception};

use crate::sink::batch::Destination;
use crate::sink::contract::StoreError;

pub(crate) fn conclude(exception: Exception, destination: &Destination, spans_partitions: bool) -> StoreError {
    if exception.code == ErrorCode::QUERY_WITH_SAME_ID_IS_ALREADY_RUNNING {
        return StoreError::StillRunning(exception.line);
    }
    if is_timeout_before_writing(&exception) {
        return StoreError::Refused(exception);
    }
    if exception.leaves_outcome_open() || is_read_only_at_last(&exception) {
        return StoreError::Unknown(exception.line);
    }
    match stores_nothing(&exception, destination, spans_partitions) {
        true => StoreError::Refused(exception),
        // Some partitions may have their rows, and will know them again.
        false if exception.is_passing() && knows_every_part_again(destination) => StoreError::Unknown(exception.line),
        false => StoreError::Failed(exception),
    }
}

/// Says whether a replica found its table read-only at last. A replica that loses its Keeper while it commits
/// tries again, and gets this error then: what it tried first may be stored.
fn is_read_only_at_last(exception: &Exception) -> bool {
    exception.code == ErrorCode::TABLE_IS_READ_ONLY && !exception.before_writing
}

/// Says whether the user's own limit of time was over while rows were read and computed.
fn is_timeout_before_writing(exception: &Exception) -> bool {
    exception.code == ErrorCode::TIMEOUT_EXCEEDED && exception.before_writing
}

/// Says whether the same batch may be sent again, however much of it is stored.
fn knows_every_part_again(destination: &Destination) -> bool {
    destination.deduplicates && !destination.has_views && !destination.hands_on
}

fn stores_nothing(exception: &Exception, destination: &Destination, spans_partitions: bool) -> bool {
    if exception.before_writing {
        return true;
    }
    let Destination { has_views, hands_on, .. } = destination;
    if exception.is_of_a_view() || *hands_on && exception.is_of_another_server() {
        return false;
    }
    if comes_before_writing(exception.code) {
        return true;
    }
    let is_before_keeping = exception.comes_of_values() || exception.code == ErrorCode::TOO_MANY_PARTS;
    let is_of_one_part = !has_views && (!spans_partitions || exception.code == ErrorCode::MEMORY_LIMIT_EXCEEDED);
    !hands_on && (is_before_keeping || is_of_one_part)
}

/// Says whether the error comes from a check before anything is written: of who asks, and of whether the
/// statement may run at all.
fn comes_before_writing(code: ErrorCode) -> bool {
    let is_named = matches!(
        code,
        ErrorCode::NO_SUCH_COLUMN_IN_TABLE
            | ErrorCode::UNKNOWN_TABLE
            | ErrorCode::UNKNOWN_DATABASE
            | ErrorCode::UNKNOWN_SETTING
            | ErrorCode::QUOTA_EXCEEDED
            | ErrorCode::TOO_MANY_SIMULTANEOUS_QUERIES
            | ErrorCode::UNKNOWN_ROLE
    );
    is_named || code.is_about_identity()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sink::batch::Form;
    use windrow_clickhouse::Credentials;

    fn destination(has_views: bool, hands_on: bool) -> Destination {
        Destination {
            database: "d".into(),
            table: "t".into(),
            columns: vec![],
            form: Form::Native { types: vec![] },
            credentials: Credentials { user: "u".into(), password: "p".into() },
            own_account: false,
            roles: vec![],
            quota_key: String::new(),
            shard: None,
            settings: vec![],
            deduplicates: false,
            is_replicated: false,
            has_views,
            hands_on,
            partitioning: None,
        }
    }

    fn refused(code: ErrorCode, text: &str, has_views: bool, hands_on: bool) -> bool {
        match conclude(Exception::new(code, text, ""), &destination(has_views, hands_on), false) {
            StoreError::Refused(_) => true,
            StoreError::Failed(_) => false,
            other => panic!("{other}"),
        }
    }

    #[test]
    fn what_the_table_itself_refuses_is_not_stored() {
        for (code, text) in [
            (ErrorCode::VIOLATED_CONSTRAINT, "Constraint `c` for table d.t is violated at row 8."),
            (ErrorCode::FUNCTION_THROW_IF_VALUE_IS_NON_ZERO, "Value passed to 'throwIf' function is non-zero"),
            (ErrorCode::TOO_MANY_PARTS, "Too many partitions for single INSERT block (more than 100)."),
            (ErrorCode::TOO_MANY_PARTS, "Too many parts (300) in table 'd.t'."),
            (ErrorCode::AUTHENTICATION_FAILED, "Authentication failed"),
            (ErrorCode::UNKNOWN_TABLE, "Table d.t does not exist"),
        ] {
            assert!(refused(code, text, false, false), "{text}");
            assert!(refused(code, text, true, false), "{text}");
        }
        assert!(refused(ErrorCode::NOT_ENOUGH_SPACE, "Cannot reserve 1.00 MiB, not enough space", false, false));
        assert!(
            !refused(ErrorCode::NOT_ENOUGH_SPACE, "Cannot reserve 1.00 MiB, not enough space", true, false),
            "a view may be through"
        );
    }

    #[test]
    fn what_a_view_refuses_may_be_stored_also_where_no_view_was_known() {
        for has_views in [true, false] {
            assert!(!refused(
                ErrorCode::VIOLATED_CONSTRAINT,
                "Constraint `c` for table d.u is violated: while pushing to view d.v",
                has_views,
                false
            ));
            assert!(!refused(
                ErrorCode::TOO_MANY_PARTS,
                "Too many parts (300): while pushing to view d.v.",
                has_views,
                false
            ));
        }
    }

    #[test]
    fn a_part_of_a_batch_that_a_window_knows_is_sent_again() {
        let away = || Exception::new(ErrorCode::NO_ZOOKEEPER, "Cannot get ZooKeeper", "");
        let is_sent_again = |destination: &Destination, exception: Exception| {
            matches!(conclude(exception, destination, true), StoreError::Unknown(_))
        };
        let known = Destination { deduplicates: true, ..destination(false, false) };
        assert!(is_sent_again(&known, away()));
        assert!(
            !is_sent_again(&known, Exception::new(ErrorCode::UNKNOWN_CODEC, "Unknown codec family code", "")),
            "it does not pass"
        );
        assert!(!is_sent_again(&destination(false, false), away()), "a repeat would not be known");
        let viewed = Destination { deduplicates: true, ..destination(true, false) };
        assert!(!is_sent_again(&viewed, away()), "a view would get its rows twice, or not at all");
        assert!(matches!(conclude(away(), &known, false), StoreError::Refused(_)), "one part is stored or not");
    }

    #[test]
    fn a_table_that_is_read_only_at_last_may_have_the_rows() {
        let mut exception = Exception::new(
            ErrorCode::TABLE_IS_READ_ONLY,
            "Table is in readonly mode: replica_path=/d/t/replicas/1.",
            "",
        );
        for spans_partitions in [false, true] {
            let concluded = conclude(exception.clone(), &destination(false, false), spans_partitions);
            assert!(matches!(concluded, StoreError::Unknown(_)), "{concluded}");
        }
        exception.before_writing = true;
        assert!(matches!(conclude(exception, &destination(false, false), true), StoreError::Refused(_)));
    }

    #[test]
    fn where_no_row_was_counted_none_is_stored() {
        let text = "Cannot parse input: (at row 3): while pushing to view d.v";
        let mut exception = Exception::new(ErrorCode::CANNOT_PARSE_INPUT_ASSERTION_FAILED, text, "");
        assert!(matches!(conclude(exception.clone(), &destination(true, true), false), StoreError::Failed(_)));
        exception.before_writing = true;
        assert!(matches!(conclude(exception, &destination(true, true), false), StoreError::Refused(_)));
    }

    #[test]
    fn what_is_handed_on_may_be_stored_elsewhere() {
        assert!(!refused(ErrorCode::VIOLATED_CONSTRAINT, "Constraint `c` for table d.u is violated.", false, true));
        assert!(!refused(
            ErrorCode::AUTHENTICATION_FAILED,
            "Received from other:9000. DB::Exception: Authentication failed",
            false,
            true
        ));
        assert!(refused(ErrorCode::UNKNOWN_TABLE, "Table d.t does not exist", false, true));
        assert!(
            refused(ErrorCode::VIOLATED_CONSTRAINT, "Column values: s = 'Received from 10.1.2.3'.", false, false),
            "a value, no server"
        );
    }

    #[test]
    fn of_several_partitions_some_may_be_kept_when_a_disk_fails() {
        let is_refused = |code: ErrorCode| {
            let exception = Exception::new(code, "", "");
            matches!(conclude(exception, &destination(false, false), true), StoreError::Refused(_))
        };
        for code in [
            ErrorCode::ILLEGAL_DIVISION,
            ErrorCode::MEMORY_LIMIT_EXCEEDED,
            ErrorCode::TOO_MANY_PARTS,
            ErrorCode::FUNCTION_THROW_IF_VALUE_IS_NON_ZERO,
            ErrorCode::VIOLATED_CONSTRAINT,
            ErrorCode::UNKNOWN_TABLE,
            ErrorCode::AUTHENTICATION_FAILED,
        ] {
            assert!(is_refused(code), "{code} comes before the first part is kept");
        }
        for code in [
            ErrorCode::CANNOT_WRITE_TO_FILE_DESCRIPTOR,
            ErrorCode::TABLE_IS_READ_ONLY,
            ErrorCode::NOT_ENOUGH_SPACE,
            ErrorCode::S3_ERROR,
            ErrorCode::STD_EXCEPTION,
        ] {
            assert!(!is_refused(code), "{code}");
        }
    }

    #[test]
    fn open_outcomes_stay_open() {
        let conclude = |code| conclude(Exception::new(code, "", ""), &destination(false, false), false);
        assert!(matches!(conclude(ErrorCode::UNKNOWN_STATUS_OF_INSERT), StoreError::Unknown(_)));
        assert!(matches!(conclude(ErrorCode::QUERY_WITH_SAME_ID_IS_ALREADY_RUNNING), StoreError::StillRunning(_)));
    }

    #[test]
    fn a_limit_of_time_that_ends_before_anything_is_written_leaves_nothing_open() {
        let mut exception =
            Exception::new(ErrorCode::TIMEOUT_EXCEEDED, "Timeout exceeded: elapsed 1.2 seconds, maximum: 1", "");
        let all = || [destination(false, false), destination(true, true)];
        for destination in all() {
            assert!(matches!(conclude(exception.clone(), &destination, false), StoreError::Unknown(_)));
        }
        exception.before_writing = true;
        for destination in all() {
            assert!(matches!(conclude(exception.clone(), &destination, false), StoreError::Refused(_)));
        }
    }
}
