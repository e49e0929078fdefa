//! The readers of bytes from outside, as a fuzzer calls them.

use super::read::decoded;
use super::unfolding::unfolded_bytes;
use crate::request::Payload;

/// Reads a batch, up to where the table has its say.
pub fn batch(payload: Payload, max_bytes: u64) {
    for batch in decoded(payload, max_bytes).unwrap_or_default() {
        unfolded_bytes(&batch);
    }
}
