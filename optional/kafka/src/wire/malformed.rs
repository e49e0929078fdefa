//! The error in bytes that a broker sent.

use std::fmt;

/// The cause why an answer, or a part of one, can't be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed(pub(crate) &'static str);

impl Malformed {
    pub(crate) const TRUNCATED: Malformed = Malformed("it ends too early");
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for Malformed {}
