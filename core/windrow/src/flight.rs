use std::net::SocketAddr;
use std::time::Duration;

use prometheus_client::registry::Registry;
use tokio::net::TcpListener;
use windrow_adbc::SqlDatabase;
use windrow_append::Appends;
use windrow_flight::{Access, DefaultUser, FlightOptions, Store, TlsFiles, Users};
use windrow_gateway::{Backend, ClickHouse};
use windrow_settings::Settings;

use crate::backend::RunningBackend;

pub(crate) use windrow_flight::{FlightServer, MAX_CONNECTIONS};

/// Returns the address at which Flight SQL is to be served. `None` where it is not.
pub(crate) fn listen(settings: &Settings) -> Result<Option<SocketAddr>, String> {
    Ok(settings.flight.listen)
}

/// Starts Arrow Flight SQL for the users of the data port, under its certificate. `None` where this backend
/// has none.
pub(crate) fn start(
    listener: TcpListener,
    settings: &Settings,
    backend: &RunningBackend,
    appends: Appends,
    registry: &mut Registry,
) -> Result<Option<FlightServer>, String> {
    let (store, users) = match &backend.gateway {
        Backend::Sql(sql) => {
            let Some(SqlDatabase::DuckDb(duckdb)) = &backend.sql else { return Ok(None) };
            let (store, sql) = (Store::DuckDb(duckdb.clone()), sql.clone());
            let check = move |given: &_| sql.access(given).map(|access| Access { readonly: access.readonly });
            (store, Users::Gateway(Box::new(check)))
        }
        Backend::ClickHouse(ClickHouse { client, relay, .. }) => {
            let default_user = backend.default_user.as_ref().map(|default| DefaultUser {
                password: default.password.clone(),
                credentials: default.credentials.clone(),
            });
            (Store::ClickHouse(relay.clone()), Users::of_clickhouse(client.clone(), default_user))
        }
    };
    let tls = settings.http.tls.as_ref();
    let tls = tls.map(|files| TlsFiles { certificate: files.certificate.clone(), key: files.key.clone() });
    let silence = Duration::from_millis(settings.append.idle_timeout_ms);
    let idle_timeout = Duration::from_millis(settings.flight.idle_timeout_ms);
    let options = FlightOptions { store, appends, users, tls, silence, idle_timeout };
    FlightServer::start(listener, options, registry).map(Some)
}
