//! Spellings of numbers that text formats take, beyond the plain one: `+1`, `007`, `.5`, `1.`.

use crate::reader::Reader;

/// Writes the plain spelling of the same number into `out`. Returns `None` if the number has none, or the
/// text is no number.
pub(super) fn plain_spelling(text: &[u8], reader: &Reader, out: &mut Vec<u8>) -> Option<()> {
    out.clear();
    let is_whole = matches!(reader, Reader::Integer { .. } | Reader::WideInteger { .. });
    let (negative, digits) = match text.split_first()? {
        (b'-', digits) => (true, digits),
        (b'+', digits) => (false, digits),
        _ => (false, text),
    };
    let whole_length = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (whole, rest) = digits.split_at(whole_length);
    let (fraction, exponent) = match rest.split_first() {
        Some((b'.', rest)) => rest.split_at(rest.iter().take_while(|byte| byte.is_ascii_digit()).count()),
        _ => (&[][..], rest),
    };
    if whole.is_empty() && fraction.is_empty() || is_whole && !rest.is_empty() {
        return None;
    }
    let whole = &whole[whole.iter().take_while(|byte| **byte == b'0').count()..];
    if negative && !(is_whole && whole.is_empty()) {
        out.push(b'-');
    }
    out.extend_from_slice(if whole.is_empty() { b"0" } else { whole });
    if !fraction.is_empty() {
        out.push(b'.');
        out.extend_from_slice(fraction);
    }
    out.extend_from_slice(exponent);
    Some(())
}
