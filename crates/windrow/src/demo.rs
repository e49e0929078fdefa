use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use windrow_embedded::EngineState;
use windrow_settings::{Backend, Settings};
use windrow_upclick::{DemoOptions, Engine, Output, PidSource};

use crate::cli::DemoArguments;
use crate::gateway::{runtime, Gateway};
use crate::logging;
use crate::reload;

/// `windrow demo`: a gateway in this process, and the probes against it.
pub(crate) fn run(mut settings: Settings, arguments: &DemoArguments) -> Result<ExitCode, String> {
    let folder = if arguments.settings.names_data_dir() { None } else { Some(TemporaryFolder::create()?) };
    if let Some(folder) = &folder {
        settings.data_dir.clone_from(&folder.path);
    }
    if !arguments.settings.names_ports() {
        // The usual ports may be in use by a gateway that does real work.
        settings.http.listen.set_port(0);
        settings.admin.listen.set_port(0);
        settings.flight.listen = None;
    }
    if settings.log.level == "info" {
        // The picture is redrawn in place; only what went wrong may come between.
        settings.log.level = "error,clickhouse=off".to_owned();
    }
    logging::start(&settings.log)?;
    let scheme = if settings.http.tls.is_some() { "https" } else { "http" };
    let (engine, password) = match settings.backend {
        Backend::DuckDb(_) => (Engine::DuckDb, &settings.duckdb.default_password),
        Backend::Embedded | Backend::ClickHouse(_) => (Engine::ClickHouse, &settings.embedded.default_password),
    };
    let password = password.as_ref().map_or("", |secret| secret.expose()).to_owned();
    let complete = runtime()?.block_on(async {
        let gateway = Gateway::start(settings.clone(), reload::fixed(&settings)).await?;
        println!("windrow listens on {scheme}://{}, its dashboard is at http://{}/", gateway.http, gateway.admin);
        let mut options = DemoOptions::new(format!("{scheme}://{}", gateway.http));
        options.password = password;
        options.engine = engine;
        options.probes = arguments.probes;
        options.every = arguments.every;
        options.run_for = arguments.run_for;
        options.urls.clone_from(&arguments.urls);
        options.wait = !arguments.no_wait;
        options.kpi_ms = arguments.kpi;
        options.gateway_pid = Arc::new(|| Some(std::process::id()));
        options.clickhouse_pid = engine_pid(&gateway);
        options.output = if arguments.plain { Output::Plain } else { Output::Auto };
        let outcome = windrow_upclick::run(options).await.map_err(|error| error.to_string());
        let clean = gateway.stop().await;
        outcome.map(|_summary| clean)
    })?;
    Ok(if complete { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn engine_pid(gateway: &Gateway) -> PidSource {
    let state = gateway.engine_state();
    Arc::new(move || match *state.as_ref()?.borrow() {
        EngineState::Up { pid, .. } => Some(pid),
        _ => None,
    })
}

/// The demo's data directory, gone when the demo is.
struct TemporaryFolder {
    path: PathBuf,
}

impl TemporaryFolder {
    fn create() -> Result<TemporaryFolder, String> {
        let path = std::env::temp_dir().join(format!("windrow-demo-{}", std::process::id()));
        std::fs::create_dir_all(&path).map_err(|error| format!("cannot create {}: {error}", path.display()))?;
        Ok(TemporaryFolder { path })
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.path) {
            eprintln!("windrow: {} could not be removed: {error}", self.path.display());
        }
    }
}
