#![no_main]
//! Reads errors of a ClickHouse, of any bytes.

use libfuzzer_sys::fuzz_target;
use windrow_clickhouse::Exception;

fuzz_target!(|bytes: &[u8]| {
    for exception in [Exception::parse(bytes), Exception::from_answer(Some("469"), bytes)].into_iter().flatten() {
        assert!(exception.line.ends_with(exception.version_suffix()));
        let _ = (exception.row(), exception.is_passing(), exception.comes_of_values(), exception.is_of_a_view());
        let _ = (exception.is_of_another_server(), exception.is_about_identity(), exception.http_status());
        let summary = std::str::from_utf8(bytes).ok();
        let _ = exception.with_summary(summary).leaves_outcome_open();
    }
});
