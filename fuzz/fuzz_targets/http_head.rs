#![no_main]
//! Reads heads of requests and of answers, of any bytes: a head that was accepted says the same when it is
//! read again, or in pieces.

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use windrow_http::{AnswerHeadParser, RequestHead, ResponseHead};

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
    let piece = bytes.first().map_or(1, |byte| usize::from(*byte).max(1));
    assert_eq!(answer(bytes, piece), answer(bytes, usize::MAX));
});

/// Returns status and fields of an answer's head that comes in pieces, its progress, and its length. Returns
/// `None` where the head is not whole.
fn answer(bytes: &[u8], piece: usize) -> Option<(u16, Vec<(String, Vec<u8>)>, Vec<Vec<u8>>, usize)> {
    let (mut parser, mut progress, mut at) = (AnswerHeadParser::new(false), Vec::new(), 0);
    while at < bytes.len() {
        let rest = &bytes[at..];
        let step = parser.read(&rest[..piece.min(rest.len())], &mut |text| progress.push(text.to_vec())).ok()?;
        at += step.consumed;
        if let Some(head) = step.whole {
            let fields = head.fields().map(|(name, value)| (name.to_string(), value.to_vec())).collect();
            return Some((head.status(), fields, progress, at));
        }
    }
    None
}
