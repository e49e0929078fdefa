//! The source that a setting's value came from.

use std::fmt;

/// The source that gave a setting the value in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    Default,
    File { path: String, line: usize },
    Variable { name: String },
    Flag { name: String },
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line } => write!(f, "{path}:{line}"),
            Self::Variable { name } => write!(f, "variable {name}"),
            Self::Flag { name } => write!(f, "flag {name}"),
        }
    }
}

impl Origin {
    /// Names the source within a sentence about the key `key`.
    pub(crate) fn place_of(&self, key: &str) -> String {
        match self {
            Self::Default => format!("the default of `{key}`"),
            Self::File { path, line } => format!("`{key}` in {path} line {line}"),
            Self::Variable { name } => format!("variable {name}"),
            Self::Flag { name } => format!("flag {name}"),
        }
    }
}
