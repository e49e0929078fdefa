use std::time::Duration;

use prometheus_client::registry::Registry;
use tokio::net::TcpListener;
use windrow_adbc::SqlDatabase;
use windrow_append::Appends;
use windrow_flight::{Access, DefaultUser, FlightOptions, FlightServer, Store, TlsFiles, Users};
use windrow_gateway::{Backend, ClickHouse, SqlBackend};
use windrow_settings::Settings;

use crate::backend::RunningBackend;

/// Arrow Flight SQL for the users of the data port, under its certificate. `None`: this backend has none.
pub(crate) fn start(
    listener: TcpListener,
    settings: &Settings,
    backend: &RunningBackend,
    appends: Appends,
    registry: &mut Registry,
) -> Result<Option<FlightServer>, String> {
    let (store, users) = match &backend.gateway {
        Backend::Sql(SqlBackend { database: SqlDatabase::Adbc(_), .. }) => return Ok(None),
        Backend::Sql(SqlBackend { database: SqlDatabase::DuckDb(duckdb), users }) => {
            let users = users.clone();
            let check = move |given: &_| users.check(given).map(|access| Access { readonly: access.readonly });
            (Store::DuckDb(duckdb.clone()), Users::Gateway(Box::new(check)))
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
