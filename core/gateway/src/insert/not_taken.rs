//! Refusals of inserts that only the gateway could take. With a ClickHouse, they would be forwarded instead.

use windrow_clickhouse::ErrorCode;
use windrow_columns::{Format, NotParsedReason, PassthroughFormat, ReadSettings, SettingEffect};

use super::prepare::InsertRequest;
use super::readers::Unread;
use super::role::{role, Role};
use crate::admission::TableSchema;
use crate::error::Refusal;
use crate::forward_reason::ForwardReason::{self, NotParsed};

/// Bound of a row's bytes that are shown.
const SHOWN_BYTES: usize = 200;

/// Makes the refusal of an insert whose payload has not been looked at. `reason` is that of a forwarding.
pub(crate) fn not_admitted(reason: ForwardReason, request: &InsertRequest, schema: Option<&TableSchema>) -> Refusal {
    match reason {
        ForwardReason::Format => unknown_format(&request.statement.format),
        ForwardReason::SystemTable => {
            Refusal::of_insert(ErrorCode::NOT_IMPLEMENTED, "Inserts into system tables are not supported")
        }
        ForwardReason::Columns => columns(request, schema),
        ForwardReason::Type => unknown_type(request, schema),
        ForwardReason::Setting => setting(request),
        other => not_taken(other),
    }
}

/// Makes the refusal for a reason that needs no more words.
pub(crate) fn not_taken(reason: ForwardReason) -> Refusal {
    let text = match reason {
        ForwardReason::QueryId => "The query id is too long, or in use",
        ForwardReason::Refused => {
            "The request names a session without an id, or two quota keys, or the server is too busy"
        }
        ForwardReason::Setting => "A parameter that frames the request has a value that is not understood",
        ForwardReason::Session => "Sessions that change settings are not supported",
        ForwardReason::NotText => "A parameter of the request is no text",
        ForwardReason::Encoding => "The body's encoding is not known, or the body is not encoded as it says",
        _ => {
            return Refusal::of_insert(
                ErrorCode::NOT_IMPLEMENTED,
                format!("The insert can't be taken with this backend ({reason})"),
            )
        }
    };
    Refusal::of_insert(ErrorCode::BAD_ARGUMENTS, format!("{text}. The insert was not taken"))
}

/// Makes the refusal of an insert that is larger than the bytes that can be held at once.
pub(crate) fn too_large(max_bytes: u64) -> Refusal {
    Refusal::of_insert(
        ErrorCode::MEMORY_LIMIT_EXCEEDED,
        format!(
            "The insert is larger than what Windrow holds for one table ({max_bytes} bytes: gather.max_buffer_bytes times \
             gather.max_table_share). The insert was not taken: send it in pieces, or as an ordered append"
        ),
    )
}

/// Makes the refusal of a payload that can't be read in its format.
pub(crate) fn unreadable(format: &str, unread: Unread, payload: &[u8]) -> Refusal {
    let (code, what) = match unread.reason {
        NotParsed(NotParsedReason::Null) => {
            (ErrorCode::CANNOT_INSERT_NULL_IN_ORDINARY_COLUMN, "a NULL where the column takes none")
        }
        NotParsed(NotParsedReason::UnknownField) => (ErrorCode::INCORRECT_DATA, "a field with the name of no column"),
        NotParsed(NotParsedReason::DuplicateField) => (ErrorCode::INCORRECT_DATA, "a field that is given twice"),
        NotParsed(NotParsedReason::MixedDefaults) => (
            ErrorCode::NOT_IMPLEMENTED,
            "a column with a DEFAULT, or without NULL, that some rows give and others leave out",
        ),
        NotParsed(NotParsedReason::ColumnKind) => (ErrorCode::INCORRECT_DATA, "a column that can't be inserted into"),
        NotParsed(NotParsedReason::TimeZone) => {
            (ErrorCode::NOT_IMPLEMENTED, "a local time that its time zone has twice or not at all")
        }
        NotParsed(NotParsedReason::Setting) => (ErrorCode::NOT_IMPLEMENTED, "what a setting asks for"),
        NotParsed(NotParsedReason::TooDeep) => (ErrorCode::TOO_DEEP_RECURSION, "values that are nested too deep"),
        _ => (ErrorCode::CANNOT_PARSE_INPUT_ASSERTION_FAILED, "a value or its syntax"),
    };
    let at = format!(" (at row {})", unread.rows_before + 1);
    let row = row(format, payload, unread.rows_before).map(|row| format!(": {row}")).unwrap_or_default();
    Refusal::of_insert(code, format!("Cannot parse input as {format}: {what}{at}{row}"))
}

/// Returns the row's text, in formats in which a row usually is a line.
fn row(format: &str, payload: &[u8], rows_before: u64) -> Option<String> {
    let header_lines = match format {
        _ if format.ends_with("WithNamesAndTypes") => 2,
        _ if format.ends_with("WithNames") => 1,
        _ => 0,
    };
    if !["JSON", "CSV", "TSV", "TabSeparated"].iter().any(|lines| format.starts_with(lines)) {
        return None;
    }
    let number = usize::try_from(rows_before).ok()?.checked_add(header_lines)?;
    let line = payload.split(|&byte| byte == b'\n').nth(number)?;
    let shown = String::from_utf8_lossy(&line[..line.len().min(SHOWN_BYTES)]).trim_end().to_owned();
    let cut = if line.len() > SHOWN_BYTES { "..." } else { "" };
    (!shown.is_empty()).then(|| format!("'{shown}{cut}'"))
}

fn unknown_format(name: &str) -> Refusal {
    match PassthroughFormat::named(name) {
        Some(_) => {
            Refusal::of_insert(ErrorCode::NOT_IMPLEMENTED, format!("Windrow can't read the format {name} itself"))
        }
        None => Refusal::of_insert(ErrorCode::UNKNOWN_FORMAT, format!("Unknown format {name}.")),
    }
}

fn columns(request: &InsertRequest, schema: Option<&TableSchema>) -> Refusal {
    let names = request.statement.columns.as_deref().unwrap_or_default();
    let table = &request.table.table;
    let missing = schema.and_then(|schema| names.iter().find(|name| !schema.has_column(name)));
    match missing {
        Some(name) => {
            Refusal::of_insert(ErrorCode::NO_SUCH_COLUMN_IN_TABLE, format!("No such column {name} in table {table}."))
        }
        None => Refusal::of_insert(
            ErrorCode::DUPLICATE_COLUMN,
            format!("A column of table {table} is named twice, or there is none"),
        ),
    }
}

fn unknown_type(request: &InsertRequest, schema: Option<&TableSchema>) -> Refusal {
    let names = request.statement.columns.as_deref();
    let column = schema.and_then(|schema| schema.unknown_type(names)).unwrap_or_else(|| "A column".to_owned());
    Refusal::of_insert(
        ErrorCode::UNKNOWN_TYPE,
        format!("{column} can't be inserted into by a format: name the other columns in the INSERT, or use SQL"),
    )
}

fn setting(request: &InsertRequest) -> Refusal {
    let read = |name: &str, value: &str| match Format::named(&request.statement.format) {
        Some(format) => ReadSettings::of(format).set(name, value),
        None => SettingEffect::Irrelevant,
    };
    let is_it = |name: &str, value: &str| {
        matches!(role(name), Role::Request | Role::Alone | Role::Query) || read(name, value) == SettingEffect::NotParsed
    };
    let found = request.settings.iter().find(|(name, value)| is_it(name, value));
    match found {
        Some((name, value)) => Refusal::of_insert(
            ErrorCode::NOT_IMPLEMENTED,
            format!(
                "The setting {name} = '{value}' is not supported for inserts with this backend. The insert was not taken"
            ),
        ),
        None => Refusal::of_insert(
            ErrorCode::BAD_ARGUMENTS,
            "A setting has a value that is not supported for inserts with this backend. The insert was not taken",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(format: &str, rows_before: u64, payload: &str) -> String {
        let unread = Unread { reason: NotParsed(NotParsedReason::Value), rows_before, payload_bytes: 0 };
        unreadable(format, unread, payload.as_bytes()).line("(DuckDB v1.5.6)")
    }

    #[test]
    fn an_unreadable_payload_is_told_with_its_row() {
        assert_eq!(
            text("JSONEachRow", 1, "{\"a\":1}\n{\"a\":x}\n"),
            "Code: 27. DB::Exception: Cannot parse input as JSONEachRow: a value or its syntax (at row 2): '{\"a\":x}'. \
             (CANNOT_PARSE_INPUT_ASSERTION_FAILED) (DuckDB v1.5.6)"
        );
        assert!(text("CSVWithNames", 0, "a\nzz\n").contains("(at row 1): 'zz'"));
        assert!(!text("Native", 3, "\n\n\n\nsecret").contains("secret"));
        assert!(text("CSV", 0, &"x".repeat(500)).contains("xxx...'"));
        assert!(text("CSV", 7, "short").contains("(at row 8). "));
    }
}
