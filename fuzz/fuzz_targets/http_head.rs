#![no_main]
//! Heads of requests and of answers, of any bytes: what was taken says the same when it is read again.

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use windrow_http::{RequestHead, ResponseHead};

const MAX_FIELDS: usize = 200;

fuzz_target!(|bytes: &[u8]| {
    let raw = Bytes::copy_from_slice(bytes);
    if let Ok(head) = RequestHead::parse(raw.clone(), MAX_FIELDS) {
        let again = RequestHead::parse(head.raw().clone(), MAX_FIELDS).expect("it was a head");
        assert_eq!((again.method(), again.target()), (head.method(), head.target()));
        assert_eq!((again.framing(), again.keep_alive()), (head.framing(), head.keep_alive()));
        let _ = head.expects_continue();
        assert!(head.fields().count() <= MAX_FIELDS);
        assert!(head.fields().all(|(name, _)| head.field(name).is_some()));
    }
    for to_head_request in [false, true] {
        let Ok(head) = ResponseHead::parse(raw.clone(), MAX_FIELDS, to_head_request) else { continue };
        assert!((100..1000).contains(&head.status()));
        assert!(head.fields().all(|(name, _)| head.field(name).is_some()));
    }
});
