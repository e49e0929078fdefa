use std::fmt;
use std::path::{Path, PathBuf};

/// The reason why no more rows can be had from a source; nothing of the append is stored then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceError {
    /// The file that could not be read; sources in memory have none.
    pub file: Option<PathBuf>,
    /// The line in it, from 1, where the format has lines.
    pub line: Option<u64>,
    pub text: String,
}

impl SourceError {
    pub fn new(text: impl fmt::Display) -> SourceError {
        SourceError { file: None, line: None, text: text.to_string() }
    }

    pub fn in_file(path: &Path, text: impl fmt::Display) -> SourceError {
        SourceError { file: Some(path.to_owned()), line: None, text: text.to_string() }
    }

    pub fn in_line(path: &Path, line: u64, text: impl fmt::Display) -> SourceError {
        SourceError { file: Some(path.to_owned()), line: Some(line), text: text.to_string() }
    }
}

impl fmt::Display for SourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.file, self.line) {
            (Some(file), Some(line)) => write!(f, "{}, line {line}: {}", file.display(), self.text),
            (Some(file), None) => write!(f, "{}: {}", file.display(), self.text),
            (None, _) => f.write_str(&self.text),
        }
    }
}

impl std::error::Error for SourceError {}
