//! The names of ClickHouse's settings: for a backend that knows none of them, and to find unknown ones.

use std::collections::HashSet;
use std::sync::LazyLock;

use windrow_clickhouse::ErrorCode;

use crate::error::Refusal;

/// Names and defaults of ClickHouse 26.7's settings, sorted by name.
const CLICKHOUSE: &str = include_str!("clickhouse_settings.tsv");

/// Parameters of a request that are no settings.
const NOT_SETTINGS: [&str; 18] = [
    "query",
    "query_id",
    "database",
    "default_format",
    "user",
    "password",
    "quota_key",
    "session_id",
    "session_check",
    "session_timeout",
    "close_session",
    "role",
    "compress",
    "decompress",
    "buffer_size",
    "wait_end_of_query",
    "client_protocol_version",
    "stacktrace",
];

/// Returns every setting of ClickHouse with its default.
pub fn clickhouse_settings() -> impl Iterator<Item = (&'static str, &'static str)> {
    CLICKHOUSE.lines().filter_map(|line| line.split_once('\t'))
}

/// Says whether ClickHouse has a setting, as far as its settings are known here. The readers know some that
/// came later.
pub(crate) fn is_known_setting(name: &str) -> bool {
    static KNOWN: LazyLock<HashSet<&'static str>> = LazyLock::new(|| {
        let of_readers = windrow_columns::reading_settings().map(|setting| setting.name);
        clickhouse_settings().map(|(name, _)| name).chain(of_readers).collect()
    });
    KNOWN.contains(name)
}

/// Refuses the first setting of a query or an insert that is not known. Windrow's own settings are checked elsewhere.
pub fn unknown_setting<'a>(mut names: impl Iterator<Item = &'a str>) -> Option<Refusal> {
    let is_one = |name: &str| {
        let is_known = NOT_SETTINGS.contains(&name) || is_known_setting(name);
        is_known || ["param_", "windrow_"].iter().any(|prefix| name.starts_with(prefix))
    };
    let unknown = names.find(|name| !is_one(name))?;
    Some(Refusal::statement(ErrorCode::UNKNOWN_SETTING, format!("Unknown setting '{unknown}'")).without_query())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clickhouses_settings_are_known_by_name() {
        assert!(is_known_setting("max_threads") && is_known_setting("async_insert"));
        assert!(!is_known_setting("max_thread") && !is_known_setting(""));
        assert!(clickhouse_settings().count() > 1000);
    }
}
