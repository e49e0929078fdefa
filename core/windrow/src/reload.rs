//! Settings that change while the gateway runs: at a SIGHUP, or when the admin port is asked to.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;
use windrow_clickhouse::ServerTls;
use windrow_gateway::{Certificates, DataServer};
use windrow_settings::{Difference, Settings, TlsFiles};

use crate::logging;

/// A function that reads all settings anew, from where they were read at the start.
pub(crate) type Load = Box<dyn Fn() -> Result<Settings, String> + Send + Sync>;

/// Returns the loader of a gateway that does one job: only the files that settings name are read anew.
pub(crate) fn fixed(settings: &Settings) -> Load {
    let settings = settings.clone();
    Box::new(move || Ok(settings.clone()))
}

pub(crate) struct Reload {
    load: Load,
    data: Arc<DataServer>,
    in_force: Mutex<Arc<Settings>>,
    /// The signal that has the record which names the backend's replicas looked up.
    look_up: Arc<Notify>,
}

impl Reload {
    pub(crate) fn new(load: Load, data: Arc<DataServer>, settings: Arc<Settings>, look_up: Arc<Notify>) -> Reload {
        Reload { load, data, in_force: Mutex::new(settings), look_up }
    }

    /// Exchanges all settings that can be exchanged, or none where something is wrong.
    pub(crate) fn run(&self) -> Result<Difference, String> {
        let outcome = self.exchange();
        match &outcome {
            Ok(Difference { at_reload, at_start }) if at_start.is_empty() => {
                tracing::info!(changed = at_reload.join(", "), "the settings were read anew");
            }
            Ok(Difference { at_reload, at_start }) => tracing::warn!(
                changed = at_reload.join(", "),
                at_start = at_start.join(", "),
                "the settings were read anew; those in `at_start` take effect at the next start"
            ),
            Err(error) => tracing::error!(error, "the settings stay as they were"),
        }
        outcome
    }

    fn exchange(&self) -> Result<Difference, String> {
        let mut in_force = self.in_force.lock().unwrap_or_else(PoisonError::into_inner);
        let (settings, difference) = in_force.reloaded(&(self.load)()?);
        let certificates = certificates(&settings)?;
        logging::set_level(&settings.log.level)?;
        const ABOUT_INSERTS: [&str; 3] = ["tables[", "gather.", "otlp.mappings["];
        let is_about_inserts = |path: &String| ABOUT_INSERTS.iter().any(|start| path.starts_with(start));
        let concerns_inserts = difference.at_reload.iter().any(is_about_inserts);
        *in_force = Arc::new(settings);
        self.look_up.notify_one();
        self.data.reload(in_force.clone(), certificates, concerns_inserts);
        Ok(difference)
    }
}

/// Reads the certificates of the ports, as they are in their files now.
pub(crate) fn certificates(settings: &Settings) -> Result<Certificates, String> {
    let http = certificate(settings.http.tls.as_ref(), "http")?;
    // The same certificate; who sends may have to show another.
    let otlp = settings.http.tls.clone().map(|tls| TlsFiles { client_ca: settings.otlp.tls_client_ca.clone(), ..tls });
    let otlp = certificate(otlp.as_ref(), "http")?;
    let native = certificate(settings.native.tls.as_ref(), "native")?;
    if settings.native.tls_listen.is_some() && native.is_none() {
        return Err("`native.tls_listen` needs a certificate: name PEM files in `native.tls_certificate` and \
                    `native.tls_key`"
            .to_owned());
    }
    Ok(Certificates { http, otlp, native })
}

fn certificate(files: Option<&TlsFiles>, section: &str) -> Result<Option<ServerTls>, String> {
    let Some(files) = files else { return Ok(None) };
    let config = windrow_clickhouse::server_config(&files.certificate, &files.key, files.client_ca.as_deref());
    config.map(Some).map_err(|error| {
        format!(
            "{error}; name PEM files of a certificate and its key in `{section}.tls_certificate` and `{section}.tls_key`"
        )
    })
}
