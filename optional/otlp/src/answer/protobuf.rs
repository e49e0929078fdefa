//! Answers in Protobuf.

use windrow_columns::wire::write_varint;

use super::{PartialSuccess, Status, BAD_REQUEST, RETRY_INFO};

/// Writes the answer to a request that was accepted. It is the same for all signals: its fields have
/// different names only in JSON.
pub(super) fn success(partial: Option<&PartialSuccess>) -> Vec<u8> {
    let mut out = Vec::new();
    if let Some(partial) = partial {
        let mut inner = Vec::new();
        put_number(1, partial.rejected as u64, &mut inner);
        put_bytes(2, partial.message.as_bytes(), &mut inner);
        put_bytes(1, &inner, &mut out);
    }
    out
}

pub(super) fn status(status: &Status) -> Vec<u8> {
    let mut out = Vec::new();
    put_number(1, i64::from(status.code).cast_unsigned(), &mut out);
    put_bytes(2, status.message.as_bytes(), &mut out);
    if let Some(delay) = status.retry_after {
        let mut duration = Vec::new();
        put_number(1, delay.as_secs(), &mut duration);
        put_number(2, u64::from(delay.subsec_nanos()), &mut duration);
        put_detail(RETRY_INFO, &duration, &mut out);
    }
    if let Some(what) = &status.bad_request {
        let mut violation = Vec::new();
        put_bytes(2, what.as_bytes(), &mut violation);
        put_detail(BAD_REQUEST, &violation, &mut out);
    }
    out
}

/// Writes an Any with a message that has only its first field.
fn put_detail(of: &str, first_field: &[u8], out: &mut Vec<u8>) {
    let (mut message, mut any) = (Vec::new(), Vec::new());
    put_bytes(1, first_field, &mut message);
    put_bytes(1, of.as_bytes(), &mut any);
    put_bytes(2, &message, &mut any);
    put_bytes(3, &any, out);
}

fn put_number(field: u8, number: u64, out: &mut Vec<u8>) {
    if number != 0 {
        out.push(field << 3);
        write_varint(out, number);
    }
}

fn put_bytes(field: u8, bytes: &[u8], out: &mut Vec<u8>) {
    out.push(field << 3 | 2);
    write_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}
