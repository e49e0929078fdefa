//! ClickHouse's settings on a statement for DuckDB: those that mean something here, and those that are at least known.

use std::time::Duration;

use windrow_clickhouse::ErrorCode;
use windrow_duckdb::results::OutputSettings;
use windrow_gateway::sql_backend::{unknown_setting, Refusal, StatementOptions};

/// The values of a request's settings.
#[derive(Debug, Clone)]
pub(super) struct QuerySettings {
    pub(super) output: OutputSettings,
    pub(super) readonly: bool,
    pub(super) max_execution_time: Option<Duration>,
    pub(super) max_result_rows: Option<u64>,
    /// Rows over the limit are left out, rather than being an error.
    pub(super) overflow_breaks: bool,
    pub(super) compresses: bool,
    pub(super) any_origin: bool,
    pub(super) watches_client: bool,
    pub(super) waits_for_end: bool,
    pub(super) buffer_bytes: usize,
}

impl Default for QuerySettings {
    fn default() -> QuerySettings {
        QuerySettings {
            output: OutputSettings::default(),
            readonly: false,
            max_execution_time: None,
            max_result_rows: None,
            overflow_breaks: false,
            compresses: true,
            any_origin: false,
            watches_client: true,
            waits_for_end: false,
            buffer_bytes: 0,
        }
    }
}

impl QuerySettings {
    /// Reads the settings that stand beside the statement, and over these the ones of its SETTINGS clause.
    pub(super) fn of(
        options: &StatementOptions<'_>,
        native_revision: u64,
        clause: &[(String, String)],
    ) -> Result<QuerySettings, Refusal> {
        let mut query_settings = QuerySettings::default();
        query_settings.output.native_revision = native_revision;
        let not_own = options.settings().filter(|(name, _)| !name.starts_with("windrow_"));
        not_own.into_iter().try_for_each(|(name, value)| query_settings.take(name, value))?;
        clause.iter().try_for_each(|(name, value)| query_settings.take(name, value))?;
        Ok(query_settings)
    }

    fn take(&mut self, name: &str, value: &str) -> Result<(), Refusal> {
        let flag = matches!(value, "1" | "true");
        match name {
            "readonly" => self.readonly |= !matches!(value, "0" | ""),
            "max_execution_time" => self.max_execution_time = seconds(name, value)?,
            "max_result_rows" => self.max_result_rows = Some(number(name, value)?).filter(|rows| *rows > 0),
            "result_overflow_mode" => self.overflow_breaks = value == "break",
            "enable_http_compression" => self.compresses = flag,
            "add_http_cors_header" => self.any_origin = flag,
            "cancel_http_readonly_queries_on_client_close" => self.watches_client = flag,
            "wait_end_of_query" | "http_wait_end_of_query" => self.waits_for_end = flag,
            "buffer_size" | "http_response_buffer_size" => {
                self.buffer_bytes = usize::try_from(number(name, value)?).unwrap_or(usize::MAX);
            }
            _ if self.output.set(name, value) => {}
            _ => return unknown_setting(std::iter::once(name)).map_or(Ok(()), Err),
        }
        Ok(())
    }
}

fn number(name: &str, value: &str) -> Result<u64, Refusal> {
    value.parse().map_err(|_| unreadable(name, value))
}

fn seconds(name: &str, value: &str) -> Result<Option<Duration>, Refusal> {
    let seconds: f64 = value.parse().map_err(|_| unreadable(name, value))?;
    let duration = Duration::try_from_secs_f64(seconds).map_err(|_| unreadable(name, value))?;
    Ok(Some(duration).filter(|duration| !duration.is_zero()))
}

fn unreadable(name: &str, value: &str) -> Refusal {
    Refusal::statement(ErrorCode::CANNOT_PARSE_NUMBER, format!("Setting '{name}' cannot be '{value}'")).without_query()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_names_and_odd_values_are_refused() {
        let mut query_settings = QuerySettings::default();
        assert_eq!(query_settings.take("never_heard_of", "1").unwrap_err().code, ErrorCode::UNKNOWN_SETTING);
        assert_eq!(query_settings.take("max_execution_time", "-1").unwrap_err().code, ErrorCode::CANNOT_PARSE_NUMBER);
        assert_eq!(query_settings.take("max_result_rows", "x").unwrap_err().code, ErrorCode::CANNOT_PARSE_NUMBER);
        query_settings.take("max_execution_time", "0.5").unwrap();
        assert_eq!(query_settings.max_execution_time, Some(Duration::from_millis(500)));
        query_settings.take("max_execution_time", "0").unwrap();
        assert_eq!(query_settings.max_execution_time, None);
    }
}
