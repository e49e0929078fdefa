//! Finds a driver, and the options that it gets for the database.
//!
//! A driver is a shared library. A driver that the settings name is loaded. Any other is searched for by its
//! usual name, such as `adbc_driver_postgresql`, as ADBC's driver manager searches: for a manifest in the
//! folders of the environment (`ADBC_DRIVER_PATH`), of the user and of the system, then for the library where
//! the system's linker looks. The folder of the executable comes before that, so that a driver may simply be
//! put there.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use adbc_core::error::Error;
use adbc_core::options::{AdbcVersion, OptionDatabase, OptionValue};
use adbc_core::{Driver as _, LOAD_FLAG_DEFAULT};
use adbc_driver_manager::{ManagedDatabase, ManagedDriver};

use crate::options::AdbcOptions;

/// A database as its driver knows it. Some drivers connect to the database in order to open it, so opening is
/// tried again until it works.
pub(crate) struct Source {
    driver: ManagedDriver,
    told: Vec<(OptionDatabase, String)>,
    opened: Mutex<Option<ManagedDatabase>>,
}

impl Source {
    /// Loads the driver. An error says what to do.
    pub(crate) fn of(options: &AdbcOptions) -> Result<Source, String> {
        Ok(Source { driver: load(options)?, told: told(options)?, opened: Mutex::default() })
    }

    /// Returns the opened database. Blocks.
    pub(crate) fn database(&self) -> Result<ManagedDatabase, Error> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(database) = &*opened {
            return Ok(database.clone());
        }
        let given = self.told.iter().map(|(name, value)| (name.clone(), OptionValue::String(value.clone())));
        let database = self.driver.clone().new_database_with_opts(given)?;
        Ok(opened.insert(database).clone())
    }
}

fn load(options: &AdbcOptions) -> Result<ManagedDriver, String> {
    let name = match &options.driver {
        Some(driver) => driver.clone().into_os_string(),
        None => beside_executable(&options.scheme).unwrap_or_else(|| usual_name(&options.scheme).into()),
    };
    // Twice by one name where a driver was installed by that of its database alone.
    let tried = load_by(name.clone()).or_else(|error| match &options.driver {
        None => load_by(options.scheme.clone().into()).map_err(|_| error),
        Some(_) => Err(error),
    });
    tried.map_err(|error| {
        format!(
            "no ADBC driver for {}: {error}. Install it (`pip install {}` has a library in it), and name it in \
             `adbc.driver`",
            options.scheme,
            usual_name(&options.scheme).replace('_', "-")
        )
    })
}

fn load_by(name: OsString) -> Result<ManagedDriver, String> {
    let loaded = ManagedDriver::load_from_name(&name, None, AdbcVersion::V110, LOAD_FLAG_DEFAULT, None);
    loaded.map_err(|error| error.message.lines().next().unwrap_or("it can't be loaded").trim_end().to_owned())
}

fn usual_name(scheme: &str) -> String {
    let database = match scheme {
        "postgres" => "postgresql",
        "grpc" | "grpc+tcp" | "grpc+tls" => "flightsql",
        other => other,
    };
    format!("adbc_driver_{database}")
}

fn beside_executable(scheme: &str) -> Option<OsString> {
    let extension = if cfg!(target_os = "macos") { "dylib" } else { "so" };
    let file = format!("lib{}.{extension}", usual_name(scheme));
    let beside: PathBuf = std::env::current_exe().ok()?.parent().map(Path::to_owned)?.join(file);
    beside.is_file().then(|| beside.into_os_string())
}

/// Returns the options that the driver is opened with.
fn told(options: &AdbcOptions) -> Result<Vec<(OptionDatabase, String)>, String> {
    let mut told = match options.scheme.as_str() {
        "sqlite" => vec![(OptionDatabase::Uri, sqlite_file(&options.url)?)],
        "flightsql" => flight_server(&options.url)?,
        _ => vec![(OptionDatabase::Uri, options.url.clone())],
    };
    told.extend(options.options.iter().map(|(name, value)| (OptionDatabase::from(name.as_str()), value.clone())));
    Ok(told)
}

/// Returns the file of `sqlite:///absolute/file.db` or `sqlite:relative.db`.
fn sqlite_file(url: &str) -> Result<String, String> {
    let path = url.strip_prefix("sqlite:").unwrap_or(url);
    let path = path.strip_prefix("//").unwrap_or(path);
    // Each connection would have a database of its own.
    match path {
        "" | ":memory:" => Err("adbc:sqlite: must be followed by a file, as in adbc:sqlite:///path/file.db".to_owned()),
        path => Ok(path.to_owned()),
    }
}

/// Returns the options for `flightsql://user:password@host:port`. TLS is used where the driver's own options
/// have a `uri` that says so.
fn flight_server(url: &str) -> Result<Vec<(OptionDatabase, String)>, String> {
    let rest = url.strip_prefix("flightsql://").ok_or("adbc:flightsql: is followed by //host:port")?;
    let (credentials, address) = rest.rsplit_once('@').map_or((None, rest), |(who, address)| (Some(who), address));
    let mut told = vec![(OptionDatabase::Uri, format!("grpc+tcp://{address}"))];
    if let Some(credentials) = credentials {
        let (user, password) = credentials.split_once(':').unwrap_or((credentials, ""));
        told.push((OptionDatabase::Username, user.to_owned()));
        told.push((OptionDatabase::Password, password.to_owned()));
    }
    Ok(told)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(scheme: &str, url: &str) -> AdbcOptions {
        AdbcOptions {
            scheme: scheme.to_owned(),
            url: url.to_owned(),
            driver: None,
            options: Vec::new(),
            max_connections: 1,
        }
    }

    fn uri(scheme: &str, url: &str) -> Result<String, String> {
        told(&options(scheme, url)).map(|told| told[0].1.clone())
    }

    #[test]
    fn each_driver_is_told_what_it_reads() {
        assert_eq!(uri("sqlite", "sqlite:///a/b.db").as_deref(), Ok("/a/b.db"));
        assert_eq!(uri("sqlite", "sqlite:b.db").as_deref(), Ok("b.db"));
        assert!(uri("sqlite", "sqlite::memory:").is_err());
        assert_eq!(uri("postgresql", "postgresql://u@h/d").as_deref(), Ok("postgresql://u@h/d"));
        let told = told(&options("flightsql", "flightsql://u:p@h:1")).unwrap();
        let told: Vec<_> = told.iter().map(|(_, value)| value.as_str()).collect();
        assert_eq!(told, ["grpc+tcp://h:1", "u", "p"]);
    }

    #[test]
    fn a_driver_that_is_not_there_is_named() {
        let error = Source::of(&options("nosuchdatabase", "nosuchdatabase://x")).err().unwrap();
        assert!(error.contains("no ADBC driver for nosuchdatabase"), "{error}");
        assert!(error.contains("pip install adbc-driver-nosuchdatabase"), "{error}");
    }
}
