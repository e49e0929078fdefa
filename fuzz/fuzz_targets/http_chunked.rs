#![no_main]
//! Reads a chunked body of any bytes: it makes no difference how it is cut.

use libfuzzer_sys::fuzz_target;
use windrow_http::{ChunkedError, ChunkedScanner};

fuzz_target!(|bytes: &[u8]| {
    let Some((piece, body)) = bytes.split_first() else { return };
    let whole = scanned(body, usize::MAX);
    assert_eq!(scanned(body, usize::from(*piece).max(1)), whole);
    let mut scanner = ChunkedScanner::default();
    let skipped = scanner.skip(body);
    assert_eq!(
        skipped.map(|bytes| (bytes, scanner.is_done())),
        whole.map(|scanned| (scanned.consumed, scanned.is_done))
    );
});

#[derive(Debug, PartialEq)]
struct Body {
    data: Vec<u8>,
    consumed: usize,
    is_done: bool,
}

fn scanned(body: &[u8], piece: usize) -> Result<Body, ChunkedError> {
    let (mut scanner, mut data, mut consumed) = (ChunkedScanner::default(), Vec::new(), 0);
    while consumed < body.len() && !scanner.is_done() {
        let rest = &body[consumed..];
        let rest = &rest[..piece.min(rest.len())];
        let step = scanner.step(rest)?;
        assert!(step.consumed > 0 && step.data.end <= step.consumed);
        data.extend_from_slice(&rest[step.data]);
        consumed += step.consumed;
    }
    Ok(Body { data, consumed, is_done: scanner.is_done() })
}
