//! What a reload exchanges while the gateway runs.

use std::sync::{Arc, PoisonError, RwLock};

use tokio_rustls::TlsAcceptor;
use windrow_settings::Settings;

/// The settings as they are at this moment. What was worked out of them before goes on until it is asked for anew.
pub struct LiveSettings(RwLock<Arc<Settings>>);

impl LiveSettings {
    pub fn new(settings: Arc<Settings>) -> LiveSettings {
        LiveSettings(RwLock::new(settings))
    }

    pub(crate) fn get(&self) -> Arc<Settings> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set(&self, settings: Arc<Settings>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = settings;
    }
}

/// The certificate that new connections are shown, if the port speaks TLS.
pub(crate) struct LiveTls(RwLock<Option<TlsAcceptor>>);

impl LiveTls {
    pub(crate) fn new(tls: Option<Arc<rustls::ServerConfig>>) -> LiveTls {
        LiveTls(RwLock::new(tls.map(TlsAcceptor::from)))
    }

    pub(crate) fn get(&self) -> Option<TlsAcceptor> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set(&self, tls: Arc<rustls::ServerConfig>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Some(TlsAcceptor::from(tls));
    }
}
