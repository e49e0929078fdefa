//! Meaning of each URL parameter or setting for an insert: this is the one table that decides.

use super::dedup_settings::is_dedup_setting;
use crate::clickhouse_settings::is_known_setting;

/// Meaning of a parameter for an insert.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// The parameter is no setting: it says who asks, what, or how the answer is to be framed.
    Request,
    /// The parameter is of this request alone, such as its place in a log or a trace: no other has the same.
    Private,
    /// The setting concerns the answer, the log or the effort, and neither the stored rows nor their batch.
    Harmless,
    /// The setting says how values become text. It changes the stored rows where the table computes
    /// something: a DEFAULT, a view.
    Formatting,
    /// The setting says whether, how and for how long to gather.
    Gathering,
    /// The setting says whether a repeat of the insert is to be recognised.
    Deduplication,
    /// The setting is Windrow's own; the backend does not know it.
    Windrow,
    /// The setting says what format the data is in. Probe and flush don't carry it: they have their own.
    Query,
    /// The setting makes the insert one that can't share a batch: the insert is forwarded.
    Alone,
    /// The setting is any other known one: inserts with the same values share a batch, and the backend is
    /// told. The readers know the settings that change how payloads are read; an unknown one may do so, too.
    Shape,
}

pub(crate) fn role(name: &str) -> Role {
    match name {
        "query"
        | "query_id"
        | "database"
        | "default_format"
        | "user"
        | "password"
        | "quota_key"
        | "session_id"
        | "session_timeout"
        | "role"
        | "compress"
        | "decompress"
        | "client_protocol_version" => Role::Request,
        "format" | "input_format" => Role::Query,
        "async_insert" | "wait_for_async_insert" | "wait_for_async_insert_timeout" => Role::Gathering,
        _ if name.starts_with("windrow_") => Role::Windrow,
        _ if is_gathering(name) => Role::Gathering,
        _ if is_dedup_setting(name) => Role::Deduplication,
        _ if is_alone(name) => Role::Alone,
        "log_comment" => Role::Private,
        _ if name.starts_with("param_") => Role::Private,
        _ if name.starts_with("output_format_") => Role::Formatting,
        _ if is_harmless(name) => Role::Harmless,
        _ if is_known_setting(name) || name.starts_with(CUSTOM) => Role::Shape,
        _ => Role::Alone,
    }
}

/// Default prefix of settings that an administrator lets users name as they like, for `getSetting` alone.
const CUSTOM: &str = "SQL_";

/// Says whether the backend surely takes this value of a harmless setting. It takes any value with the probe,
/// the INSERT of no rows, but may refuse it when the client sends it: over the native protocol, or for the
/// answer's sake. A doubtful value counts as refused.
pub(super) fn is_surely_taken(name: &str, value: &str) -> bool {
    let is_level = |most: u8| value.parse::<u8>().is_ok_and(|level| level <= most);
    match name {
        "network_compression_method" => {
            ["LZ4", "LZ4HC", "ZSTD", "NONE"].iter().any(|method| method.eq_ignore_ascii_case(value))
        }
        "network_zstd_compression_level" => is_level(22),
        "http_zlib_compression_level" => is_level(9),
        _ => true,
    }
}

fn is_gathering(name: &str) -> bool {
    matches!(
        name,
        "async_insert_max_data_size"
            | "async_insert_max_query_number"
            | "async_insert_busy_timeout_ms"
            | "async_insert_busy_timeout_max_ms"
            | "async_insert_busy_timeout_min_ms"
            | "async_insert_busy_timeout_increase_rate"
            | "async_insert_busy_timeout_decrease_rate"
            | "async_insert_use_adaptive_busy_timeout"
            | "async_insert_poll_timeout_ms"
            | "async_insert_stale_timeout_ms"
            | "async_insert_cleanup_timeout_ms"
    )
}

/// Says whether a setting makes an insert one that can't share a batch: a transaction, a session that has to
/// exist, a profile; an answer of another make than Windrow's; or how the statement itself is read, and how
/// large it may be, since a batch has another statement.
fn is_alone(name: &str) -> bool {
    matches!(
        name,
        "session_check"
            | "close_session"
            | "profile"
            | "stacktrace"
            | "compression"
            | "compatibility"
            | "readonly"
            | "http_response_headers"
            | "http_write_exception_in_output_format"
            | "allow_settings_after_format_in_insert"
            | "dialect"
            | "limit"
            | "offset"
            | "max_query_size"
            | "max_expanded_ast_elements"
    ) || ["implicit_", "max_ast_", "max_parser_", "max_temporary_"].iter().any(|prefix| name.starts_with(prefix))
}

fn is_harmless(name: &str) -> bool {
    matches!(
        name,
        "log_queries"
            | "log_query_settings"
            | "log_queries_min_type"
            | "log_profile_events"
            | "send_logs_level"
            | "max_execution_time"
            | "max_threads"
            | "max_insert_threads"
            | "priority"
            | "replace_running_query"
            | "replace_running_query_max_wait_ms"
            | "wait_end_of_query"
            | "buffer_size"
            | "send_progress_in_http_headers"
            | "http_headers_progress_interval_ms"
            | "http_wait_end_of_query"
            | "http_response_buffer_size"
            | "cancel_http_readonly_queries_on_client_close"
            | "enable_http_compression"
            | "http_zlib_compression_level"
            | "network_compression_method"
            | "network_zstd_compression_level"
            | "add_http_cors_header"
            | "connect_timeout"
            | "receive_timeout"
            | "send_timeout"
            | "http_receive_timeout"
            | "http_send_timeout"
            | "output_format"
    ) || ["max_result_", "result_", "opentelemetry_"].iter().any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_change_the_rows_splits_no_batch() {
        for name in ["log_comment", "max_execution_time", "query_id", "param_x"] {
            assert!(matches!(role(name), Role::Private | Role::Harmless | Role::Request), "{name}");
        }
    }

    #[test]
    fn what_may_change_the_rows_splits_batches() {
        for name in ["insert_null_as_default", "max_partitions_per_insert_block", "session_timezone", "SQL_tenant"] {
            assert_eq!(role(name), Role::Shape, "{name}");
        }
    }

    #[test]
    fn what_needs_an_insert_of_its_own_is_forwarded() {
        for name in ["implicit_transaction", "compression", "session_check", "max_ast_depth", "never_heard_of"] {
            assert_eq!(role(name), Role::Alone, "{name}");
        }
    }
}
