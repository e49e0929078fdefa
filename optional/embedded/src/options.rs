//! The options that the embedded ClickHouse is started with. They are checked before anything is written.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use crate::EmbeddedError;

/// Users that the engine's own files need; settings can't redefine them.
pub(crate) const STARTUP_USER: &str = "default";
pub(crate) const GATEWAY_USER: &str = "windrow";

#[derive(Clone, Debug)]
pub struct EmbeddedOptions {
    /// The gateway's data directory; the engine's files are in `embedded/` below it.
    pub data_dir: PathBuf,
    /// A `clickhouse` binary or a libchdb shared library. Without it the usual places are searched.
    pub engine: Option<PathBuf>,
    /// The least severe level of the engine's log lines that the gateway's log gets.
    pub log_level: EngineLogLevel,
    /// Turns on `system.query_log` and `system.part_log`, flushed every second.
    pub system_logs: bool,
    pub users: Vec<EmbeddedUser>,
    /// The deduplication window, in blocks, of MergeTree tables that do not set their own. The profile of all
    /// users then excludes inserts from deduplication, unless they ask for it.
    pub deduplication_window: Option<u64>,
    /// The longest time for a start, including the wait for a previous engine of the same directory.
    pub start_timeout: Duration,
    /// The executable whose `main` begins with `run_engine_if_asked`; if it is `None`, the running executable.
    pub executable: Option<PathBuf>,
}

impl EmbeddedOptions {
    pub fn new(data_dir: impl Into<PathBuf>) -> EmbeddedOptions {
        EmbeddedOptions {
            data_dir: data_dir.into(),
            engine: None,
            log_level: EngineLogLevel::Warning,
            system_logs: false,
            users: Vec::new(),
            deduplication_window: None,
            start_timeout: Duration::from_secs(60),
            executable: None,
        }
    }

    pub(crate) fn check(&self) -> Result<(), EmbeddedError> {
        for (index, user) in self.users.iter().enumerate() {
            let taken = user.name == STARTUP_USER || user.name == GATEWAY_USER;
            if taken || self.users[..index].iter().any(|other| other.name == user.name) {
                return Err(EmbeddedError::UserTaken { name: user.name.clone() });
            }
            if !is_plain_name(&user.name) {
                return Err(EmbeddedError::UserName { name: user.name.clone() });
            }
            if let Some((name, _)) = user.settings.iter().find(|(name, _)| !is_plain_name(name)) {
                return Err(EmbeddedError::UserSetting { user: user.name.clone(), setting: name.clone() });
            }
        }
        Ok(())
    }
}

/// A user of the embedded ClickHouse besides the gateway's own. The engine reads users at its start only.
#[derive(Clone)]
pub struct EmbeddedUser {
    pub name: String,
    pub password: String,
    /// `GRANT` statements without the `TO`, such as `GRANT SELECT, INSERT ON default.*`. An empty list gives
    /// no rights.
    pub grants: Vec<String>,
    /// The settings of the user's profile.
    pub settings: Vec<(String, String)>,
}

impl std::fmt::Debug for EmbeddedUser {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EmbeddedUser").field("name", &self.name).field("grants", &self.grants).finish_non_exhaustive()
    }
}

/// The least severe level of the engine's log lines that are passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineLogLevel {
    Error,
    Warning,
    Information,
    Debug,
    Trace,
}

impl EngineLogLevel {
    pub(crate) fn name(self) -> &'static str {
        match self {
            EngineLogLevel::Error => "error",
            EngineLogLevel::Warning => "warning",
            EngineLogLevel::Information => "information",
            EngineLogLevel::Debug => "debug",
            EngineLogLevel::Trace => "trace",
        }
    }
}

impl FromStr for EngineLogLevel {
    type Err = EmbeddedError;

    fn from_str(text: &str) -> Result<EngineLogLevel, EmbeddedError> {
        match text {
            "error" => Ok(EngineLogLevel::Error),
            "warning" | "warn" => Ok(EngineLogLevel::Warning),
            "information" | "info" => Ok(EngineLogLevel::Information),
            "debug" => Ok(EngineLogLevel::Debug),
            "trace" => Ok(EngineLogLevel::Trace),
            other => Err(EmbeddedError::LogLevel { given: other.to_owned() }),
        }
    }
}

/// Says whether a name is plain. Names become XML elements, and a dot would be read as a path into the
/// configuration.
fn is_plain_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options_with_user(name: &str) -> EmbeddedOptions {
        let mut options = EmbeddedOptions::new("data");
        options.users.push(EmbeddedUser {
            name: name.to_owned(),
            password: "p".to_owned(),
            grants: Vec::new(),
            settings: Vec::new(),
        });
        options
    }

    #[test]
    fn names_that_would_change_the_file_are_refused() {
        for name in ["", "1a", "a b", "a.b", "a><b", "a/", "ä"] {
            assert!(matches!(options_with_user(name).check(), Err(EmbeddedError::UserName { .. })), "{name:?}");
        }
        assert!(options_with_user("reader-2").check().is_ok());
    }

    #[test]
    fn users_of_the_gateway_can_not_be_redefined() {
        for name in ["default", "windrow"] {
            assert!(matches!(options_with_user(name).check(), Err(EmbeddedError::UserTaken { .. })), "{name}");
        }
        let mut twice = options_with_user("a");
        twice.users.push(twice.users[0].clone());
        assert!(matches!(twice.check(), Err(EmbeddedError::UserTaken { .. })));
    }

    #[test]
    fn settings_names_are_checked_and_passwords_not_shown() {
        let mut options = options_with_user("a");
        options.users[0].settings.push(("max_threads".to_owned(), "1".to_owned()));
        assert!(options.check().is_ok());
        options.users[0].settings.push(("x><y".to_owned(), "1".to_owned()));
        assert!(matches!(options.check(), Err(EmbeddedError::UserSetting { .. })));
        options.users[0].password = "very secret".to_owned();
        assert!(!format!("{options:?}").contains("very secret"));
    }
}
