//! Settings that change while the gateway runs: at a SIGHUP, or when the admin port is asked to.

use std::sync::{Arc, Mutex, PoisonError};

use windrow_client::ServerTls;
use windrow_gateway::{DataServer, Reloaded};
use windrow_settings::{Difference, HttpSettings, Settings};

use crate::logging;

/// Reads all settings anew, from where they were read at the start.
pub(crate) type Load = Box<dyn Fn() -> Result<Settings, String> + Send + Sync>;

/// Of a gateway that does one job: only the files that settings name are read anew.
pub(crate) fn fixed(settings: &Settings) -> Load {
    let settings = settings.clone();
    Box::new(move || Ok(settings.clone()))
}

pub(crate) struct Reload {
    load: Load,
    data: Arc<DataServer>,
    in_force: Mutex<Arc<Settings>>,
}

impl Reload {
    pub(crate) fn new(load: Load, data: Arc<DataServer>, settings: Arc<Settings>) -> Reload {
        Reload { load, data, in_force: Mutex::new(settings) }
    }

    /// All that can be exchanged is, or nothing where something is wrong.
    pub(crate) fn run(&self) -> Result<Reloaded, String> {
        let outcome = self.exchange();
        match &outcome {
            Ok(Reloaded { changed, at_start }) if at_start.is_empty() => {
                tracing::info!(changed = changed.join(", "), "the settings were read anew");
            }
            Ok(Reloaded { changed, at_start }) => tracing::warn!(
                changed = changed.join(", "),
                at_start = at_start.join(", "),
                "the settings were read anew; those in `at_start` take effect at the next start"
            ),
            Err(error) => tracing::error!(error, "the settings stay as they were"),
        }
        outcome
    }

    fn exchange(&self) -> Result<Reloaded, String> {
        let mut in_force = self.in_force.lock().unwrap_or_else(PoisonError::into_inner);
        let (settings, Difference { at_reload, at_start }) = in_force.reloaded(&(self.load)()?);
        let tls = certificate(&settings.http)?;
        logging::set_level(&settings.log.level)?;
        let concerns_inserts = at_reload.iter().any(|path| path.starts_with("tables[") || path.starts_with("gather."));
        *in_force = Arc::new(settings);
        self.data.reload(in_force.clone(), tls, concerns_inserts);
        Ok(Reloaded { changed: at_reload, at_start })
    }
}

/// The data port's certificate, as it is in its files now.
pub(crate) fn certificate(http: &HttpSettings) -> Result<Option<ServerTls>, String> {
    let Some(files) = &http.tls else { return Ok(None) };
    windrow_client::server_config(&files.certificate, &files.key).map(Some).map_err(|error| error.to_string())
}
