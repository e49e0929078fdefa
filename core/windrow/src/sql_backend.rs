//! Backends that take SQL: a DuckDB in this process, and a database behind an ADBC driver.

use std::path::Path;

use tokio::sync::watch;
pub(crate) use windrow_adbc::SqlDatabase;
use windrow_adbc::{Adbc, AdbcOptions};
use windrow_duckdb::{DuckDb, DuckDbOptions};
use windrow_settings::{AdbcUrl, DuckDbPlace, Settings};
#[cfg(feature = "kafka")]
pub(crate) use windrow_sqlbackend::values_as_text;
use windrow_sqlbackend::{install_duckdb_functions, prepare_temporary_folder};

use crate::backend::{follow_answers, Availability, RunningBackend, ANSWER};
use crate::default_backend;

pub(crate) fn duckdb_is_there(library: Option<&Path>) -> bool {
    windrow_duckdb::library_is_there(library)
}

/// Starts a DuckDB. It runs in this process, so it is available as long as the process lives.
pub(crate) async fn duckdb(settings: &Settings, place: &DuckDbPlace) -> Result<RunningBackend, String> {
    if let Some(notice) = default_backend::notice(settings) {
        tracing::warn!("{notice}");
    }
    let of = &settings.duckdb;
    let path = match place {
        DuckDbPlace::Memory => None,
        DuckDbPlace::File(path) => Some(path.clone()),
    };
    let folder = windrow_gateway::temporary_folder(settings);
    let options = DuckDbOptions {
        path,
        library: of.library.clone(),
        memory_limit_bytes: of.memory_limit_bytes,
        threads: of.threads,
        temporary_folder: Some(folder.join("duckdb")),
        max_temporary_bytes: Some(of.max_temporary_bytes),
        max_result_connections: of.max_result_connections,
        ..DuckDbOptions::default()
    };
    prepare_temporary_folder(&folder)
        .map_err(|error| format!("the folder {} can't be made: {error}", folder.display()))?;
    let opened = tokio::task::spawn_blocking(|| DuckDb::open(options)).await.map_err(|error| error.to_string())?;
    let duckdb = opened.map_err(|error| error.to_string())?;
    install_duckdb_functions(&duckdb).await.map_err(|error| error.to_string())?;
    let (sender, available) = watch::channel(Ok(()));
    // The answer never changes, and is not to look as if nobody gave it.
    tokio::spawn(async move { sender.closed().await });
    Ok(RunningBackend::sql(SqlDatabase::DuckDb(duckdb), settings, available))
}

/// Starts a database behind an ADBC driver. The database may be away at the start, as it may be later.
pub(crate) async fn adbc(settings: &Settings, url: &AdbcUrl) -> Result<RunningBackend, String> {
    let of = &settings.adbc;
    let options = AdbcOptions {
        scheme: url.scheme.clone(),
        url: url.url.expose().to_owned(),
        driver: of.driver.clone(),
        options: of.options.iter().map(|(name, value)| (name.clone(), value.expose().to_owned())).collect(),
        max_connections: of.max_connections,
    };
    let folder = windrow_gateway::temporary_folder(settings);
    prepare_temporary_folder(&folder)
        .map_err(|error| format!("the folder {} can't be made: {error}", folder.display()))?;
    let opened = tokio::task::spawn_blocking(move || Adbc::open(&options)).await;
    let adbc = opened.map_err(|error| error.to_string())??;
    if settings.flight.listen.is_some() {
        tracing::info!("Arrow Flight SQL is not served before a database behind ADBC");
    }
    let available = ask_adbc_now_and_then(adbc.clone()).await;
    Ok(RunningBackend::sql(SqlDatabase::Adbc(adbc), settings, available))
}

async fn ask_adbc_now_and_then(adbc: Adbc) -> Availability {
    let silent = "the database has not answered since Windrow's start".to_owned();
    let asking = move || {
        let adbc = adbc.clone();
        async move { ask_adbc(&adbc).await }
    };
    follow_answers(silent, asking).await
}

async fn ask_adbc(adbc: &Adbc) -> Result<(), String> {
    match tokio::time::timeout(ANSWER, adbc.ping()).await {
        Ok(answer) => answer.map_err(|exception| exception.line),
        Err(_) => Err(format!("the database has not answered for {} s", ANSWER.as_secs())),
    }
}
