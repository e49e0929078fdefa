//! Errors for gRPC: a status that follows from ClickHouse's code, and ClickHouse's text.

use tonic::{Code, Status};
use windrow_clickhouse::{CallError, ErrorCode, Exception};

/// The most bytes of an error's text. It travels in a header field, and some clients accept only 8 KiB of
/// those, percent-encoded.
const MAX_TEXT_BYTES: usize = 2_400;

pub(crate) fn status(exception: &Exception) -> Status {
    with_text(code(exception.code), &exception.line)
}

/// Makes a status with `text`, as far as it fits. The end of a longer text is kept too, since the error's
/// name is there.
pub(crate) fn with_text(code: Code, text: &str) -> Status {
    if text.len() <= MAX_TEXT_BYTES {
        return Status::new(code, text);
    }
    let begin = boundary_at_or_before(text, MAX_TEXT_BYTES - 300);
    let end = boundary_at_or_before(text, text.len() - 250);
    Status::new(code, format!("{} ... {}", &text[..begin], &text[end..]))
}

fn boundary_at_or_before(text: &str, at: usize) -> usize {
    (0..=at).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0)
}

/// Makes an error of the gateway's own.
pub(crate) fn own(code: ErrorCode, text: &str) -> Exception {
    Exception::new(code, text, "")
}

pub(crate) fn of_call(error: CallError) -> Exception {
    match error {
        CallError::Exception(exception) => exception,
        CallError::NotSent(error) => own(ErrorCode::NETWORK_ERROR, &error.to_string()),
        CallError::Unknown(text) => own(ErrorCode::SOCKET_TIMEOUT, &text),
    }
}

fn code(clickhouse: ErrorCode) -> Code {
    match clickhouse {
        _ if clickhouse.is_about_identity() => Code::Unauthenticated,
        ErrorCode::READONLY | ErrorCode::ACCESS_DENIED => Code::PermissionDenied,
        ErrorCode::TABLE_ALREADY_EXISTS | ErrorCode::DATABASE_ALREADY_EXISTS => Code::AlreadyExists,
        ErrorCode::UNKNOWN_TABLE | ErrorCode::UNKNOWN_DATABASE => Code::NotFound,
        ErrorCode::NOT_IMPLEMENTED => Code::Unimplemented,
        ErrorCode::TOO_MANY_SIMULTANEOUS_QUERIES
        | ErrorCode::MEMORY_LIMIT_EXCEEDED
        | ErrorCode::NOT_ENOUGH_SPACE
        | ErrorCode::TOO_MANY_PARTS => Code::ResourceExhausted,
        ErrorCode::TIMEOUT_EXCEEDED => Code::DeadlineExceeded,
        ErrorCode::SOCKET_TIMEOUT | ErrorCode::NETWORK_ERROR | ErrorCode::ALL_CONNECTION_TRIES_FAILED => {
            Code::Unavailable
        }
        ErrorCode::QUERY_WAS_CANCELLED => Code::Cancelled,
        ErrorCode::CANNOT_INSERT_NULL_IN_ORDINARY_COLUMN | ErrorCode::VIOLATED_CONSTRAINT => Code::InvalidArgument,
        _ => match clickhouse.http_status() {
            400..=499 => Code::InvalidArgument,
            _ => Code::Internal,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_says_what_the_database_said() {
        let said = status(&own(ErrorCode::UNKNOWN_TABLE, "Table d.t does not exist"));
        assert_eq!(said.code(), Code::NotFound);
        assert_eq!(said.message(), "Code: 60. DB::Exception: Table d.t does not exist. (UNKNOWN_TABLE)");
    }

    #[test]
    fn a_long_text_keeps_its_ends() {
        let said = status(&own(ErrorCode::SYNTAX_ERROR, &"ü".repeat(5_000)));
        assert!(said.message().len() < MAX_TEXT_BYTES);
        assert!(said.message().starts_with("Code: 62.") && said.message().ends_with("(SYNTAX_ERROR)"));
    }
}
