//! The gateway's own answers on a native connection.

use std::time::{SystemTime, UNIX_EPOCH};

use windrow_clickhouse::native::{Answer, Counter, Fault};
use windrow_clickhouse::ErrorCode;

use crate::error::Refusal;
use crate::insert::Summary;

/// Writes an error for a native client, which adds the code's name and the server's version itself.
pub(super) fn exception(answer: &mut Answer<'_>, refusal: &Refusal) {
    let line = refusal.line("");
    let text = line.strip_prefix(&format!("Code: {}. ", refusal.code)).unwrap_or(&line);
    answer.exception(refusal.code, without_name(text));
}

/// Returns the text without the name of the code, as in `... (UNKNOWN_TABLE)`.
fn without_name(text: &str) -> &str {
    let is_name = |name: &str| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
    };
    match text.strip_suffix(')').and_then(|rest| rest.rsplit_once(" (")) {
        // It stands behind a full stop, which is put there with it.
        Some((text, name)) if is_name(name) => text.strip_suffix('.').unwrap_or(text),
        _ => text,
    }
}

/// Makes the error for bytes that can't be read, as ClickHouse would call it.
pub(super) fn misread(fault: &Fault) -> Refusal {
    use windrow_compression::DecompressError;
    let (code, text) = match fault {
        Fault::Incomplete { .. } => (ErrorCode::INCORRECT_DATA, "A packet ends too early".to_owned()),
        Fault::Malformed(what) => (ErrorCode::INCORRECT_DATA, format!("A packet can't be read: there is {what}")),
        Fault::Unsupported(what) => (ErrorCode::UNSUPPORTED_METHOD, format!("Windrow can't read {what}")),
        Fault::TooLarge(what) => (ErrorCode::TOO_LARGE_STRING_SIZE, format!("A packet is too large: {what}")),
        Fault::Frame(error) => {
            let code = match error {
                DecompressError::Checksum => ErrorCode::CHECKSUM_DOESNT_MATCH,
                DecompressError::Unsupported(_) => ErrorCode::UNKNOWN_CODEC,
                _ => ErrorCode::CANNOT_DECOMPRESS,
            };
            (code, format!("A compressed block can't be read: {error}"))
        }
    };
    Refusal::statement(code, text)
}

/// Returns the counters of an insert's rows, all of which are counted when the last has been taken.
pub(super) fn counters(summary: &Summary, is_async: bool) -> Vec<Counter<'static>> {
    let value = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let counter = |name, number| Counter { name, value: value(number) };
    let mut counters = vec![counter("InsertQuery", 1)];
    if is_async {
        counters.push(counter("AsyncInsertQuery", 1));
    }
    if summary.rows > 0 {
        counters.push(counter("InsertedRows", summary.rows));
        counters.push(counter("InsertedBytes", summary.bytes));
    }
    counters
}

pub(super) fn seconds_now() -> u32 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() as u32)
}
