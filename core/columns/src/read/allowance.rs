//! The limit of bytes that a payload may have made out of nothing: values that rows leave out, NULLs of wide
//! types, copies of a value that a dictionary holds once. A few bytes can stand for any number of them, and
//! they are made before anybody has asked for the room. So there is enough for every small insert, and beyond
//! that in proportion to the payload.

use super::outcome::NotParsedReason;

const ALWAYS_BYTES: usize = 1 << 20;
const PER_PAYLOAD_BYTE: usize = 16;
const MOST_BYTES: usize = 64 << 20;

pub(crate) struct Allowance {
    left_bytes: usize,
}

impl Allowance {
    pub(crate) fn of(payload_bytes: usize) -> Self {
        let bytes = payload_bytes.saturating_mul(PER_PAYLOAD_BYTE).saturating_add(ALWAYS_BYTES);
        Allowance { left_bytes: bytes.min(MOST_BYTES) }
    }

    pub(crate) fn left_bytes(&self) -> usize {
        self.left_bytes
    }

    /// Takes bytes off the allowance, before they are made.
    #[inline]
    pub(crate) fn take(&mut self, bytes: usize) -> Result<(), NotParsedReason> {
        self.left_bytes = self.left_bytes.checked_sub(bytes).ok_or(NotParsedReason::Value)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_is_made_of_more_and_never_too_much() {
        let most = |payload_bytes| Allowance::of(payload_bytes).left_bytes();
        assert_eq!((most(0), most(1000), most(usize::MAX)), (1 << 20, (1 << 20) + 16_000, 64 << 20));
        let mut allowance = Allowance::of(0);
        assert_eq!(allowance.take(1 << 20), Ok(()));
        assert_eq!(allowance.take(0), Ok(()));
        assert_eq!(allowance.take(1), Err(NotParsedReason::Value));
    }
}
