//! Errors that the settings can have, as sentences that say what to do.

use std::fmt;

use crate::nearest::{leaf, nearest};
use crate::origin::Origin;

/// One thing that is wrong with the settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettingsError {
    /// The file named by `--config` or `WINDROW_CONFIG` can't be read.
    Unreadable { path: String, reason: String },
    /// The file isn't TOML.
    Syntax { path: String, line: usize, reason: String },
    /// The key is not known: no setting has this name.
    UnknownKey { place: String, meant: Option<String> },
    /// The value is of the wrong type or out of its bounds.
    BadValue { place: String, reason: String },
    /// An entry of a list lacks a key.
    MissingKey { entry: String, key: &'static str },
    /// The settings are right one by one but not together.
    Conflict { reason: String },
}

impl SettingsError {
    pub(crate) fn unknown_key<'a>(key: &str, origin: &Origin, known: impl Iterator<Item = &'a str>) -> Self {
        let section = |path: &str| path.len() - leaf(path).len();
        let meant = nearest(key, known).map(|meant| {
            // Inside the right section its last component says enough.
            if key.get(..section(key)) == meant.get(..section(meant)) {
                leaf(meant).to_owned()
            } else {
                meant.to_owned()
            }
        });
        let place = match origin {
            Origin::Flag { name } => format!("`{key}` in flag {name}"),
            _ => origin.place_of(key),
        };
        Self::UnknownKey { place, meant }
    }
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable { path, reason } => {
                write!(f, "cannot read the settings file {path}: {reason}; correct --config or WINDROW_CONFIG")
            }
            Self::Syntax { path, line, reason } => write!(f, "{path} line {line} is not valid TOML: {reason}"),
            Self::UnknownKey { place, meant: Some(meant) } => write!(f, "unknown key {place}; did you mean `{meant}`?"),
            Self::UnknownKey { place, meant: None } => {
                write!(f, "unknown key {place}; `windrow config` lists the known ones")
            }
            Self::BadValue { place, reason } => write!(f, "{place}: {reason}"),
            Self::MissingKey { entry, key } => write!(f, "{entry} needs the key `{key}`"),
            Self::Conflict { reason } => f.write_str(reason),
        }
    }
}

impl std::error::Error for SettingsError {}

/// All errors of the settings together, one line each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingsErrors(pub Vec<SettingsError>);

impl fmt::Display for SettingsErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.0.iter().enumerate() {
            let line_break = if index == 0 { "" } else { "\n" };
            write!(f, "{line_break}{error}")?;
        }
        Ok(())
    }
}

impl std::error::Error for SettingsErrors {}
