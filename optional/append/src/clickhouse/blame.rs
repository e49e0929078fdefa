//! The row of a batch that an error of ClickHouse's means.
//!
//! ClickHouse counts the rows of one INSERT, from 1, through all of its blocks (seen with 26.7).

use windrow_clickhouse::Exception;

use crate::error::AppendError;

/// A batch's rows within an INSERT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stretch {
    pub(super) batch: u64,
    pub(super) rows: u64,
}

/// Adds batch and row to an error. `stretches` are in the order in which they were sent.
pub(super) fn locate(exception: Exception, stretches: &[Stretch]) -> AppendError {
    let location = exception.row().and_then(|row| row_location(row - 1, stretches));
    let error = AppendError::from(exception);
    match (location, stretches) {
        (Some(location), _) => error.at(location.batch, Some(location.row)),
        // Nobody else can be meant.
        (None, [only]) => error.at(only.batch, None),
        (None, _) => error,
    }
}

struct RowLocation {
    batch: u64,
    row: u64,
}

fn row_location(mut row: u64, stretches: &[Stretch]) -> Option<RowLocation> {
    for stretch in stretches {
        if row < stretch.rows {
            return Some(RowLocation { batch: stretch.batch, row });
        }
        row -= stretch.rows;
    }
    None
}

#[cfg(test)]
mod tests {
    use windrow_clickhouse::ErrorCode;

    use super::*;

    fn constraint(row: u64) -> Exception {
        let text = format!(
            "Constraint `c` for table d.t (x) is violated at row {row}. Expression: (a < 9). Column values: a = 9"
        );
        Exception::new(ErrorCode::VIOLATED_CONSTRAINT, &text, "")
    }

    #[test]
    fn rows_are_counted_through_all_batches() {
        let stretches = [Stretch { batch: 4, rows: 10 }, Stretch { batch: 5, rows: 0 }, Stretch { batch: 6, rows: 2 }];
        let located = |row| {
            let error = locate(constraint(row), &stretches);
            (error.batch, error.row)
        };
        assert_eq!(located(1), (Some(4), Some(0)));
        assert_eq!(located(10), (Some(4), Some(9)));
        assert_eq!(located(11), (Some(6), Some(0)));
        assert_eq!(located(12), (Some(6), Some(1)));
        assert_eq!(located(13), (None, None));
    }

    #[test]
    fn a_batch_alone_is_to_blame_without_a_row() {
        let error = Exception::new(
            ErrorCode::FUNCTION_THROW_IF_VALUE_IS_NON_ZERO,
            "Value passed to 'throwIf' function is non-zero",
            "",
        );
        let alone = locate(error.clone(), &[Stretch { batch: 3, rows: 7 }]);
        assert_eq!((alone.batch, alone.row), (Some(3), None));
        let several = locate(error, &[Stretch { batch: 3, rows: 7 }, Stretch { batch: 4, rows: 1 }]);
        assert_eq!(several.batch, None);
    }
}
