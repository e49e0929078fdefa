use std::time::Duration;

use prometheus_client::registry::Registry;
pub(crate) use windrow_append::Appends;
use windrow_append::{AppendOptions, Store};
use windrow_gateway::{Backend, ClickHouse, DataServer};
use windrow_settings::Settings;

use crate::backend::RunningBackend;

/// Lets the data port take ordered appends.
pub(crate) fn serve(data: &DataServer, appends: &Appends) {
    data.serve_appends(appends.clone());
}

/// Starts the service of ordered appends, for every port that takes some.
pub(crate) fn start(settings: &Settings, backend: &RunningBackend, registry: &mut Registry) -> Result<Appends, String> {
    let of = &settings.append;
    let options = AppendOptions {
        directory: settings.data_dir.join("appends"),
        window_bytes: of.window_bytes,
        max_memory_bytes: of.max_memory_bytes,
        max_spool_bytes: of.max_spool_bytes,
        max_batch_bytes: of.max_batch_bytes as u64,
        room_wait: Duration::from_millis(of.room_wait_ms),
        idle_timeout: Duration::from_millis(of.idle_timeout_ms),
        max_open: of.max_open,
        max_open_per_user: of.max_open_per_user,
    };
    let store = match (&backend.gateway, &backend.sql) {
        (Backend::ClickHouse(ClickHouse { client, .. }), _) => {
            Store::ClickHouse { client: client.clone(), own: client.endpoint().credentials.clone() }
        }
        (Backend::Sql(_), Some(database)) => Store::Sql(database.clone()),
        (Backend::Sql(_), None) => return Err("the backend takes no appends".to_owned()),
    };
    Appends::start(options, store, registry)
}
