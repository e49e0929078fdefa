//! Form of an insert's answer, as far as settings decide it.

use std::time::Duration;

/// Shortest interval between two fields that tell of progress. ClickHouse tells nothing of the progress of an
/// insert that waits in its queue. A short wait gets no field here either, so that its error can still have
/// its own status.
const SHORTEST_PROGRESS_INTERVAL: Duration = Duration::from_secs(1);
/// ClickHouse's default of `http_headers_progress_interval_ms`.
const DEFAULT_PROGRESS_INTERVAL_MS: u64 = 100;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct AnswerForm {
    /// Interval at which a waiting client is told that it still waits (`send_progress_in_http_headers`).
    pub(crate) progress_interval: Option<Duration>,
    /// Says whether scripts of any origin may read the answer (`add_http_cors_header`).
    pub(crate) any_origin: bool,
    /// Says whether the body is compressed as the client accepts it (`enable_http_compression`).
    pub(crate) compresses: bool,
}

impl AnswerForm {
    /// Reads the form from settings. `setting` gives the value that holds for the request, if it is known.
    pub(crate) fn new<'a>(setting: impl Fn(&str) -> Option<&'a str>) -> AnswerForm {
        let flag = |name| setting(name).is_some_and(|value| matches!(value, "1" | "true"));
        let interval_ms = setting("http_headers_progress_interval_ms").and_then(|ms| ms.parse().ok());
        let interval = Duration::from_millis(interval_ms.unwrap_or(DEFAULT_PROGRESS_INTERVAL_MS));
        AnswerForm {
            progress_interval: flag("send_progress_in_http_headers")
                .then_some(interval.max(SHORTEST_PROGRESS_INTERVAL)),
            any_origin: flag("add_http_cors_header"),
            compresses: flag("enable_http_compression"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(settings: &[(&str, &'static str)]) -> AnswerForm {
        AnswerForm::new(|name| settings.iter().find(|(known, _)| *known == name).map(|(_, value)| *value))
    }

    #[test]
    fn progress_is_told_to_who_asks_for_it_and_not_too_often() {
        let interval = |settings: &[(&str, &'static str)]| form(settings).progress_interval;
        assert_eq!(interval(&[]), None);
        assert_eq!(interval(&[("send_progress_in_http_headers", "0")]), None);
        assert_eq!(interval(&[("send_progress_in_http_headers", "1")]), Some(SHORTEST_PROGRESS_INTERVAL));
        let slow = [("send_progress_in_http_headers", "true"), ("http_headers_progress_interval_ms", "120000")];
        assert_eq!(interval(&slow), Some(Duration::from_secs(120)));
    }

    #[test]
    fn nothing_is_added_unless_a_setting_says_so() {
        assert_eq!(form(&[]), AnswerForm::default());
        let both = form(&[("add_http_cors_header", "1"), ("enable_http_compression", "1")]);
        assert!(both.any_origin && both.compresses);
    }
}
