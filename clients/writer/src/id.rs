//! Names of batches.

use std::fmt;
use std::io;

/// A name of a batch for ever: retries, also after a restart, carry the same one. A random UUID, sent as the
/// insert's deduplication token.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BatchId(pub u128);

impl BatchId {
    /// Makes a new id from the operating system's random numbers.
    ///
    /// # Errors
    /// Fails where the operating system gives no random numbers.
    pub fn random() -> io::Result<BatchId> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
        let version_and_variant = (0xf << 76) | (0x3 << 62);
        Ok(BatchId(u128::from_le_bytes(bytes) & !version_and_variant | (0x4 << 76) | (0x2 << 62)))
    }

    /// Reads an id that `Display` has written. Returns `None` for other text.
    pub fn parse(text: &str) -> Option<BatchId> {
        let has_form = text.len() == 36 && [8, 13, 18, 23].iter().all(|&at| text.as_bytes()[at] == b'-');
        let digits: String = text.chars().filter(|&c| c != '-').collect();
        let is_hex = digits.len() == 32 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        (has_form && is_hex).then(|| u128::from_str_radix(&digits, 16).ok().map(BatchId))?
    }
}

impl fmt::Display for BatchId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = format!("{:032x}", self.0);
        let [a, b, c, d, e] = [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]];
        write!(f, "{a}-{b}-{c}-{d}-{e}")
    }
}

impl fmt::Debug for BatchId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_uuids_and_are_read_back() {
        let id = BatchId(0x0123_4567_89ab_4def_8123_4567_89ab_cdef);
        assert_eq!(id.to_string(), "01234567-89ab-4def-8123-456789abcdef");
        assert_eq!(BatchId::parse(&id.to_string()), Some(id));
        for wrong in ["", "0123456789ab4def8123456789abcdef", "01234567-89ab-4def-8123-456789abcdeg"] {
            assert_eq!(BatchId::parse(wrong), None, "{wrong}");
        }
        let random = BatchId::random().unwrap().to_string();
        assert_eq!((&random[14..15], random.len()), ("4", 36));
        assert!(matches!(&random[19..20], "8" | "9" | "a" | "b"), "{random}");
    }
}
