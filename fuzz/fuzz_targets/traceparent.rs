#![no_main]
//! Reads the fields `traceparent` and `tracestate`, of any bytes: accepted values are the same when they are
//! written and read again.

use libfuzzer_sys::fuzz_target;
use windrow_engine::trace::{Parent, SpanContext};

fuzz_target!(|bytes: &[u8]| {
    let (field, state) = bytes.split_at(bytes.len().min(60));
    let Some(parent) = Parent::of_header(field, Some(state)) else { return };
    let Parent { trace_id, span_id, state, .. } = parent.clone();
    let written = SpanContext { trace_id, span_id, state }.traceparent();
    let again = Parent::of_header(written.as_bytes(), Some(parent.state.as_bytes())).expect("it was a parent");
    assert_eq!(again, Parent { is_sampled: true, ..parent });
});
