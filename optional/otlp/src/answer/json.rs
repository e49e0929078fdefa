//! Answers in JSON.

use std::time::Duration;

use serde_json::{json, Value};

use super::{PartialSuccess, Status, BAD_REQUEST, RETRY_INFO};
use crate::kind::Signal;

pub(super) fn success(signal: Signal, partial: Option<&PartialSuccess>) -> Vec<u8> {
    let rejected = match signal {
        Signal::Logs => "rejectedLogRecords",
        Signal::Traces => "rejectedSpans",
        Signal::Metrics => "rejectedDataPoints",
    };
    let answer = match partial {
        // Numbers of 64 bits are texts in Protobuf's JSON.
        Some(partial) => json!({
            "partialSuccess": { rejected: partial.rejected.to_string(), "errorMessage": partial.message }
        }),
        None => json!({}),
    };
    answer.to_string().into_bytes()
}

pub(super) fn status(status: &Status) -> Vec<u8> {
    let mut answer = json!({ "code": status.code, "message": status.message });
    let retry = status.retry_after.map(|delay| json!({ "@type": RETRY_INFO, "retryDelay": seconds(delay) }));
    let bad = status.bad_request.as_ref();
    let bad = bad.map(|what| json!({ "@type": BAD_REQUEST, "fieldViolations": [{ "description": what }] }));
    let details: Vec<Value> = retry.into_iter().chain(bad).collect();
    if !details.is_empty() {
        answer["details"] = details.into();
    }
    answer.to_string().into_bytes()
}

fn seconds(delay: Duration) -> String {
    format!("{}.{:03}s", delay.as_secs(), delay.subsec_millis())
}
