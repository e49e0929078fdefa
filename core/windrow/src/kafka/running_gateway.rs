//! A client of the HTTP port of a gateway that runs in another process.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use windrow_clickhouse::{Client, ClientOptions, Credentials, Endpoint};
use windrow_settings::{Backend, Settings};

/// Makes a client that is the user `default`, for calls that name nobody else.
pub(super) fn client(settings: &Settings) -> Result<Arc<Client>, String> {
    let at = settings.http.listen;
    let host = match at.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    let password = match settings.backend {
        Backend::DuckDb(_) => &settings.duckdb.default_password,
        Backend::Adbc(_) => &settings.adbc.default_password,
        Backend::Embedded | Backend::ClickHouse(_) => &settings.embedded.default_password,
    };
    let endpoint = Endpoint {
        host: host.to_string(),
        port: at.port(),
        native_port: None,
        tls: settings.http.tls.is_some(),
        credentials: Credentials {
            user: "default".to_owned(),
            password: password.as_ref().map_or("", |secret| secret.expose()).to_owned(),
        },
    };
    let options = ClientOptions { is_own_port: true, ..ClientOptions::default() };
    Client::new(endpoint, options).map(Arc::new).map_err(|error| error.to_string())
}
