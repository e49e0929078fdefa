//! The time for which nothing has come of an append. The time is told from outside.

/// The moment when an append was last heard of.
#[derive(Debug)]
pub(crate) struct Idleness {
    timeout_ms: u64,
    last_sign_ms: u64,
    /// The number of batches that are being received, and of clients that hold on to the append: while there
    /// is one the append isn't silent. How long that may take is the connection's affair.
    under_way: u64,
}

impl Idleness {
    pub(crate) fn new(timeout_ms: u64, now_ms: u64) -> Idleness {
        Idleness { timeout_ms, last_sign_ms: now_ms, under_way: 0 }
    }

    pub(crate) fn begins(&mut self, now_ms: u64) {
        self.under_way += 1;
        self.sign(now_ms);
    }

    pub(crate) fn ends(&mut self, now_ms: u64) {
        self.under_way = self.under_way.saturating_sub(1);
        self.sign(now_ms);
    }

    /// Notes that something was heard of the append, or done for it.
    pub(crate) fn sign(&mut self, now_ms: u64) {
        self.last_sign_ms = self.last_sign_ms.max(now_ms);
    }

    /// Returns how long the append may go on being silent. Zero means that its time is over.
    pub(crate) fn left_ms(&self, now_ms: u64) -> u64 {
        match self.under_way {
            0 => (self.last_sign_ms + self.timeout_ms).saturating_sub(now_ms),
            // To be asked again then.
            _ => self.timeout_ms.max(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_is_counted_from_the_last_sign() {
        let mut idleness = Idleness::new(100, 1000);
        assert_eq!((idleness.left_ms(1000), idleness.left_ms(1099), idleness.left_ms(1100)), (100, 1, 0));
        idleness.begins(1050);
        assert!(idleness.left_ms(9000) > 0, "a batch is on its way");
        idleness.ends(9000);
        assert_eq!((idleness.left_ms(9099), idleness.left_ms(9100)), (1, 0));
        idleness.sign(8000);
        assert_eq!(idleness.left_ms(9050), 50, "a late word of something earlier changes nothing");
    }
}
