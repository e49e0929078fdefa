//! Errors as gRPC tells them: a status by ClickHouse's code, and ClickHouse's text.

use tonic::{Code, Status};
use windrow_clickhouse::CallError;
use windrow_clickhouse::Exception;

/// Texts travel in a header field, and some clients take no more than 8 KiB of those, percent-encoded.
const MAX_TEXT_BYTES: usize = 2_400;

pub(crate) fn status(exception: &Exception) -> Status {
    with_text(code(exception.code), &exception.line)
}

/// `text` as far as it fits; of a longer one the end is kept too, where the error's name stands.
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

/// An error of the gateway's own.
pub(crate) fn own(code: i32, text: &str) -> Exception {
    Exception::new(code, text, "")
}

pub(crate) fn of_call(error: CallError) -> Exception {
    match error {
        CallError::Exception(exception) => exception,
        CallError::NotSent(error) => own(210, &error.to_string()),
        CallError::Unknown(text) => own(209, &text),
    }
}

fn code(clickhouse: i32) -> Code {
    match clickhouse {
        192 | 193 | 194 | 516 => Code::Unauthenticated,
        164 | 497 => Code::PermissionDenied,
        57 | 82 => Code::AlreadyExists,
        60 | 81 => Code::NotFound,
        48 => Code::Unimplemented,
        202 | 241 | 243 | 252 => Code::ResourceExhausted,
        159 => Code::DeadlineExceeded,
        209 | 210 | 279 => Code::Unavailable,
        394 => Code::Cancelled,
        349 | 469 => Code::InvalidArgument,
        _ => match windrow_clickhouse::http_status(clickhouse) {
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
        let said = status(&own(60, "Table d.t does not exist"));
        assert_eq!(said.code(), Code::NotFound);
        assert_eq!(said.message(), "Code: 60. DB::Exception: Table d.t does not exist. (UNKNOWN_TABLE)");
    }

    #[test]
    fn a_long_text_keeps_its_ends() {
        let said = status(&own(62, &"ü".repeat(5_000)));
        assert!(said.message().len() < MAX_TEXT_BYTES);
        assert!(said.message().starts_with("Code: 62.") && said.message().ends_with("(SYNTAX_ERROR)"));
    }
}
