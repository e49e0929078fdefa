//! The words of our own errors.

use windrow_clickhouse::{ErrorCode, Exception};

use crate::error::AppendError;
use crate::id::AppendId;
use crate::progress::NoEnd;
use crate::request::MAX_BATCHES;

/// Makes the error of a database without transactions. `version` is the text that ends the texts of errors.
pub(crate) fn no_transactions(version: &str) -> AppendError {
    let text = "Ordered appends are all or nothing, which needs transactions, and this database's ADBC driver has none: \
                what was written of an append that fails could not be taken back. Use inserts, or a driver with transactions";
    AppendError::from(Exception::new(ErrorCode::NOT_IMPLEMENTED, text, version))
}

/// Makes the error of a question that comes before anything is taken: while the database is away it may be
/// asked again.
pub(crate) fn of_asking(exception: Exception) -> AppendError {
    let error = AppendError::from(exception);
    match error.exception.code {
        ErrorCode::NETWORK_ERROR => AppendError { status: 503, retry_after_seconds: Some(1), ..error },
        _ => error,
    }
}

pub(crate) fn nobody_knows(id: AppendId) -> AppendError {
    let text = format!(
        "The connection was lost while the append {id} was committed, and this database doesn't tell whether that goes \
         on: look at the table before anything is sent again"
    );
    AppendError::new(ErrorCode::UNKNOWN_STATUS_OF_INSERT, &text)
}

/// Makes the error of an append that is gone. The client that appends knows that by 404 and this code.
pub(crate) fn gone(id: AppendId) -> AppendError {
    let text = format!("There is no append {id}: nothing of it is stored. Open it anew and send all batches again");
    AppendError::new(ErrorCode::BAD_ARGUMENTS, &text).with_status(404)
}

pub(crate) fn not_known_here(id: AppendId) -> AppendError {
    let text = format!(
        "The append {id} is not known here. If all its requests came to this gateway, nothing of it is stored: open it \
         anew and send all batches again. If another gateway may have got some of them, ask that one first, or look at \
         the table: it may be stored"
    );
    AppendError::new(ErrorCode::BAD_ARGUMENTS, &text).with_status(404)
}

pub(crate) fn not_yours(id: AppendId) -> AppendError {
    AppendError::new(ErrorCode::ACCESS_DENIED, &format!("The append {id} belongs to another user")).with_status(403)
}

pub(crate) fn opened_otherwise(id: AppendId, what: &str, first: &str, now: &str) -> AppendError {
    let text = format!(
        "The append {id} was opened with {what} {first}, and this request has {now}: what it has and what comes would not \
         fit together. Go on with what it was begun with, or begin anew with another id"
    );
    AppendError::new(ErrorCode::BAD_ARGUMENTS, &text).with_status(409)
}

pub(crate) fn too_many_open(max_open: usize) -> AppendError {
    AppendError::try_again(
        ErrorCode::TOO_MANY_SIMULTANEOUS_QUERIES,
        &format!("{max_open} appends are open (append.max_open). Try again later"),
    )
}

pub(crate) fn too_many_of_user(user: &str, max_open: usize) -> AppendError {
    let text = format!(
        "User {user} has {max_open} appends open (append.max_open_per_user). Commit or abort some, or try again later: \
         those that are silent are dropped after a while"
    );
    AppendError::try_again(ErrorCode::TOO_MANY_SIMULTANEOUS_QUERIES, &text)
}

pub(crate) fn shutting_down() -> AppendError {
    AppendError::try_again(
        ErrorCode::ABORTED,
        "Windrow is shutting down. Nothing of the append is stored; open it anew",
    )
}

pub(crate) fn aborted(id: AppendId) -> AppendError {
    AppendError::new(ErrorCode::ABORTED, &format!("The append {id} was aborted: nothing of it is stored"))
        .with_status(409)
}

pub(crate) fn already_committed(id: AppendId) -> AppendError {
    AppendError::new(ErrorCode::BAD_ARGUMENTS, &format!("The append {id} is committed")).with_status(409)
}

pub(crate) fn still_committing(id: AppendId) -> AppendError {
    let text = format!("The append {id} is being committed: it was decided before this gateway was started anew");
    AppendError::try_again(ErrorCode::ABORTED, &text)
}

pub(crate) fn idle(timeout_ms: u64, missing: u64) -> AppendError {
    let text =
        format!("Batch {missing} of the append did not come within {timeout_ms} ms (append.idle_timeout_ms). The append was dropped: nothing of what came to this gateway is stored");
    AppendError::new(ErrorCode::TIMEOUT_EXCEEDED, &text)
}

pub(crate) fn behind_end(number: u64, batches: u64) -> AppendError {
    let text = format!("Batch {number} lies behind the end of the append, which has {batches} batches");
    AppendError::new(ErrorCode::BAD_ARGUMENTS, &text).at(number, None)
}

pub(crate) fn number_too_large(number: u64) -> AppendError {
    AppendError::new(
        ErrorCode::BAD_ARGUMENTS,
        &format!("Batches are numbered from 0 to {}: there is no {number}", MAX_BATCHES - 1),
    )
}

pub(crate) fn no_end(batches: u64, why: NoEnd) -> AppendError {
    let text = match why {
        NoEnd::Differs { batches: before } => {
            format!("The append was to be committed with {before} batches, not {batches}")
        }
        NoEnd::HasMore { batch } => {
            format!("The append can't be committed with {batches} batches: batch {batch} has come")
        }
        NoEnd::TooLarge => format!("An append has at most {MAX_BATCHES} batches, not {batches}"),
    };
    AppendError::new(ErrorCode::BAD_ARGUMENTS, &text)
}

pub(crate) fn batch_too_large(max_bytes: u64) -> AppendError {
    let text = format!("The batch is larger than {max_bytes} bytes (append.max_batch_bytes): cut it smaller");
    AppendError::new(ErrorCode::QUERY_IS_TOO_LARGE, &text)
}

pub(crate) fn no_room(missing: u64) -> AppendError {
    let text = format!("There is no room for the batch before batch {missing} has come and others are stored. The batch was not taken; send it again later");
    AppendError::try_again(ErrorCode::MEMORY_LIMIT_EXCEEDED, &text)
}

pub(crate) fn no_space(cause: &std::io::Error) -> AppendError {
    let text = format!("The batch could not be kept in a file: {cause}. The batch was not taken; send it again later");
    AppendError::try_again(ErrorCode::NOT_ENOUGH_SPACE, &text)
}

pub(crate) fn lost_file(cause: &std::io::Error) -> AppendError {
    AppendError::new(
        ErrorCode::NOT_ENOUGH_SPACE,
        &format!("A batch that was kept in a file can't be read back: {cause}"),
    )
}

pub(crate) fn fault_of_ours() -> AppendError {
    AppendError::new(
        ErrorCode::LOGICAL_ERROR,
        "The append failed by a fault in Windrow, which its log tells. Nothing of it is stored",
    )
}

pub(crate) fn committed_otherwise(batches: u64, asked: u64) -> AppendError {
    AppendError::new(ErrorCode::BAD_ARGUMENTS, &format!("The append is committed with {batches} batches, not {asked}"))
        .with_status(409)
}

pub(crate) fn unpacks_to_too_much() -> AppendError {
    let text = "The batch unpacks to more than append.max_batch_bytes allows: cut it smaller";
    AppendError::new(ErrorCode::QUERY_IS_TOO_LARGE, text)
}
