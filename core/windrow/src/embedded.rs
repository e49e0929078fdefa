//! The backend `embedded`: a ClickHouse that this process runs for itself.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use windrow_clickhouse::{Choice, Credentials, Endpoint, Replicas};
pub(crate) use windrow_embedded::{engine_is_missing, run_engine_if_asked};
use windrow_embedded::{mend_deduplication_logs, Embedded, EmbeddedOptions, EmbeddedUser, EngineState, Mended};
use windrow_gateway::{DefaultUser, MARKED_WINDOW};
use windrow_settings::Settings;

use crate::backend::{advise, ask, clickhouse, client_options, Availability, RunningBackend};

/// Time for the engine to end, before it is killed.
const STOP_GRACE: Duration = Duration::from_secs(20);

/// An embedded ClickHouse that runs.
pub(crate) struct RunningEngine(Embedded);

impl RunningEngine {
    /// Returns the state of the engine's process.
    #[cfg(feature = "demo")]
    pub(crate) fn state(&self) -> watch::Receiver<EngineState> {
        self.0.state()
    }

    pub(crate) async fn stop(self) {
        let outcome = self.0.stop(STOP_GRACE).await;
        tracing::info!(?outcome, "the embedded ClickHouse has ended");
    }
}

pub(crate) async fn start(settings: &Settings) -> Result<RunningBackend, String> {
    let mut options = EmbeddedOptions::new(&settings.data_dir);
    options.engine = settings.embedded.engine.clone();
    options.system_logs = settings.embedded.system_logs;
    options.deduplication_window = settings.manage_deduplication_window.then_some(MARKED_WINDOW);
    options.users = settings.embedded.users.iter().map(user).collect();
    let engine = Embedded::start(options).await.map_err(|error| error.to_string())?;
    let at = engine.endpoint();
    let credentials = Credentials { user: at.user.clone(), password: at.password.clone() };
    let endpoint = Endpoint {
        host: at.host.clone(),
        port: at.http_port,
        native_port: None,
        tls: false,
        credentials: credentials.clone(),
    };
    let password = settings.embedded.default_password.as_ref().map_or("", |secret| secret.expose()).to_owned();
    let replicas = Replicas::new(vec![endpoint], Choice::InOrder, &client_options(settings)).map_err(advise)?;
    let clickhouse = clickhouse(settings, Arc::new(replicas), Some((at.host.clone(), at.native_port)))?;
    // What came of it, the guard knows better. From now on it is one that has answered.
    let _ = ask(&clickhouse.client).await;
    let available = follow(engine.state());
    let default_user = DefaultUser { password, credentials };
    Ok(RunningBackend::embedded(RunningEngine(engine), clickhouse, default_user, available))
}

fn user(user: &windrow_settings::EmbeddedUser) -> EmbeddedUser {
    EmbeddedUser {
        name: user.name.clone(),
        password: user.password.expose().to_owned(),
        grants: user.grants.clone().unwrap_or_else(|| vec!["GRANT ALL ON *.*".to_owned()]),
        settings: user.settings.iter().map(|setting| (setting.name.clone(), setting.value.clone())).collect(),
    }
}

/// Follows the engine's state: its guard knows whether it is up.
fn follow(mut engine: watch::Receiver<EngineState>) -> Availability {
    let verdict = |state: &EngineState| match state {
        EngineState::Up { .. } => Ok(()),
        EngineState::Starting => Err("the embedded ClickHouse is starting".to_owned()),
        EngineState::Down { reason, .. } => Err(format!("the embedded ClickHouse is down: {reason}")),
        EngineState::Stopped => Err("the embedded ClickHouse has been stopped".to_owned()),
    };
    let (sender, receiver) = watch::channel(verdict(&engine.borrow_and_update()));
    tokio::spawn(async move {
        while engine.changed().await.is_ok() {
            let verdict = verdict(&engine.borrow_and_update());
            drop(sender.send_replace(verdict));
        }
    });
    receiver
}

/// Runs `windrow mend-clickhouse`.
pub(crate) fn mend_clickhouse(data: &Path) -> Result<ExitCode, String> {
    match mend_deduplication_logs(data).map_err(|error| format!("{}: {error}", data.display()))? {
        Mended::Records(records) => {
            println!("{records} records withdrawn");
            Ok(ExitCode::SUCCESS)
        }
        Mended::InUse => Err(format!("{}: a ClickHouse runs on these files; stop it first", data.display())),
        Mended::NoData => Err(format!("{}: ClickHouse keeps no data here; name its setting `path`", data.display())),
    }
}
