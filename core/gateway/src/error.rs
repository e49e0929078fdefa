//! The gateway's own errors, in ClickHouse's form.

use windrow_clickhouse::{CallError, ErrorCode, Exception};
use windrow_engine::trace::RequestTrace;
use windrow_engine::{InsertError, PushError};

/// An error for a client: ClickHouse's code and text, and whether trying again soon makes sense.
#[derive(Debug, Clone)]
pub struct Refusal {
    pub code: ErrorCode,
    pub(crate) status: u16,
    pub(crate) text: Text,
    pub(crate) retry_after_seconds: Option<u32>,
    /// Says whether the error came before there was a query, when the wanted form of the answer was not known
    /// either. The answer then has neither a query id nor a compressed body.
    pub(crate) before_query: bool,
}

#[derive(Debug, Clone)]
pub(crate) enum Text {
    /// The gateway's own words. The backend's version is added behind them.
    Own(String),
    /// The backend's own words, unchanged.
    Backend(String),
}

/// Text for a request that there is no memory for now.
pub const NO_ROOM: &str = "Windrow holds as many requests as it may. Nothing was stored; try again later";

/// Text of a gateway that has not taken an insert because it is shutting down.
pub(crate) const ENDING: &str = "Windrow is shutting down";

impl Refusal {
    /// Notes the error's code in a trace, but not its text, which may hold values.
    pub(crate) fn tell(&self, trace: &RequestTrace) {
        trace.note("db.response.status_code", self.code.to_string());
        trace.fail(format!("Code: {}", self.code));
    }

    fn own(code: ErrorCode, text: String) -> Refusal {
        Refusal {
            code,
            status: code.http_status(),
            text: Text::Own(text),
            retry_after_seconds: None,
            before_query: false,
        }
    }

    fn retryable(code: ErrorCode, text: String) -> Refusal {
        Refusal { status: 503, retry_after_seconds: Some(1), ..Refusal::own(code, text) }
    }

    /// Refuses a statement that can't be run, or that failed.
    pub fn statement(code: ErrorCode, text: String) -> Refusal {
        Refusal::own(code, text)
    }

    /// Marks the error as one that came before there was a query.
    pub fn without_query(self) -> Refusal {
        Refusal { before_query: true, ..self }
    }

    /// Passes on an error of the database's own.
    pub fn exception(exception: Exception) -> Refusal {
        Refusal::insert(InsertError::Exception(exception))
    }

    /// Refuses a statement that was sent over HTTP and was not executed, or may not have been.
    pub(crate) fn call(error: CallError) -> Refusal {
        match error {
            CallError::Exception(exception) => Refusal::exception(exception),
            CallError::NotSent(error) => Refusal::unreachable(&error.to_string()),
            CallError::Unknown(cause) => Refusal::backend_lost(&cause),
        }
    }

    pub(crate) fn is_unknown_setting(&self) -> bool {
        self.code == ErrorCode::UNKNOWN_SETTING
    }

    pub fn bad_argument(text: impl Into<String>) -> Refusal {
        Refusal { before_query: true, ..Refusal::own(ErrorCode::BAD_ARGUMENTS, text.into()) }
    }

    /// Refuses the authentication, without the backend's version behind the text: ClickHouse names no version
    /// before there is a session.
    pub(crate) fn authentication(text: &str) -> Refusal {
        let refusal =
            Refusal::insert(InsertError::Exception(Exception::new(ErrorCode::AUTHENTICATION_FAILED, text, "")));
        Refusal { before_query: true, ..refusal }
    }

    /// Refuses a request without a length, in ClickHouse's words, which name no version. The end of the body
    /// is not known, so rows in it would be lost.
    pub(crate) fn length_required(method: &str) -> Refusal {
        let text =
            format!("The Transfer-Encoding is not chunked and there is no Content-Length header for {method} request.");
        let refusal =
            Refusal::insert(InsertError::Exception(Exception::new(ErrorCode::HTTP_LENGTH_REQUIRED, &text, "")));
        Refusal { before_query: true, ..refusal }
    }

    /// Says whether the connection must end after this error.
    pub(crate) fn ends_connection(&self) -> bool {
        self.code == ErrorCode::HTTP_LENGTH_REQUIRED
    }

    pub(crate) fn wrong_password(user: &str) -> Refusal {
        let end = "Authentication failed: password is incorrect, or there is no user with such name.";
        Refusal::authentication(&format!("{user}: {end}"))
    }

    /// Refuses a path that doesn't exist, in ClickHouse's words.
    pub(crate) fn unknown_path(method: &str, path: &str) -> Refusal {
        let text = format!("There is no handle {method} {path}");
        Refusal { status: 404, before_query: true, ..Refusal::own(ErrorCode::BAD_ARGUMENTS, text) }
    }

    /// Refuses a deduplication token that is no text: it could not be told from another one here.
    pub(crate) fn unreadable_token() -> Refusal {
        Refusal::bad_argument("insert_deduplication_token has to be UTF-8 text. The insert was not taken")
    }

    pub(crate) fn readonly(user: &str) -> Refusal {
        Refusal::own(ErrorCode::READONLY, format!("{user}: Cannot execute query in readonly mode"))
    }

    pub(crate) fn unknown_table(database: &str, table: &str) -> Refusal {
        Refusal::own(ErrorCode::UNKNOWN_TABLE, format!("Table {database}.{table} does not exist."))
    }

    /// Refuses an insert for what it asks, with ClickHouse's code for that.
    pub(crate) fn of_insert(code: ErrorCode, text: impl Into<String>) -> Refusal {
        Refusal::own(code, text.into())
    }

    /// Refuses a query id that is in use, in ClickHouse's words. `by` is added behind them.
    pub(crate) fn query_id_in_use(id: &str, by: &str) -> Refusal {
        Refusal::own(
            ErrorCode::QUERY_WITH_SAME_ID_IS_ALREADY_RUNNING,
            format!("Query with id = {id} is already running{by}"),
        )
    }

    pub fn unreachable(cause: &str) -> Refusal {
        Refusal::retryable(
            ErrorCode::NETWORK_ERROR,
            format!("The backend of Windrow cannot be reached: {cause}. Nothing was stored; try again"),
        )
    }

    pub(crate) fn backend_lost(cause: &str) -> Refusal {
        let text = format!("Windrow lost the connection to its backend before the answer: {cause}. The statement may or may not have been executed");
        Refusal { status: 502, ..Refusal::own(ErrorCode::NETWORK_ERROR, text) }
    }

    /// Refuses an insert whose owner, another gateway, is away.
    pub(crate) fn owner_away(gateway: &str, cause: &str, waited_ms: u128, may_have_arrived: bool) -> Refusal {
        let outcome = match may_have_arrived {
            false => "Nothing was stored; try again",
            true => "It may or may not be stored; try again: sent again as it is, it is stored once",
        };
        Refusal::retryable(
            ErrorCode::NETWORK_ERROR,
            format!(
                "The gateway {gateway} owns this insert by its deduplication token or its rows, and cannot be reached: \
                 {cause} (waited {waited_ms} ms: wait_for_async_insert_timeout). {outcome}. Start that gateway again; \
                 one that is gone for good is taken out of cluster.gateways everywhere"
            ),
        )
    }

    /// Refuses an insert whose owner was lost after a part of the insert was sent that can't be sent again.
    pub(crate) fn owner_lost(gateway: &str, cause: &str) -> Refusal {
        let text = format!(
            "The connection to the gateway {gateway}, which owns this insert, was lost before its answer: {cause}. It may or \
             may not be stored; try again: sent again as it is, it is stored once"
        );
        Refusal::retryable(ErrorCode::NETWORK_ERROR, text)
    }

    /// Refuses a request that there is no memory for now.
    pub(crate) fn no_room() -> Refusal {
        Refusal::too_busy(NO_ROOM.to_owned())
    }

    pub(crate) fn too_busy(text: String) -> Refusal {
        Refusal::retryable(ErrorCode::MEMORY_LIMIT_EXCEEDED, text)
    }

    pub(crate) fn push(error: &PushError) -> Refusal {
        match error {
            PushError::Overloaded { max_bytes, whose } => Refusal::too_busy(format!(
                "The buffers of Windrow for {whose} are full ({max_bytes} bytes). The insert was not taken; try again later"
            )),
            PushError::Behind => Refusal::too_busy(
                "Inserts into this table that came before have not been stored yet. The insert was not taken; try again later".into(),
            ),
            PushError::JournalFull { max_bytes, whose } => Refusal::retryable(
                ErrorCode::NOT_ENOUGH_SPACE,
                format!("The journal of Windrow has no room for {whose} ({max_bytes} bytes). The insert was not taken; try again later"),
            ),
            PushError::NotJournaled { cause, is_certain } => {
                let end = match is_certain {
                    true => "The insert was not taken; try again later",
                    false => "The insert was not taken; but if Windrow ends before the disk works again, the next start may find it there, and store it",
                };
                let text = format!("Windrow could not write the insert to its journal: {cause}. {end}");
                Refusal::retryable(ErrorCode::NOT_ENOUGH_SPACE, text)
            }
            PushError::DeadLettersFull { max_bytes } => Refusal::retryable(
                ErrorCode::NOT_ENOUGH_SPACE,
                format!("Inserts into this table have failed, and there is no room for more dead letters ({max_bytes} bytes): retry or discard them. The insert was not taken"),
            ),
            PushError::Failed(error) => Refusal::insert(error.clone()),
            PushError::ShuttingDown => {
                Refusal::retryable(ErrorCode::ABORTED, format!("{ENDING}. The insert was not taken; try again"))
            }
        }
    }

    pub(crate) fn insert(error: InsertError) -> Refusal {
        match error {
            InsertError::Exception(Exception { code, line, .. }) | InsertError::Failed(Exception { code, line, .. }) => Refusal {
                code,
                status: code.http_status(),
                text: Text::Backend(line),
                retry_after_seconds: None,
                before_query: false,
            },
            InsertError::OutcomeUnknown(cause) => Refusal {
                status: 503,
                ..Refusal::own(
                    ErrorCode::NETWORK_ERROR,
                    format!("The backend gave no clear answer while the insert was being stored: {cause}. It may or may not be stored"),
                )
            },
            InsertError::Unreachable(cause) => Refusal::unreachable(&cause),
        }
    }

    /// Makes the error say that other shards have their part of the insert, or may get it.
    pub(crate) fn of_a_part(self) -> Refusal {
        let failure = match &self.text {
            Text::Backend(line) => without_version(line),
            Text::Own(text) => text,
        };
        let text =
            format!("Some shards have stored their part of the insert, or may store it, and one has not: {failure}");
        Refusal { text: Text::Own(text), ..self }
    }

    /// Refuses a repeat of an insert that was cut by shards, when the repeat can't be cut.
    pub(crate) fn was_cut() -> Refusal {
        let text = "When this insert came first, it was cut by the shards of its table, and parts of it are stored or on \
            their way. It can't be cut now, and would be stored once more as a whole: see that the table is the same at \
            every shard, and that the user may insert into it there, then send the insert again as it was";
        Refusal::retryable(ErrorCode::UNKNOWN_STATUS_OF_INSERT, text.to_owned())
    }

    /// Refuses an insert that was taken out of its batch because `wait_for_async_insert_timeout` was over.
    pub(crate) fn withdrawn(timeout_ms: u64, last_error: Option<InsertError>) -> Refusal {
        let text = format!("Wait for async insert timeout ({timeout_ms} ms) exceeded. The insert was withdrawn: nothing of it is or will be stored");
        match last_error {
            Some(InsertError::Unreachable(cause)) => {
                Refusal::unreachable(&format!("{cause} (waited {timeout_ms} ms; the insert was withdrawn)"))
            }
            Some(InsertError::Exception(exception)) if exception.code == ErrorCode::TOO_MANY_PARTS => {
                Refusal::exception(exception)
            }
            Some(error) => {
                Refusal::own(ErrorCode::TIMEOUT_EXCEEDED, format!("{text}. The last attempt ended with: {error}"))
            }
            None => Refusal::own(ErrorCode::TIMEOUT_EXCEEDED, text),
        }
    }

    pub(crate) fn in_flight(timeout_ms: u64) -> Refusal {
        Refusal::own(
            ErrorCode::TIMEOUT_EXCEEDED,
            format!("Wait for async insert timeout ({timeout_ms} ms) exceeded. The insert is in flight: it may still be stored"),
        )
    }

    /// Returns the whole line that a client reads. In a session ClickHouse's errors name no version:
    /// `version` is then empty.
    pub fn line(&self, version: &str) -> String {
        match &self.text {
            Text::Backend(line) if version.is_empty() => without_version(line).to_owned(),
            Text::Backend(line) => line.clone(),
            Text::Own(text) => Exception::new(self.code, text, version).line,
        }
    }
}

fn without_version(line: &str) -> &str {
    match [" (version ", " (DuckDB ", " (ADBC "].iter().find_map(|word| line.rfind(word)) {
        Some(at) if line.ends_with(')') => &line[..at],
        _ => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_gives_up_on_a_table_with_too_many_parts_hears_of_them() {
        let code = |last: Exception| Refusal::withdrawn(100, Some(InsertError::Exception(last))).code;
        assert_eq!(code(Exception::new(ErrorCode::TOO_MANY_PARTS, "Too many parts", "")), ErrorCode::TOO_MANY_PARTS);
        assert_eq!(
            code(Exception::new(ErrorCode::MEMORY_LIMIT_EXCEEDED, "no memory", "")),
            ErrorCode::TIMEOUT_EXCEEDED
        );
    }

    #[test]
    fn a_version_is_taken_off_the_end_only() {
        let line = "Code: 469. DB::Exception: s = ' (version 1)'. (VIOLATED_CONSTRAINT)";
        for version in ["", " (version 26.7.2.1)", " (version 26.8.1.1 (official build))"] {
            let exception = Exception::parse(format!("{line}{version}").as_bytes()).unwrap();
            let refusal = Refusal::insert(InsertError::Exception(exception.clone()));
            assert_eq!(refusal.line("(version 26.7.2.1)"), exception.line, "as it came");
            if !version.is_empty() {
                assert_eq!(refusal.line(""), line);
            }
        }
        assert_eq!(without_version("Code: 1. no version"), "Code: 1. no version");
    }
}
