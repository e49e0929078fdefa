//! Opens a database: the settings it gets first, the rights of its files, and the meaning of its errors.

use std::path::Path;
use std::sync::Arc;

use adbc_core::options::{AdbcVersion, OptionDatabase, OptionValue};
use adbc_core::{Database, Driver};
use adbc_driver_manager::{ManagedDatabase, ManagedDriver};
use arrow_array::cast::AsArray;
use arrow_array::Array as _;
use windrow_clickhouse::Exception;

use crate::batches;
use crate::connection::Connection;
use crate::errors::OpenError;
use crate::library;
use crate::options::DuckDbOptions;
use crate::table::literal;

pub(crate) struct Opened {
    pub(crate) database: ManagedDatabase,
    /// DuckDB's version as it tells it: `v1.5.6`.
    pub(crate) version: String,
    /// DuckDB's name for the database.
    pub(crate) catalog: Arc<str>,
}

pub(crate) fn open(options: &DuckDbOptions) -> Result<Opened, OpenError> {
    let library = library::find(options.library.as_deref())?;
    let failed = |error: adbc_core::error::Error| OpenError(describe(options, &error.message));
    let mut driver = ManagedDriver::load_dynamic_from_filename(&library, Some(b"duckdb_adbc_init"), AdbcVersion::V110)
        .map_err(|error| OpenError(format!("{} can't be loaded: {}", library.display(), error.message)))?;
    if let Some(path) = options.path.as_deref() {
        own_alone(path)?;
    }
    let database = driver.new_database_with_opts(settings(options)).map_err(failed)?;
    let connect = || database.new_connection().map_err(failed);
    let failed = |exception: Exception| OpenError(describe(options, &exception.line));
    let mut connection = Connection::new(connect()?, String::new(), Arc::default(), Arc::default());
    let version = text(&mut connection, "SELECT version()").map_err(failed)?;
    let catalog: Arc<str> = text(&mut connection, "SELECT current_database()").map_err(failed)?.into();
    let mut connection = Connection::new(connect()?, String::new(), catalog.clone(), Arc::default());
    for statement in at_start(options, &connection) {
        connection.execute(&statement).map_err(failed)?;
    }
    Ok(Opened { database, version, catalog })
}

/// Returns the settings that can only be given before the database is open.
fn settings(options: &DuckDbOptions) -> Vec<(OptionDatabase, OptionValue)> {
    let mut settings = vec![("path", options.path.as_deref().map_or(":memory:".into(), text_of))];
    if let Some(bytes) = options.memory_limit_bytes {
        settings.push(("memory_limit", format!("{bytes}B")));
    }
    if let Some(threads) = options.threads {
        settings.push(("threads", threads.to_string()));
    }
    // Types that Arrow doesn't have come as themselves, marked, rather than as texts and floats.
    settings.push(("arrow_lossless_conversion", "true".to_owned()));
    let option = |(name, value): (&str, String)| (OptionDatabase::Other(name.to_owned()), OptionValue::String(value));
    settings.into_iter().map(option).collect()
}

fn at_start(options: &DuckDbOptions, connection: &Connection) -> Vec<String> {
    // Times are told in UTC wherever this runs, and what Windrow keeps for itself has a place.
    let mut statements = vec![
        "SET GLOBAL TimeZone = 'UTC'".to_owned(),
        format!("CREATE SCHEMA IF NOT EXISTS {}", connection.own_schema()),
        format!("CREATE SCHEMA IF NOT EXISTS {}", connection.own_functions()),
        batches::create(connection),
    ];
    if let Some(folder) = &options.temporary_folder {
        statements.push(format!("SET GLOBAL temp_directory = {}", literal(&text_of(folder))));
    }
    if let Some(bytes) = options.max_temporary_bytes {
        statements.push(format!("SET GLOBAL max_temp_directory_size = '{bytes}B'"));
    }
    if !options.external_access {
        // DuckDB goes on to allow its own files, the database and what it spills: `kind.rs` of `windrow-sql`
        // refuses the functions that would read them, and `own_alone` names that DuckDB would read as tables.
        statements.push("SET GLOBAL enable_external_access = false".to_owned());
    }
    // The last: DuckDB refuses whatever would change a setting behind it, but for the search path.
    statements.push("SET GLOBAL lock_configuration = true".to_owned());
    statements
}

fn text_of(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// Parts of file names by which DuckDB reads a file as a table: a statement that names such a file gets its content.
const READ_AS_TABLES: [&str; 6] = [".csv", ".tsv", ".json", ".ndjson", ".jsonl", ".parquet"];

/// Makes sure that only this user may read the database's files. DuckDB makes its files, also the log beside
/// the database that comes and goes, with the rights of the process's mask.
fn own_alone(path: &Path) -> Result<(), OpenError> {
    use std::os::unix::fs::PermissionsExt;
    let name = path.file_name().map(|name| name.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
    if let Some(ending) = READ_AS_TABLES.iter().find(|ending| name.contains(*ending)) {
        let place = path.display();
        return Err(OpenError(format!(
            "The database {place} can't be opened: DuckDB reads files with {ending} in their name as tables, and this one is not to \
             be read past it. Name it .db or .duckdb"
        )));
    }
    // SAFETY: it touches no memory.
    unsafe { libc::umask(0o077) };
    if path.is_file() {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).map_err(|error| {
            OpenError(format!("The database {} can't be made its owner's alone: {error}", path.display()))
        })?;
    }
    Ok(())
}

/// Returns the only value of a result.
fn text(connection: &mut Connection, query: &str) -> Result<String, Exception> {
    let batches = connection.rows(query)?;
    let column = batches.first().and_then(|batch| batch.columns().first()?.as_string_opt::<i32>());
    Ok(column.filter(|column| column.len() == 1).map_or("", |column| column.value(0)).to_owned())
}

/// Returns DuckDB's own error text, and advice where the text gives none.
fn describe(options: &DuckDbOptions, message: &str) -> String {
    let place = options.path.as_deref().map_or(":memory:".into(), text_of);
    let has = |part: &str| message.contains(part);
    let advice = if has("Could not set lock") {
        ". Another process has it open; a DuckDB file is written by one process at a time, so others have to read it through Windrow"
    } else if has("read a database file with version number") || has("newer version of DuckDB") {
        ". A newer DuckDB has written it: use that one's library (duckdb.library)"
    } else if has("No such file or directory") {
        ". Its folder has to be there"
    } else if has("Is a directory") || has("not a valid DuckDB database file") {
        ". Name a file of DuckDB's in `backend`, or one that is not there yet"
    } else if has("Permission denied") {
        ". The user that Windrow runs as may not read and write it"
    } else {
        ""
    };
    format!("The database {place} can't be opened: {}{advice}", message.trim_end())
}
