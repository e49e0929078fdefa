//! Who gets which partitions.

/// How a group's leader shares partitions out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Assignor {
    /// Members keep what they have as far as that is fair, and go on reading it while others get theirs.
    CooperativeSticky,
    /// Each topic's partitions in rows; everybody gives everything up first. What others use unless they are told.
    Range,
}

impl Assignor {
    /// As the protocol calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::CooperativeSticky => "cooperative-sticky",
            Self::Range => "range",
        }
    }
}
